"""A store whose commit log is in a directory of its own: both are found together, or not opened."""

import shutil
from pathlib import Path

import pytest

from tenure.columns.engines.directory import LOG_MARK
from tenure.columns.opening import open_store
from tenure.errors import ConfigurationError, StoreDamaged
from tests.unit.columns.test_directories import TABLE, refused


def test_a_copy_of_a_directory_does_not_take_the_log_from_the_store(tmp_path: Path) -> None:
    """Both would write one log, and each would remove what the other has not yet in files."""
    path, log, moved = (tmp_path / each for each in ("store", "log", "moved"))
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        store.insert(TABLE, "k", {"f": {"x": b"there"}})
        shutil.copytree(path, tmp_path / "copy")
        refused(tmp_path / "copy", StoreDamaged, str(path), "backup", LOG_MARK, log=log)
    refused(tmp_path / "copy", StoreDamaged, str(path), "backup", LOG_MARK, log=log)
    path.rename(moved)
    refused(moved, StoreDamaged, "correct the line", log=log)
    mark = log / LOG_MARK
    mark.write_text(mark.read_text("utf-8").replace(str(path), str(moved)), "utf-8")
    with open_store(f"rocksdb:{moved}", TABLE, log=log) as store:
        assert store.get(TABLE, "k", "f", "x").value == b"there"


def test_the_log_is_found_where_it_was_or_nothing_is_opened(tmp_path: Path) -> None:
    path, log, other = (tmp_path / each for each in ("store", "log", "other"))
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        store.insert(TABLE, "k", {"f": {"x": b"1"}})
    assert not list(path.glob("*.log"))
    assert list(log.glob("*.log"))
    refused(path, ConfigurationError, "log=", str(log))
    refused(path, ConfigurationError, str(log), log=other)
    (log / LOG_MARK).rename(tmp_path / "kept")
    refused(path, StoreDamaged, "mounted", log=log)
    with open_store(f"rocksdb:{tmp_path / 'another'}", TABLE, log=other):
        pass
    log.rename(tmp_path / "ours")
    other.rename(log)
    refused(path, StoreDamaged, "is not the commit log of", log=log)
    log.rename(other)
    (tmp_path / "ours").rename(log)
    (tmp_path / "kept").rename(log / LOG_MARK)
    with open_store(f"rocksdb:{path}", TABLE, log=log) as store:
        assert store.get(TABLE, "k", "f", "x").value == b"1"
    with (
        pytest.raises(ConfigurationError, match="this store alone"),
        open_store(f"rocksdb:{tmp_path / 'second'}", TABLE, log=log),
    ):
        pass
