"""Fences of a lost journal are given up: rows stay as they are seen, and its leases are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.base.keys import hashed_key
from tenure.cli.app import run
from tenure.client.lease import Lease
from tenure.columns.blocking import BlockingOwnedRow, BlockingOwnedRows, BlockingStore
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.opening import open_store
from tenure.columns.refencing import give_up_fences
from tenure.columns.replica import Replica
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version

ROOMS = Table(
    "rooms",
    fenced_by="rooms",
    state=Family(columns=str),
    log=Family(columns=int, order="time"),
    by=Family(supers=str, columns=int, order="time"),
)
LOST, NEW, OTHER = 0xA, 0xB, 0xC


def load(store: BlockingStore, number: int, journal: int, key: str = "attic") -> BlockingOwnedRow:
    lease = Lease(hashed_key(key), number, journal, "rooms")
    return BlockingOwnedRows(store, ROOMS).load(lease, key)


def contents(store: BlockingStore, key: str = "attic") -> list[tuple[Any, ...]]:
    """Return what readers see of a row: names, values and times."""

    def of(page: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - of any page
        return [
            (each.name, of(each.columns))
            if hasattr(each, "columns")
            else (each.name, each.value, each.version.time)
            for each in page
        ]

    row = store.get(ROOMS, key)
    return [(name, of(page)) for name, page in row.families.items()]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Rows that several owners wrote; what the later ones deleted has later times, or earlier."""
    url = f"rocksdb:{tmp_path / 'rooms'}"
    with open_store(url, ROOMS) as store:
        first = load(store, 90, LOST)
        first.insert({"state": {"topic": b"tea", "old": b""}, "log": {1: b"", 2: b""}})
        first.insert({"by": {"ann": {1: b"", 2: b""}, "bob": {3: b""}}, "log": {3: b""}})
        second = load(store, 95, LOST)
        second.delete("state", "old")
        second.delete("by", "ann")
        second.insert({"by": {"ann": {7: b"again"}}, "log": {2: b"moved"}})
        second.delete("log", 3)
        load(store, 96, LOST, "cellar").insert({"state": {"topic": b"wine"}})
        load(store, 97, LOST, "cellar").delete()
        load(store, 4, OTHER, "hall").insert({"state": {"topic": b"coats"}})
    return url


def refence(url: str, journal: int = LOST) -> int:
    return run(["columns", "refence", url, "rooms", "--journal", f"{journal:016x}"])


def test_a_new_journal_may_write_and_the_lost_one_may_not(url: str) -> None:
    with open_store(url, ROOMS) as store:
        before = contents(store)
        with pytest.raises(LeaseLost, match="columns refence"):
            load(store, 1, NEW)
    assert refence(url) == 0
    assert run(["columns", "check", url]) == 0
    with open_store(url, ROOMS) as store:
        assert contents(store) == before
        for number in (1, 95, 1_000):
            with pytest.raises(LeaseLost, match="began with a new one"):
                load(store, number, LOST)
        row = load(store, 1, NEW)
        row.insert({"state": {"topic": b"milk"}, "log": {9: b""}})
        row.delete("by", "ann", 7)
        assert [each.name for each in row.get("log")] == [9, 2, 1]
        assert [each.name for each in store.get(ROOMS, "attic", "log")] == [9, 2, 1]
        assert store.get(ROOMS, "attic", "state", "topic").value == b"milk"
        assert [each.name for each in store.get(ROOMS, "attic", "by")] == ["bob"]
        load(store, 1, NEW, "cellar").insert({"state": {"topic": b"cider"}})
        with pytest.raises(LeaseLost):
            load(store, 3, OTHER, "hall")  # that journal is not over: its fence holds
        load(store, 5, OTHER, "hall")
    assert run(["columns", "check", url]) == 0


def test_who_loaded_a_row_before_writes_it_no_more() -> None:
    """A row that was given back has no fence, so the lost journal's numbers would pass."""
    replica = Replica(MemoryEngine())
    replica.open([ROOMS])
    replica.refuse_journals(ROOMS, frozenset([LOST]))
    edits = [Edit("state", None, b"topic", b"tea")]
    for journal, is_refused in ((LOST, True), (NEW, False)):
        attempt = Attempt(Version(95, 1), journal=journal)
        refused = replica.write(RowMutation(ROOMS, b"attic", edits), attempt, 1)
        assert (refused is not None) is is_refused


def test_it_lists_journals_and_refuses_one_that_fenced_nothing(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["columns", "refence", url, "rooms"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(lines) == [[f"{LOST:016x}", "2", "97"], [f"{OTHER:016x}", "1", "4"]]
    assert refence(url, NEW) == 2
    assert "there are: " in capsys.readouterr().err


class Power(Exception):
    """It failed."""


def test_it_goes_on_where_the_power_failed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(url, ROOMS) as store:
        before = [contents(store, key) for key in ("attic", "cellar")]
    apply: Callable[..., None] = RocksEngine.apply
    for kept in range(4):
        left = [kept]

        def fail(engine: RocksEngine, batch: Any, left: list[int] = left) -> None:  # noqa: ANN401
            if not left[0]:
                raise Power
            left[0] -= 1
            apply(engine, batch)

        engine = RocksEngine.open(Path(url.removeprefix("rocksdb:")))
        replica = Replica(engine)
        replica.open([ROOMS])
        with monkeypatch.context() as failing:
            failing.setattr(RocksEngine, "apply", fail)
            try:
                list(give_up_fences(replica, ROOMS, frozenset([LOST])))
            except Power:
                pass
            else:
                assert kept == 3  # the refusal, and two rows
        engine.close()
        assert run(["columns", "check", url]) == 0
    with open_store(url, ROOMS) as store:
        assert [contents(store, key) for key in ("attic", "cellar")] == before
        load(store, 1, NEW).insert({"state": {"topic": b"milk"}})
