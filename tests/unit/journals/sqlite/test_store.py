"""A journal that is open while its disk fills up, or somebody tampers with it."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tenure.errors import JournalDamaged, JournalError, JournalUnwritable
from tenure.journals.sqlite import file as sqlite_file
from tenure.journals.sqlite.store import SqliteStore
from tenure.protocol.lease.records import AnyRecord, PoolCreated, State
from tenure.protocol.log.journal import Committed, Deposed, Seat, Unknown
from tenure.testing.contracts.records import numbered
from tests.unit.journals.sqlite.disk import execute, files_of_at_most, first, opened
from tests.unit.journals.sqlite.syncs import counted

BIG = tuple(
    PoolCreated(pool=f"pool-{i}", kind="ordered", split_points=(bytes(1000),)) for i in range(200)
)


def test_an_append_that_does_not_fit_is_unknown_and_goes_through_when_there_is_room(
    path: Path,
) -> None:
    with opened(path) as store:
        (pages,) = store._main.execute("PRAGMA page_count").fetchone()
        store._main.execute(f"PRAGMA max_page_count = {pages}")
        before = store.load()
        for _ in range(2):
            result = store.append(first(store), 5, BIG)
            assert isinstance(result, Unknown)
            assert "Make room" in result.why
            assert store.load() == before
        assert store.beat(first(store), 1)
        store._main.execute("PRAGMA max_page_count = 1000000")
        assert store.append(first(store), 5, BIG) == Committed(205)


def test_an_append_that_the_system_cuts_short_leaves_nothing_half_written(path: Path) -> None:
    with opened(path) as store:
        before = store.load()
        size = Path(f"{path}-wal").stat().st_size
        with files_of_at_most(size + 50_000):
            result = store.append(first(store), 5, BIG)
            assert isinstance(result, Unknown)
            assert "cannot be written" in result.why
            assert store.load() == before
        with opened(path) as other:
            assert other.load() == before
        assert store.append(first(store), 5, BIG) == Committed(205)
    with opened(path) as store:
        assert store.load().records == (*before.records, *BIG)


def test_a_campaign_or_a_compaction_that_does_not_fit_changes_nothing(path: Path) -> None:
    with opened(path) as store:
        before, seat = store.load(), store.read_seat()
        with files_of_at_most(0):
            with pytest.raises(JournalUnwritable):
                store.campaign(seat, Seat(2, 0, "http://b"))
            with pytest.raises(JournalUnwritable):
                store.compact(first(store), 5, State())
        assert (store.load(), store.read_seat()) == (before, seat)


def test_a_locked_journal_is_waited_for_and_then_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.0)
    with opened(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = store.append(first(store), 5, numbered(5, 1))
        assert isinstance(result, Unknown)
        assert "is locked" in result.why
        with pytest.raises(JournalError, match="is locked"):
            store.beat(first(store), 1)
        assert store.load().lsn == 5
        other.execute("ROLLBACK")
        assert store.append(first(store), 5, numbered(5, 1)) == Committed(6)


def test_what_is_acknowledged_was_synced_and_a_beat_was_not(path: Path) -> None:
    """With `synchronous=NORMAL` a loss of power would undo an append that was answered."""
    with counted() as syncs, opened(path) as store:
        assert store._main.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        writes: list[Callable[[], object]] = [
            lambda: store.append(first(store), 5, numbered(5, 1)),
            lambda: store.append(first(store), 6, numbered(6, 1)),
            lambda: store.compact(first(store), 7, State()),
            lambda: store.resign(first(store)),
            lambda: store.campaign(Seat(1, 0, "", 1_625_000_000), Seat(2, 0, "http://b")),
        ]
        for write in writes:
            before = syncs.of["-wal"]
            assert write() != Deposed()
            assert syncs.of["-wal"] > before
        before = syncs.of["-wal"]
        assert store.beat(first(store, 2), 1)
        assert syncs.of["-wal"] == before


# --- at rest --------------------------------------------------------------------------------------


BEATS = 16_000
"""More than an hour of the default preset, and fifteen times as many pages as a checkpoint waits
for. `make bench ARGS="beats --days 365"` is the same for a year."""
AT_REST_BYTES = 5 << 20


def test_a_journal_at_rest_stays_small_however_long_its_leader_beats(path: Path) -> None:
    """After N, 2 N and 4 N beats, each of them several checkpoints, every file has the same size:
    the log is written from its beginning again, and the row of the seat in its place. What is so
    after one cycle is so after each, and a year of beats is 100,000 of them.
    """
    sizes = []
    with opened(path) as leader, opened(path) as standby:
        for beat in range(1, BEATS + 1):
            assert leader.beat(first(leader), beat)
            if beat % 5 == 0:
                assert standby.read_seat().beat == beat
            if beat in (BEATS // 4, BEATS // 2, BEATS):
                files = sorted(path.parent.iterdir())
                sizes.append([(file.name, file.stat().st_size) for file in files])
        assert sizes == [sizes[0]] * 3
        assert leader.file_bytes() < AT_REST_BYTES


def test_on_a_full_disk_a_leader_beats_on_in_the_room_that_its_log_has(path: Path) -> None:
    with opened(path) as store:
        for beat in range(10):
            assert store.beat(first(store), beat)
        with files_of_at_most(Path(f"{path}-wal").stat().st_size):
            with pytest.raises(JournalUnwritable, match="Make room"):
                store.beat(first(store), 10)
            failed = sum(not beats(store, beat) for beat in range(11, 1_000))
            assert failed < 200  # each time that the log is at its end again
        assert store.beat(first(store), 1_000)


def beats(store: SqliteStore[AnyRecord, State], beat: int) -> bool:
    try:
        return store.beat(first(store), beat)
    except JournalUnwritable:
        return False


# --- tampered with --------------------------------------------------------------------------------


def replace_by_copy(path: Path) -> None:
    shutil.copy(path, f"{path}.copy")
    Path(f"{path}.copy").replace(path)


def other_identity(path: Path) -> None:
    execute(path, "UPDATE seat SET journal = 1")


@pytest.mark.parametrize(
    "tamper",
    [
        Path.unlink,
        lambda path: Path(f"{path}-wal").unlink(),
        lambda path: Path(f"{path}-shm").unlink(),
        lambda path: path.rename(f"{path}.old"),
        lambda path: shutil.move(path.parent, f"{path.parent}.old"),
        replace_by_copy,
        other_identity,
    ],
    ids=["deleted", "no log", "no index", "renamed", "directory moved", "replaced", "overwritten"],
)
def test_files_that_were_deleted_or_replaced_are_noticed_by_every_call(
    path: Path, tamper: Callable[[Path], object]
) -> None:
    with opened(path) as store:
        seat = store.read_seat()
        tamper(path)
        for call in (
            store.read_seat,
            store.load,
            lambda: store.append(first(store), 5, numbered(5, 1)),
            lambda: store.beat(first(store), 1),
            lambda: store.campaign(seat, Seat(2, 0, "http://b")),
            lambda: store.resign(first(store)),
            lambda: store.compact(first(store), 5, State()),
        ):
            with pytest.raises(JournalDamaged, match="deleted or replaced"):
                call()


def test_a_replacement_in_the_middle_of_an_append_is_noticed_before_it_is_answered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as store:
        check = store._watch.check

        def checked_too_early() -> None:
            check()
            path.unlink(missing_ok=True)

        monkeypatch.setattr(store._watch, "check", checked_too_early)
        with pytest.raises(JournalDamaged, match="deleted or replaced"):
            store.append(first(store), 5, numbered(5, 1))


def test_a_leader_that_was_overtaken_is_told_by_the_file(path: Path) -> None:
    with opened(path) as old, opened(path) as new:
        assert new.campaign(new.read_seat(), Seat(2, 0, "http://b"))
        assert old.append(first(old), 5, numbered(5, 1)) == Deposed()
        assert new.append(first(new, 2), 5, numbered(5, 1)) == Committed(6)
