"""A commit log that lacks what was synced of it is damage; one that a crash has ended is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tenure.columns.engines.log_watch import NOTE, LogWatch, check_log
from tenure.columns.opening import open_store
from tenure.errors import StoreDamaged
from tests.unit.columns.test_directories import TABLE, refused

CRASHING = """
import os, sys
from tenure.columns.opening import open_store
from tests.unit.columns.test_directories import TABLE
store = open_store(sys.argv[1], TABLE, log=sys.argv[2] or None).__enter__()
for number in range(20):
    store.insert(TABLE, f"k{number}", {"f": {"x": b"acknowledged"}})
os._exit(0)
"""


@pytest.fixture(params=["", "log"], ids=["beside", "elsewhere"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / request.param if request.param else None


@pytest.fixture
def path(tmp_path: Path, log: Path | None) -> Path:
    """A store whose process ended without closing it."""
    store = tmp_path / "store"
    program = [sys.executable, "-c", CRASHING, f"rocksdb:{store}", str(log or "")]
    subprocess.run(program, check=True)
    return store


def newest(path: Path, log: Path | None) -> Path:
    return max((log or path).glob("*.log"))


@pytest.mark.parametrize("cut", [1, 100, 700])
def test_a_log_that_was_cut_is_damage_and_nothing_is_touched(
    path: Path, log: Path | None, cut: int
) -> None:
    file = newest(path, log)
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    refused(path, StoreDamaged, file.name, f"{len(whole)} of it were synced", log=log)
    assert file.read_bytes() == whole[:-cut]
    file.write_bytes(whole)
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        assert store.get(TABLE, "k19", "f", "x").value == b"acknowledged"


def test_what_was_not_synced_may_be_torn(path: Path, log: Path | None) -> None:
    file = newest(path, log)
    file.write_bytes(file.read_bytes() + b"a record that a crash has ended"[:9])
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        assert store.get(TABLE, "k19", "f", "x").value == b"acknowledged"
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        store.insert(TABLE, "k20", {"f": {"x": b"later"}})
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        assert store.get(TABLE, "k20", "f", "x").value == b"later"


@pytest.mark.parametrize("damage", ["torn", "no note", "missing"])
def test_a_note_that_is_not_whole_says_nothing(path: Path, log: Path | None, damage: str) -> None:
    note, file = path / NOTE, newest(path, log)
    said = note.read_bytes()
    changed = said.replace(b'":', b'":1', 1) if damage == "torn" else b"\0" * len(said)
    note.write_bytes(changed)
    if damage == "missing":
        note.unlink()
    file.write_bytes(file.read_bytes()[:-100])
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        assert store.get(TABLE, "k0", "f", "x").value == b"acknowledged"


def test_each_log_is_noted_and_those_that_are_gone_do_not_count(tmp_path: Path) -> None:
    first, second = tmp_path / "000004.log", tmp_path / "000009.log"
    watch = LogWatch(tmp_path, tmp_path)
    first.write_bytes(bytes(10))
    watch.note(watch.look())
    first.write_bytes(bytes(30))
    watch.note(watch.look())
    second.write_bytes(bytes(5))
    watch.note(watch.look())
    second.write_bytes(bytes(7))
    watch.note(watch.look())
    check_log(tmp_path, tmp_path)
    for file, size in ((first, 30), (second, 7)):
        file.write_bytes(bytes(size - 1))
        with pytest.raises(StoreDamaged, match=f"{file.name} has {size - 1} bytes, and {size} "):
            check_log(tmp_path, tmp_path)
        file.write_bytes(bytes(size))
    first.unlink()
    check_log(tmp_path, tmp_path)
