"""A directory that cannot be used is refused with the way out, and nothing in it is touched."""

import json
import os
import pkgutil
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tenure.columns.engines import manifest
from tenure.columns.engines.directory import MARK, prepare
from tenure.columns.engines.log_watch import NOTE
from tenure.columns.engines.manifest import ManifestWatch, check_manifest
from tenure.columns.engines.rocksdb import EngineOptions, RocksEngine
from tenure.columns.node_replica import NodeReplica
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import (
    ConfigurationError,
    SchemaError,
    StoreDamaged,
    StoreInUse,
    StoreTooNew,
    StoreUnwritable,
    WriteUnknown,
)
from tests.patience import blocking_until

TABLE = Table("t", f=Family(columns=str))
NOT_DATA = ("LOG", "LOCK", "OPTIONS", "rocksdict-config")
"""Files that RocksDB writes about itself whenever it looks."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with some entries in files, and some in its log."""
    path = tmp_path / "store"
    with open_store(f"rocksdb:{path}", TABLE) as store:
        for n in range(20):
            store.insert(TABLE, f"row-{n}", {"f": {"x": b"%d" % n}})
    engine = RocksEngine.open(path)
    engine.flush()
    engine.close()
    with open_store(f"rocksdb:{path}", TABLE) as store:
        for n in range(20, 40):
            store.insert(TABLE, f"row-{n}", {"f": {"x": b"%d" % n}})
        shutil.copytree(path, tmp_path / "killed")  # closing would empty the log
    return tmp_path / "killed"


def data(path: Path) -> dict[str, bytes]:
    files = [each for each in path.rglob("*") if each.is_file()]
    return {str(each): each.read_bytes() for each in files if not each.name.startswith(NOT_DATA)}


def count(path: Path) -> int:
    with open_store(f"rocksdb:{path}", TABLE) as store:
        return sum(1 for _ in store.scan(TABLE))


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    before = data(path)
    yield
    assert data(path) == before


def refused(path: Path, kind: type[Exception], *says: str, log: Path | None = None) -> None:
    with (
        untouched(path),
        pytest.raises(kind) as raised,
        open_store(f"rocksdb:{path}", TABLE, log=log),
    ):
        pass
    for each in says:
        assert each in str(raised.value)


def test_a_directory_is_open_once(path: Path) -> None:
    with open_store(f"rocksdb:{path}", TABLE) as store:
        refused(path, StoreInUse, str(path), "close it there")
        assert store.get(TABLE, "row-1", "f", "x").value == b"1"
        program = f"import rocksdict; rocksdict.Rdict({str(path)!r})"
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert b"lock" in found.stderr.lower()
    assert count(path) == 40


def test_closing_lets_go_of_the_directory_while_a_cursor_is_alive(path: Path) -> None:
    engine = RocksEngine.open(path)
    cursor = engine.cursor("t.f")
    walk = cursor.walk(b"", None)
    next(walk)
    engine.close()
    assert count(path) == 40
    assert list(walk) == []  # it was ended


def test_what_is_not_a_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    refused(tmp_path, ConfigurationError, "not a store of tenure", "another directory")
    refused(tmp_path / "letter.txt", ConfigurationError, "not a directory")


def test_a_place_that_cannot_be_written_is_named() -> None:
    with (
        pytest.raises(StoreUnwritable, match="needs to write there"),
        open_store("rocksdb:/proc/tenure/store", TABLE),
    ):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_named(path: Path) -> None:
    path.chmod(0o500)
    refused(path, StoreUnwritable, "no permission to write")
    path.chmod(0o700)


def test_a_newer_format_is_left_to_a_newer_tenure(path: Path) -> None:
    said = json.loads((path / MARK).read_text())
    (path / MARK).write_text(json.dumps(said | {"format": 2}))
    refused(path, StoreTooNew, "format 2", "reads 1")


