"""The claims of the Cassandra paper about its data model, API, local persistence and inbox search.

There is one test for each claim, with its section. Tests of the cluster cover the paper's claims
about many nodes.
"""

import asyncio
import re
import shutil
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from lab.worlds.columns.disks import SimEngine
from tenure.columns.backends.embedded import EmbeddedBackend
from tenure.columns.engines.contract import EngineBusy
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.engines.rocksdb import MIB, EngineOptions, RocksEngine
from tenure.columns.opening import open_store
from tenure.columns.paths import DELETE
from tenure.columns.replica import Replica
from tenure.columns.requests import RowMutation
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import SchemaError
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tests.patience import DEADLINE_SECONDS, blocking_until

T = Table(
    "t",
    simple=Family(columns=str),
    newest=Family(columns=str, order="time"),
    deep=Family(supers=str, columns=int, order="time"),
    named=Family(supers=str, columns=int),
)
SMALL = EngineOptions(log_bytes=MIB, family_bytes=MIB // 4, statistics=True)


def names(page: Any) -> list[Any]:  # noqa: ANN401 - of any page
    return [each.name for each in page]


# --- 3: data model ---


def test_3_a_table_is_a_map_of_many_dimensions_by_key() -> None:
    with open_store("memory:", T) as store:
        store.insert(T, "k", {"deep": {"s": {1: b"a"}}, "simple": {"c": b"b"}})
        assert store.get(T, "k", "deep", "s", 1).value == b"a"
        assert store.get(T, "k", "simple", "c").value == b"b"
        assert store.get(T, "other", "simple", "c") is None


@pytest.mark.parametrize("size", [1, 16, 36, 65_535])
def test_3_keys_are_strings_typically_of_16_to_36_bytes(size: int) -> None:
    with open_store("memory:", T) as store:
        store.insert(T, "k" * size, {"simple": {"c": b""}})
        assert [row.key for row in store.scan(T)] == ["k" * size]


def test_3_every_operation_on_a_row_is_atomic_however_many_columns_it_has() -> None:
    """A crash at any entry of a mutation leaves none of them: the engine's batch is the row's."""
    engine = MemoryEngine()
    replica = Replica(engine)
    replica.open([T])
    batches: list[int] = []
    apply = engine.apply

    def counted(batch: Any) -> None:  # noqa: ANN401
        batches.append(len(batch))
        apply(batch)

    engine.apply = counted  # type: ignore[method-assign]
    edits = [
        *(Edit("simple", None, b"%d" % n, b"") for n in range(1_000)),
        *(Edit("deep", b"s", b"%08d" % n, b"") for n in range(1_000)),
    ]
    replica.write(RowMutation(T, b"k", edits), Attempt(Version(0, 1)), 1)
    assert len(batches) == 1
    assert batches[0] > len(edits)


def test_3_families_are_simple_or_super_and_a_super_family_is_families_within_one() -> None:
    with open_store("memory:", T) as store:
        store.insert(T, "k", {"deep": {"a": {1: b""}, "b": {1: b"", 2: b""}}})
        assert names(store.get(T, "k", "deep")) == ["a", "b"]
        assert len(store.get(T, "k", "deep", "b")) == 2
        with pytest.raises(SchemaError, match="mapping from the name of each column"):
            store.insert(T, "k", {"deep": {"a": b""}})


def test_3_applications_choose_the_order_of_columns_by_time_or_by_name() -> None:
    with open_store("memory:", T) as store:
        for name in "bca":
            store.insert(T, "k", {"simple": {name: b""}, "newest": {name: b""}})
        for n in (2, 3, 1):
            store.insert(T, "k", {"deep": {"s": {n: b""}}, "named": {"s": {n: b""}}})
        assert names(store.get(T, "k", "simple")) == ["a", "b", "c"]
        assert names(store.get(T, "k", "newest")) == ["a", "c", "b"]
        assert names(store.get(T, "k", "deep", "s")) == [1, 3, 2]
        assert names(store.get(T, "k", "named", "s")) == [1, 2, 3]


def test_3_there_are_several_tables_and_each_has_rows_of_its_own() -> None:
    other = Table("other", simple=Family(columns=int))
    with open_store("memory:", T, other) as store:
        store.insert(T, "k", {"simple": {"c": b"here"}})
        store.insert(other, "k", {"simple": {1: b"there"}})
        store.delete(T, "k")
        assert [row.key for row in store.scan(T)] == []
        assert store.get(other, "k", "simple", 1).value == b"there"


# --- 4: API ---


def test_4_the_api_is_insert_get_and_delete() -> None:
    with open_store("memory:", T) as store:
        store.insert(T, "k", {"simple": {"a": b"1", "b": b"2"}})
        store.insert(T, "k", {"simple": {"a": DELETE}})
        assert store.get(T, "k", "simple", "a") is None
        store.delete(T, "k", "simple", "b")
        assert store.get(T, "k").families == {}


@pytest.mark.parametrize(
    "path", [("simple", "c"), ("simple",), ("deep",), ("deep", "s"), ("deep", "s", 1)]
)
def test_4_a_path_names_a_column_a_family_a_super_family_or_a_column_within(path: Any) -> None:  # noqa: ANN401
    with open_store("memory:", T) as store:
        store.insert(T, "k", {"simple": {"c": b""}, "deep": {"s": {1: b""}}})
        assert store.get(T, "k", *path)
        store.delete(T, "k", *path)
        assert not store.get(T, "k", *path)
        assert list(store.get(T, "k").families) == [{"simple": "deep", "deep": "simple"}[path[0]]]


# --- 5.6 and 5.7: local persistence ---


def test_5_6_a_write_is_in_the_commit_log_before_it_is_in_memory(tmp_path: Path) -> None:
    """At the moment of the answer the write is on the disk, and nothing has been flushed."""
    with open_store(f"rocksdb:{tmp_path / 'store'}", T, log=tmp_path / "log") as store:
        store.insert(T, "k", {"simple": {"c": b"kept"}})
        assert not list((tmp_path / "store").glob("*.sst"))
        shutil.copytree(tmp_path / "log", tmp_path / "copied")
    assert any(b"kept" in each.read_bytes() for each in (tmp_path / "copied").glob("*.log"))


def test_5_6_the_commit_log_has_a_disk_of_its_own(tmp_path: Path) -> None:
    with open_store(f"rocksdb:{tmp_path / 'store'}", T, log=tmp_path / "log") as store:
        store.insert(T, "k", {"simple": {"c": b""}})
        assert list((tmp_path / "log").glob("*.log"))
        assert not list((tmp_path / "store").glob("*.log"))


@pytest.mark.parametrize("by", ["bytes", "number"])
def test_5_6_memory_becomes_a_file_by_its_size_or_its_number_of_objects(
    by: str, tmp_path: Path
) -> None:
    options = EngineOptions(family_entries=500) if by == "number" else SMALL
    engine = RocksEngine.open(tmp_path / "store", None, options)
    engine.make_spaces(["t.f"])
    value = b"" if by == "number" else bytes(1_000)
    for n in range(1_000):
        put(engine, b"%04d" % n, value)
    store = tmp_path / "store"
    blocking_until(lambda: list(store.glob("*.sst")))  # before closing leaves files, too
    engine.close()


def test_5_6_a_read_asks_memory_before_it_looks_into_files(tmp_path: Path) -> None:
    engine = filled(tmp_path, 2_000)
    engine.apply([("t.f", b"key-00007", b"newer")])
    before = blocks(engine)
    assert engine.get("t.f", [b"key-00007"]) == [b"newer"]
    assert blocks(engine) == before
    engine.close()


def test_5_6_a_filter_spares_looking_into_files_that_do_not_have_the_key(tmp_path: Path) -> None:
    engine = filled(tmp_path, 2_000)
    before = blocks(engine)
    for n in range(500):
        assert engine.get("t.f", [b"key-%05dx" % n]) == [None]  # between two existing keys
    assert blocks(engine) - before <= 25  # one in a hundred is the filter's own error
    engine.close()


def test_5_6_an_index_leads_to_the_block_of_a_column(tmp_path: Path) -> None:
    engine = filled(tmp_path, 2_000)
    before = blocks(engine)
    read = counted(engine, "bytes.insert")
    assert engine.get("t.f", [b"key-01999"]) == [bytes(1_000)]
    assert blocks(engine) - before <= 2
    assert 0 < counted(engine, "bytes.insert") - read < 256 << 10  # the paper's piece of a row
    engine.close()


def test_5_6_and_5_7_files_are_merged_and_a_major_compaction_leaves_one(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store")
    engine.make_spaces(["t.f"])
    for n in range(5):
        engine.apply([("t.f", b"%d" % n, b"")])
        engine.flush()
    assert len(list((tmp_path / "store").glob("*.sst"))) == 5
    engine.compact()
    assert len(list((tmp_path / "store").glob("*.sst"))) == 1
    engine.close()


def test_5_7_files_are_merged_with_files_of_like_size_only(tmp_path: Path) -> None:
    engine = filled(tmp_path, 5_000)
    [large] = (tmp_path / "store").glob("*.sst")
    for n in range(40):
        engine.apply([("t.f", b"small-%d" % n, b"")])
        engine.flush()
    engine.close()
    assert large.exists()
    assert len(list((tmp_path / "store").glob("*.sst"))) < 40


def test_5_7_a_file_is_never_changed_once_it_is_written(tmp_path: Path) -> None:
    """So a reader needs no lock: files come and go whole."""
    engine = filled(tmp_path, 2_000)
    for n in range(3):
        before = {each: each.read_bytes() for each in (tmp_path / "store").glob("*.sst")}
        engine.apply([("t.f", b"key-%05d" % n, b"again"), ("t.f", b"key-01%03d" % n, None)])
        engine.flush()
        if n:
            engine.compact()
        assert all(file.read_bytes() == text for file, text in before.items() if file.exists())
    assert len(list((tmp_path / "store").glob("*.sst"))) == 1
    engine.close()


def test_5_7_the_log_rolls_and_goes_when_every_family_is_in_files(tmp_path: Path) -> None:
    """Also when one family got a single entry: it is flushed so that the log may go."""
    engine = RocksEngine.open(tmp_path / "store", None, SMALL)
    engine.make_spaces(["t.f", "t.g"])
    engine.apply([("t.g", b"k", b"")])
    [first] = (tmp_path / "store").glob("*.log")
    deadline, n = monotonic() + DEADLINE_SECONDS, 0
    while first.exists():  # nobody flushes: RocksDB does, in a thread of its own
        assert monotonic() < deadline
        put(engine, b"%05d" % (n % 10_000), bytes(1_000))
        n += 1
    engine.flush()
    put(engine, b"last", b"")
    logs = list((tmp_path / "store").glob("*.log"))
    assert sum(each.stat().st_size for each in logs) < 3 * MIB
    assert EngineOptions().log_bytes == 128 * MIB
    engine.close()


def test_5_7_fast_sync_answers_before_the_disk_has_it_and_normal_after() -> None:
    for sync, is_kept in (("normal", True), ("fast", False)):
        assert asyncio.run(_survives(sync)) is is_kept


async def _survives(sync: Any) -> bool:  # noqa: ANN401
    engine = SimEngine()
    store = ColumnStore(EmbeddedBackend(lambda: engine, [T], sync), {"t": T})
    await store.open()
    await store.insert(T, "k", {"simple": {"c": b""}})
    engine.crash()
    found = await store.get(T, "k", "simple", "c")
    await store.close()
    return found is not None


def test_5_7_the_first_entry_found_is_the_newest() -> None:
    """Replicas merge when they write, so there is one entry of a name, and it is the one."""
    engine = MemoryEngine()
    replica = Replica(engine)
    replica.open([T])
    for time in (5, 3, 9, 1):
        attempt = Attempt(Version(0, time))
        edits = [Edit("simple", None, b"c", b"%d" % time)]
        replica.write(RowMutation(T, b"k", edits), attempt, 10)
    [(_, cell)] = engine.cursor("t.simple").walk(b"", None)
    assert cell.endswith(b"9")


def put(engine: RocksEngine, key: bytes, value: bytes) -> None:
    """Write an entry, as soon as the disk has kept up."""
    try:
        engine.apply([("t.f", key, value)])
    except EngineBusy:
        engine.flush()
        engine.apply([("t.f", key, value)])


def filled(path: Path, count: int) -> RocksEngine:
    engine = RocksEngine.open(path / "store", None, EngineOptions(statistics=True))
    engine.make_spaces(["t.f"])
    for start in range(0, count, 500):
        engine.apply([("t.f", b"key-%05d" % n, bytes(1_000)) for n in range(start, start + 500)])
    engine.flush()
    engine.compact()
    return engine


def blocks(engine: RocksEngine) -> int:
    text = engine.statistics()
    found = re.findall(r"rocksdb\.block\.cache\.data\.(?:hit|miss) COUNT : (\d+)", text)
    return sum(int(each) for each in found)


# --- 6.1: inbox search ---

INBOX = Table(
    "inbox",
    terms=Family(supers=str, columns=int, order="time"),
    interactions=Family(supers=str, columns=int, order="time"),
)


def test_6_1_term_search_and_interactions_have_the_newest_message_first() -> None:
    with open_store("memory:", INBOX) as store:
        for n, (other, text) in enumerate(
            [("bob", "tea at four"), ("eve", "no tea"), ("bob", "ok")]
        ):
            terms = {word: {n: b""} for word in text.split()}
            store.insert(INBOX, "ann", {"terms": terms, "interactions": {other: {n: b""}}})
        assert names(store.get(INBOX, "ann", "terms", "tea")) == [1, 0]
        assert names(store.get(INBOX, "ann", "interactions", "bob")) == [2, 0]


def test_6_1_a_click_into_the_search_bar_has_the_users_index_in_memory(tmp_path: Path) -> None:
    path = f"rocksdb:{tmp_path / 'store'}"
    with open_store(path, INBOX) as store:
        for n in range(300):
            store.insert(INBOX, "ann", {"terms": {f"word-{n % 50}": {n: b""}}})
    with open_store(path, INBOX, options=EngineOptions(statistics=True)) as store:
        store.warm(INBOX, "ann")
        store.wait(_warmed(store.store))
        engine = store.store.backend.replica.engine  # type: ignore[attr-defined]
        before = _fetched(engine)
        assert len(store.get(INBOX, "ann", "terms", "word-7")) == 6
        assert _fetched(engine) == before


async def _warmed(store: Any) -> None:  # noqa: ANN401
    await store.warmed()


def _fetched(engine: RocksEngine) -> int:
    return counted(engine, "miss")


def counted(engine: RocksEngine, what: str) -> int:
    """Return what RocksDB has counted of data blocks so far."""
    name = re.escape(f"rocksdb.block.cache.data.{what}")
    found = re.search(rf"{name} COUNT : (\d+)", engine.statistics())
    assert found
    return int(found[1])
