"""A journal is made whole or not at all, and what cannot be used is refused as it is."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tenure.errors import (
    ConfigurationError,
    JournalDamaged,
    JournalError,
    JournalTooNew,
    JournalUnwritable,
)
from tenure.journals.sqlite import file as sqlite_file
from tenure.journals.sqlite.store import SqliteStore
from tenure.protocol.log.journal import Seat
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.journals.sqlite.disk import execute, files_of_at_most, first, opened, without_rights


def test_a_journal_is_made_with_the_directories_it_lies_in(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b ä?%20#" / "journal.sqlite"
    with opened(path) as store:
        assert store.read_seat() == Seat()
    assert [each.name for each in path.parent.iterdir()] == ["journal.sqlite"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_making_one_is_cut_short_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", killed)
    with pytest.raises(KeyboardInterrupt):
        SqliteStore(tmp_path / "journal.sqlite", LEASE_RECORDS)
    assert list(tmp_path.iterdir()) == []


def test_who_is_second_to_make_one_uses_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    with opened(path) as store:
        first = store.load().journal
    monkeypatch.setattr(sqlite_file, "_exists", lambda _: False)  # it looked too early
    with opened(path) as store:
        assert store.load().journal == first
    assert [each.name for each in tmp_path.iterdir()] == ["journal.sqlite"]


def test_two_journals_have_two_identities(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as one, opened(tmp_path / "b") as two:
        assert one.load().journal != two.load().journal


def test_a_journal_may_be_reached_by_a_symbolic_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    with opened(path) as one, opened(link) as two:
        assert one.beat(first(one), 9)
        assert two.read_seat().beat == 9
    assert {each.name for each in tmp_path.iterdir()} == {"journal.sqlite", "link"}


def test_a_directory_is_not_a_journal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a file; name one, such as"):
        SqliteStore(tmp_path, LEASE_RECORDS)


# --- damaged, foreign, too new --------------------------------------------------------------------


def refused(path: Path, kind: type[JournalError]) -> str:
    """The error that opening raises, and that it left the file as it was."""
    before, beside = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(kind) as caught:
        SqliteStore(path, LEASE_RECORDS)
    assert (path.read_bytes(), sorted(path.parent.iterdir())) == (before, beside)
    assert type(caught.value) is kind
    assert str(path) in str(caught.value)
    return str(caught.value)


def truncate(length: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, length)


def overwrite(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be one" * 500)


def scribble(path: Path) -> None:
    """A page that is not the first is garbage: found by looking through the whole file only."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(range(256)) * 16)


def drop_table(path: Path) -> None:
    execute(path, "DROP TABLE records")


def empty_seat(path: Path) -> None:
    execute(path, "DELETE FROM seat")


def wrong_seat(path: Path) -> None:
    execute(path, "UPDATE seat SET leadership = 'first'")


def no_snapshot(path: Path) -> None:
    execute(path, "DELETE FROM snapshot")


def no_version(path: Path) -> None:
    execute(path, "PRAGMA user_version = 0")


@pytest.mark.parametrize(
    "damage",
    [
        truncate(0),
        truncate(50),
        truncate(4096),
        truncate(10_000),
        overwrite,
        scribble,
        drop_table,
        empty_seat,
        wrong_seat,
        no_snapshot,
        no_version,
    ],
)
def test_what_is_damaged_is_refused_and_left_as_it_is(
    path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    message = refused(path, JournalDamaged)
    assert "Move the journal away" in message or "move that file away" in message


def test_a_record_that_is_missing_is_named(path: Path) -> None:
    execute(path, "DELETE FROM records WHERE lsn = 4")
    assert "after LSN 3 comes 5" in refused(path, JournalDamaged)


@pytest.mark.parametrize("value", [b"\x01\x00\x00\x00\x00\xc0", b"", "text", 5])
def test_a_record_that_cannot_be_read_is_named(path: Path, value: object) -> None:
    execute(path, "UPDATE records SET record = ? WHERE lsn = 4", value)
    assert "LSN" in refused(path, JournalDamaged)


def test_a_snapshot_that_cannot_be_read_is_named(path: Path) -> None:
    execute(path, "UPDATE snapshot SET state = ?", b"\x01\x00\x00\x00\x00\xc0")
    assert "the snapshot of LSN 2 in" in refused(path, JournalDamaged)


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    execute(path, "CREATE TABLE songs (title TEXT)")
    assert "is not a journal of tenure" in refused(path, JournalDamaged)


def test_a_later_version_says_which_and_what_to_do(path: Path) -> None:
    execute(path, "PRAGMA user_version = 7")
    message = refused(path, JournalTooNew)
    assert "is of version 7, and this tenure reads 1: run the tenure that wrote it" in message


def test_a_journal_that_is_refused_keeps_its_log(tmp_path: Path) -> None:
    path, crashed = tmp_path / "journal.sqlite", tmp_path / "crashed.sqlite"
    with opened(path) as store:
        store._main.execute("PRAGMA user_version = 7")
        for end in ("", "-wal"):  # as they lie there after a kill
            shutil.copy(f"{path}{end}", f"{crashed}{end}")
    log = Path(f"{crashed}-wal")
    before = crashed.read_bytes(), log.read_bytes()
    with pytest.raises(JournalTooNew):
        SqliteStore(crashed, LEASE_RECORDS)
    assert (crashed.read_bytes(), log.read_bytes()) == before


# --- forbidden ------------------------------------------------------------------------------------


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that the user without rights can reach; pytest's own is closed to others."""
    with TemporaryDirectory() as directory:
        place = Path(directory).resolve()
        place.chmod(0o755)
        yield place
        place.chmod(0o755)


def test_a_journal_in_a_directory_that_is_read_only_is_refused(open_to_all: Path) -> None:
    path = open_to_all / "journal.sqlite"
    with opened(path):
        pass
    path.chmod(0o666)
    open_to_all.chmod(0o555)
    with without_rights():
        message = refused(path, JournalUnwritable)
    assert f"no permission to write {open_to_all}" in message
    assert [each.name for each in open_to_all.iterdir()] == ["journal.sqlite"]


def test_a_journal_that_is_read_only_is_refused(open_to_all: Path) -> None:
    path = open_to_all / "journal.sqlite"
    with opened(path):
        pass
    path.chmod(0o444)
    open_to_all.chmod(0o777)
    with without_rights():
        assert f"no permission to write {path}" in refused(path, JournalUnwritable)


def test_no_journal_is_made_in_a_directory_that_is_read_only(open_to_all: Path) -> None:
    open_to_all.chmod(0o555)
    for path in (open_to_all / "journal.sqlite", open_to_all / "a" / "journal.sqlite"):
        with without_rights(), pytest.raises(JournalUnwritable, match="cannot be made"):
            SqliteStore(path, LEASE_RECORDS)
    assert list(open_to_all.iterdir()) == []


def test_no_journal_is_made_below_a_file(path: Path) -> None:
    with pytest.raises(JournalUnwritable, match="cannot be made"):
        SqliteStore(path / "journal.sqlite", LEASE_RECORDS)


def test_no_journal_is_made_on_a_full_disk(tmp_path: Path) -> None:
    with files_of_at_most(5000), pytest.raises(JournalUnwritable, match="Make room"):
        SqliteStore(tmp_path / "journal.sqlite", LEASE_RECORDS)
    assert list(tmp_path.iterdir()) == []