@pytest.mark.parametrize("text", [b"{", b'{"format": 1, "identity": "\xb3"}'])
def test_a_mark_that_cannot_be_read_is_damage(path: Path, text: bytes) -> None:
    (path / MARK).write_bytes(text)
    refused(path, StoreDamaged, MARK, "from a backup")


@pytest.mark.parametrize("kind", ["CURRENT", "MANIFEST-*", "*.sst"])
def test_a_file_that_is_gone_is_damage_and_the_rest_is_kept(path: Path, kind: str) -> None:
    [lost, *_] = sorted(path.glob(kind))
    shutil.move(lost, path.parent / lost.name)
    refused(path, StoreDamaged, str(path), "tenure columns restore")
    shutil.move(path.parent / lost.name, lost)
    assert count(path) == 40


@pytest.mark.parametrize("cut", [1, 5, 40, 200])
def test_a_manifest_that_was_cut_is_damage_and_the_rest_is_kept(path: Path, cut: int) -> None:
    """RocksDB opens the store without the files that the missing lines name, and removes them."""
    manifest = path / (path / "CURRENT").read_text().strip()
    text = manifest.read_bytes()
    manifest.write_bytes(text[:-cut])
    refused(path, StoreDamaged, manifest.name, "tenure columns restore")
    manifest.write_bytes(text)
    assert count(path) == 40


@pytest.mark.parametrize("is_closed", [True, False])
def test_of_what_a_store_has_in_files_no_line_is_missing_unnoticed(
    is_closed: bool, tmp_path: Path
) -> None:
    """These are the files that it wrote before the last sync, or by the time it was closed."""
    path, copy = tmp_path / "store", tmp_path / "copy"
    engine = RocksEngine.open(path)
    engine.make_spaces(["a.b"])
    engine.apply([("a.b", b"k", b"v")])
    if is_closed:
        engine.sync()
        engine.flush()
        engine.close()
        shutil.copytree(path, copy)
    else:
        engine.flush()
        engine.sync()
        shutil.copytree(path, copy)
        engine.close()
    cut = copy / (copy / "CURRENT").read_text().strip()
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(StoreDamaged, match=cut.name):
        RocksEngine.open(copy)


def test_a_manifest_that_another_one_replaced_says_nothing_of_that_one(path: Path) -> None:
    """RocksDB begins one whenever it opens a store, and may be killed before it is noted."""
    (path / manifest.MARK).write_text('{"name": "MANIFEST-000001", "bytes": 1000000}')
    assert count(path) == 40


