"""Every engine of a store passes the contract of engines."""

import shutil
from pathlib import Path

import pytest

from lab.contracts.engine import EngineContract
from lab.worlds.columns.disks import SimEngine
from tenure.columns.engines.contract import StorageEngine
from tenure.columns.engines.rocksdb import RocksEngine


class MemoryPlace:
    def __init__(self) -> None:
        self._engine = SimEngine()

    def open(self) -> StorageEngine:
        return self._engine

    def crash(self, engine: StorageEngine) -> StorageEngine:
        self._engine.crash()
        return self._engine


class TestSimulatedEngine(EngineContract):
    @pytest.fixture
    def place(self) -> MemoryPlace:
        return MemoryPlace()

    def test_it_loses_what_was_not_synced(self, place: MemoryPlace) -> None:
        engine = place.open()
        engine.make_spaces(["a"])
        engine.apply([("a", b"k", b"1"), ("a", b"l", b"1")])
        engine.sync()
        engine.apply([("a", b"k", b"2"), ("a", b"l", None), ("a", b"m", b"2"), ("a", b"m", b"3")])
        engine = place.crash(engine)
        assert list(engine.cursor("a").walk(b"", None)) == [(b"k", b"1"), (b"l", b"1")]


class RocksPlace:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._crashes = 0

    def open(self) -> StorageEngine:
        return RocksEngine.open(self._path / str(self._crashes))

    def crash(self, engine: StorageEngine) -> StorageEngine:
        """The files as they are at this moment are what a killed process leaves."""
        before = self._path / str(self._crashes)
        self._crashes += 1
        shutil.copytree(before, self._path / str(self._crashes))
        engine.close()
        return self.open()


class TestRocksEngine(EngineContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> RocksPlace:
        return RocksPlace(tmp_path)