def test_a_manifest_is_synced_when_it_is_noted_and_only_if_it_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever file CURRENT names: RocksDB may begin another one while the store is open."""
    first, second = tmp_path / "MANIFEST-000001", tmp_path / "MANIFEST-000002"
    synced: list[str] = []
    whole = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    first.write_bytes(b"lines")
    (tmp_path / "CURRENT").write_text(f"{first.name}\n")
    watch = ManifestWatch(tmp_path)
    watch.note()
    watch.note()
    assert synced == [first.name]
    first.write_bytes(b"more lines")
    watch.note()
    assert synced == [first.name] * 2
    second.write_bytes(b"line")
    (tmp_path / "CURRENT").write_text(f"{second.name}\n")
    first.unlink()
    watch.note()
    assert synced == [first.name, first.name, second.name]
    check_manifest(tmp_path)
    second.write_bytes(b"lin")
    with pytest.raises(StoreDamaged, match="has 3 bytes, and had 4"):
        check_manifest(tmp_path)


def test_a_block_that_was_changed_is_damage_when_it_is_read(path: Path) -> None:
    whole = count(path)
    for file in path.glob("*.sst"):
        text = bytearray(file.read_bytes())
        text[10] ^= 0xFF
        file.write_bytes(text)
    with pytest.raises(StoreDamaged, match=r"\.sst"):
        count(path)
    assert whole == 40


def newest_log(path: Path) -> Path:
    return max(path.glob("*.log"), key=lambda each: each.stat().st_size)


def test_a_torn_end_of_the_log_loses_only_what_was_torn(path: Path) -> None:
    log = newest_log(path)
    text = log.read_bytes()
    log.write_bytes(text[:-5])
    (path / NOTE).unlink()  # otherwise what was torn is known to have been synced
    assert count(path) == 39


def test_damage_in_the_middle_of_the_log_is_not_taken_for_its_end(path: Path) -> None:
    log = newest_log(path)
    text = bytearray(log.read_bytes())
    text[len(text) // 2] ^= 0xFF
    log.write_bytes(text)
    refused(path, StoreDamaged, str(path))


def test_a_store_that_was_not_made_whole_is_made_again(path: Path) -> None:
    for each in path.iterdir():
        if each.name != MARK:
            each.unlink()
    assert count(path) == 0


FULL = """
import resource, signal, sys
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import WriteUnknown, StoreError
table = Table("t", f=Family(columns=str))
with open_store(sys.argv[1], table) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    kept = 0
    try:
        for n in range(1_000):
            store.insert(table, f"new-{n:04}", {"f": {"x": bytes(1_000)}})
            kept += 1
    except WriteUnknown as error:
        assert isinstance(error.__cause__, StoreError), error
        print(kept, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_a_full_disk_is_told_and_loses_nothing_that_was_acknowledged(path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", FULL, f"rocksdb:{path}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    kept = int(found.stdout)
    assert 0 < kept < 1_000
    with open_store(f"rocksdb:{path}", TABLE) as store:
        keys = [row.key for row in store.scan(TABLE, start="new-")]
    assert keys[:kept] == [f"new-{n:04}" for n in range(kept)]
    assert WriteUnknown("", None).write is None


@pytest.mark.parametrize("how", ["removed", "emptied", "moved", "replaced"])
@pytest.mark.parametrize("which", ["store", "log"])
def test_a_directory_that_is_taken_away_acknowledges_nothing_any_more(
    which: str, how: str, tmp_path: Path
) -> None:
    """Whatever is written then is in files without a name, or in another place: it is forgotten."""
    path, log = tmp_path / "store", tmp_path / "log"
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        store.insert(TABLE, "k", {"f": {"x": b"1"}})
        taken = tmp_path / which
        if how == "emptied":
            for each in taken.iterdir():
                each.unlink()
        else:
            taken.rename(tmp_path / "elsewhere")
        if how == "removed":
            shutil.rmtree(tmp_path / "elsewhere")
        if how == "replaced":
            shutil.copytree(tmp_path / "elsewhere", taken)
        with pytest.raises(WriteUnknown, match=f"{which} is no longer the directory"):
            store.insert(TABLE, "k", {"f": {"x": b"2"}})


def test_a_family_that_is_not_declared_today_is_not_forgotten(tmp_path: Path) -> None:
    url = f"rocksdb:{tmp_path / 'store'}"
    wide = Table("t", f=Family(columns=str), g=Family(columns=int))
    for table in (wide, TABLE):
        with open_store(url, table) as store:
            store.insert(table, "k", {"f": {"x": b"1"}})
    other = Table("t", g=Family(columns=str))
    with pytest.raises(SchemaError, match="columns=int"), open_store(url, other):
        pass


def test_without_rocksdict_the_extra_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['rocksdict'] = None\n"
        "from tenure.columns.opening import open_store\n"
        "from tenure.columns.tables import Family, Table\n"
        f"with open_store('rocksdb:{tmp_path / 'store'}', Table('t', f=Family(columns=str))): pass"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "pip install 'tenure[columns]'" in found.stderr
    assert not (tmp_path / "store").exists()


def test_families_become_files_by_their_number_of_entries(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store", None, EngineOptions(family_entries=1_000))
    engine.make_spaces(["a.b"])
    for start in range(0, 5_000, 100):
        engine.apply([("a.b", b"%05d" % n, b"") for n in range(start, start + 100)])
    blocking_until(lambda: engine.figures()["a.b"]["bytes"])  # before closing leaves files, too
    engine.close()


class Power(BaseException):
    """It failed."""


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.rename", "os.open"])
@pytest.mark.parametrize("nth", range(4))
def test_a_store_whose_making_the_power_ended_is_made_again(
    step: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = tmp_path / "store", tmp_path / "log"
    module, _, name = step.rpartition(".")
    left = [nth]
    whole = getattr(pkgutil.resolve_name(module), name)

    def fail(*arguments: object, **named: object) -> object:
        if not left[0]:
            raise Power
        left[0] -= 1
        return whole(*arguments, **named)

    with monkeypatch.context() as failing, suppress(Power):
        failing.setattr(step, fail)
        prepare(path, log)
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        store.insert(TABLE, "k", {"f": {"x": b"1"}})
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        assert store.get(TABLE, "k", "f", "x").value == b"1"


MAKER = """
import sys
from tenure.columns.engines.directory import prepare
from pathlib import Path
sys.stdin.readline()
prepare(Path(sys.argv[1]) / "store", Path(sys.argv[1]) / "log")
"""


def test_processes_that_make_one_store_at_once_agree(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKER, str(tmp_path)]
    makers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for maker in makers:
        maker.communicate(b"now\n")
        assert maker.returncode == 0
    with open_store(f"rocksdb:{tmp_path / 'store'}", TABLE, log=tmp_path / "log") as store:
        store.insert(TABLE, "k", {"f": {"x": b"1"}})


@pytest.mark.parametrize(
    "given",
    [
        {"log": 3},
        {"options": 3},
        {"options": {"log_bytes": 1}},
        {"driver": "x"},
        {"sync": None},
        {"create": "no"},
    ],
)
def test_an_argument_of_a_wrong_kind_is_named(given: dict[str, Any], tmp_path: Path) -> None:
    [name] = given
    with pytest.raises(ConfigurationError, match=name):
        open_store(f"rocksdb:{tmp_path / 'store'}", TABLE, **given)
    for each in ("log_bytes", "family_bytes", "family_entries", "cache_bytes"):
        for wrong in (None, 0, -1, "1", 1 << 60):
            with pytest.raises(ConfigurationError, match=each):
                EngineOptions(**{each: wrong})  # type: ignore[arg-type]


def test_the_rows_of_a_node_are_not_opened_without_its_cluster(tmp_path: Path) -> None:
    """A delete that is swept here alone comes back from the other replicas."""
    path = tmp_path / "rows"
    node = NodeReplica(RocksEngine.open(path), lambda: 1)
    node.open([TABLE])
    node.load()
    node.engine.sync()
    node.engine.close()
    with (
        pytest.raises(ConfigurationError, match=r"rows of a node.*columns:http://HOST:PORT"),
        open_store(f"rocksdb:{path}", TABLE),
    ):
        pass
    node = NodeReplica(RocksEngine.open(path), lambda: 1)  # no lock is left behind
    node.open([TABLE])
    node.engine.close()


def test_what_a_former_release_kept_of_refused_writes_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with open_store(f"rocksdb:{path}", TABLE) as store:
        store.insert(TABLE, "row", {"f": {"x": b"1"}})
    engine = RocksEngine.open(path)
    engine.make_spaces(["t/traces"])
    engine.apply([("t/traces", b"k", b"v")])
    engine.close()
    with open_store(f"rocksdb:{path}", TABLE) as store:
        assert store.get(TABLE, "row", "f", "x").value == b"1"
    engine = RocksEngine.open(path)
    assert "t/traces" not in engine.spaces()
    assert engine.spaces() >= {"t.f", "t/rows", "t/doomed"}
    engine.close()
