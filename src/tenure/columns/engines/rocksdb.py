"""An engine on RocksDB, which has a commit log, and sorted tables in memory and in merged files.

RocksDB is what the Cassandra paper builds in section 5.6, down to the options: the log is written
first, on a disk of its own if asked; each family has its table in memory and its files; files of
similar sizes are merged; Bloom filters and block indexes lead to a column. This file adds little:
it flushes a family by its number of entries, and does not block the interpreter.

The Python binding holds the interpreter's lock while it puts, writes and iterates, and releases it
while it syncs, flushes, compacts and gets several keys at once. A renewal of a lease must not wait
for a disk. So writing a batch never includes a sync, and never waits when RocksDB slows writes
down: RocksDB refuses instead, and the writer tries again (`EngineBusy`).
"""

import ctypes
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias
from weakref import WeakSet, ref

import msgspec

from tenure.base.names import shown
from tenure.columns.engines.contract import Entry
from tenure.columns.engines.directory import (
    DirectoryWatch,
    Translated,
    mark_backup,
    prepare,
    rocksdict,
)
from tenure.columns.engines.log_watch import LogWatch, check_log
from tenure.columns.engines.manifest import ManifestWatch, check_manifest
from tenure.errors import ConfigurationError, ForkedError

if TYPE_CHECKING:
    from rocksdict import ColumnFamily, Options, Rdict, RdictIter

Walk: TypeAlias = Generator[tuple[bytes, bytes], None, None]

MIB = 1 << 20
FILES_TO_MERGE = 16
"""How many files a family has before any are merged. Beyond that many, different sizes are merged
too.
"""
SIMILAR_PERCENT = 100
"""A file is merged with those before it unless it is more than twice as large (paper 5.7)."""
NEVER_PERCENT = 1_000_000_000
BLOCK_BYTES = 16 << 10
BLOOM_BITS = 10
COUNTINGS = 16
"""How often entries are counted while a family fills its table in memory."""
DELETED_WINDOW = 65_536
DELETED_IN_WINDOW = 16_384
"""A file is merged if this many of so many consecutive entries are deleted: a reader skips them in
one call, which holds the interpreter's lock.
"""


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How much memory an engine uses, and how much it gathers before it writes files."""

    log_bytes: int = 128 * MIB
    """The size of the commit log above which families are flushed so that old logs can be removed;
    the paper's figure.
    """
    family_bytes: int = 16 * MIB
    """How many bytes one family gathers in memory before it writes a file."""
    family_entries: int = 1_000_000
    """The same, as a number of entries: many small ones take more than their bytes."""
    cache_bytes: int = 64 * MIB
    """Blocks of files that are kept in memory, of all families together."""
    statistics: bool = False
    """Count blocks and much else; it costs a few percent."""

    def __post_init__(self) -> None:
        for name in ("log_bytes", "family_bytes", "family_entries", "cache_bytes"):
            given = getattr(self, name)
            if type(given) is not int or not 0 < given < 1 << 48:
                raise ConfigurationError(f"{name} is a number from 1, not {shown(given)}")


class RocksCursor:
    """See `Cursor`. An iterator of RocksDB, which holds the instant at which it was made."""

    def __init__(self, iterator: "RdictIter", translated: Translated) -> None:
        self._iterator: RdictIter | None = iterator
        self._walk: Callable[[], Walk | None] = lambda: None
        """The last walk, held weakly because a walk refers to its cursor."""
        self._translated = translated

    def get(self, key: bytes) -> bytes | None:
        iterator = self.iterator
        iterator.seek(key)
        if iterator.valid() and iterator.key() == key:
            value: bytes = iterator.value()
            return value
        self._check(iterator)
        return None

    def walk(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        walk = self._backward(lower, upper) if reverse else self._forward(lower, upper)
        self._walk = ref(walk)
        return walk

    def _forward(self, lower: bytes, upper: bytes | None) -> Walk:
        iterator = self.iterator
        iterator.seek(lower)
        while iterator.valid():
            key = iterator.key()
            if upper is not None and key >= upper:
                return
            yield key, iterator.value()
            iterator.next()
        self._check(iterator)

    def _backward(self, lower: bytes, upper: bytes | None) -> Walk:
        iterator = self.iterator
        if upper is None:
            iterator.seek_to_last()
        else:
            iterator.seek_for_prev(upper)
            if iterator.valid() and iterator.key() == upper:
                iterator.prev()
        while iterator.valid():
            key = iterator.key()
            if key < lower:
                return
            yield key, iterator.value()
            iterator.prev()
        self._check(iterator)

    @property
    def iterator(self) -> "RdictIter":
        """RocksDB's iterator. It keeps the directory locked, so closing the engine drops it."""
        assert self._iterator is not None, "the engine is closed"
        return self._iterator

    def _check(self, iterator: "RdictIter") -> None:
        """Raise if the iterator has failed: one that cannot read on looks as if it was at the
        end.
        """
        with self._translated:
            iterator.status()

    def close(self) -> None:
        """Release the directory, even if somebody still has an unfinished walk."""
        self._iterator = None
        if (walk := self._walk()) is not None:
            walk.close()


class RocksEngine:
    def __init__(self, path: Path, log: Path | None, options: EngineOptions) -> None:
        self.path = path
        self._log = log
        self._options = options
        self._translated = Translated(path)
        self._binding = rocksdict()
        self._cache = self._binding.Cache(options.cache_bytes)
        self._cursors: WeakSet[RocksCursor] = WeakSet()
        self._handles: dict[str, ColumnFamily] = {}
        self._spaces: dict[str, Rdict] = {}
        self._unseen = 0
        """Entries written since those in memory were counted."""
        self._settings = self._settings_of_all()
        self._write = rocksdict().WriteOptions()
        self._write.no_slowdown = True
        self._directory = DirectoryWatch(path, log)
        _Threads.process = _Threads.process or os.getpid()
        self._db = self._opened()
        _OPEN.add(self)
        self._log_watch = LogWatch(path, log or path)
        self._manifest = ManifestWatch(path)
        self._manifest.note()

    @classmethod
    def open(
        cls, path: Path, log: Path | None = None, options: EngineOptions | None = None
    ) -> Self:
        """Open the engine in a directory, which is made if it is missing. Raises StoreError if the
        directory is in use, damaged, of a newer version or not writable; then nothing was touched.
        Raises ForkedError in a child of a process that has opened one.
        """
        _Threads.check()
        rocksdict()
        with Translated(path):
            prepare(path, log)
            check_manifest(path)
            check_log(path, log or path)
            return cls(path, log, options or EngineOptions())

    def _opened(self) -> "Rdict":
        of = rocksdict()
        is_new = not (self.path / "CURRENT").exists()
        known = ["default"] if is_new else of.Rdict.list_cf(str(self.path), self._settings)
        families = {name: self._settings_of_one() for name in known}
        db: Rdict = of.Rdict(str(self.path), self._settings, families)
        for name in known:
            if name != "default":
                self._adopt(db, name)
        return db

    def _adopt(self, db: "Rdict", name: str) -> None:
        self._spaces[name] = db.get_column_family(name)
        self._handles[name] = db.get_column_family_handle(name)

    def _settings_of_all(self) -> "Options":
        of, options = rocksdict(), self._settings_of_one()
        options.create_if_missing(True)  # noqa: FBT003
        options.create_missing_column_families(True)  # noqa: FBT003
        options.set_max_total_wal_size(self._options.log_bytes)
        if self._log is not None:
            options.set_wal_dir(str(self._log))
        # The end of the log may be torn. Anything else that cannot be read there was acknowledged.
        options.set_wal_recovery_mode(of.DBRecoveryMode.tolerate_corrupted_tail_records())
        options.set_max_background_jobs(2)
        options.set_bytes_per_sync(MIB)
        options.set_keep_log_file_num(2)
        options.set_max_log_file_size(MIB)
        if self._options.statistics:
            options.enable_statistics()
        return options

    def _settings_of_one(self) -> "Options":
        of = rocksdict()
        options: Options = of.Options(raw_mode=True)
        options.set_write_buffer_size(self._options.family_bytes)
        options.set_max_write_buffer_number(4)
        options.set_compaction_style(of.DBCompactionStyle.universal())
        merging = of.UniversalCompactOptions()
        merging.stop_style = of.UniversalCompactionStopStyle.similar()
        merging.size_ratio = SIMILAR_PERCENT
        merging.max_size_amplification_percent = NEVER_PERCENT
        options.set_universal_compaction_options(merging)
        options.set_level_zero_file_num_compaction_trigger(FILES_TO_MERGE)
        options.set_level_zero_slowdown_writes_trigger(4 * FILES_TO_MERGE)
        options.set_level_zero_stop_writes_trigger(8 * FILES_TO_MERGE)
        options.add_compact_on_deletion_collector_factory(DELETED_WINDOW, DELETED_IN_WINDOW, 0.0)
        options.set_compression_type(of.DBCompressionType.lz4())
        options.set_bottommost_compression_type(of.DBCompressionType.zstd())
        blocks = of.BlockBasedOptions()
        blocks.set_block_size(BLOCK_BYTES)
        blocks.set_bloom_filter(BLOOM_BITS, False)  # noqa: FBT003
        blocks.set_block_cache(self._cache)
        options.set_block_based_table_factory(blocks)
        return options

    def make_spaces(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._spaces:
                with self._translated:
                    self._db.create_column_family(name, self._settings_of_one())
                    self._adopt(self._db, name)

    def drop_spaces(self, names: Iterable[str]) -> None:
        for name in names:
            del self._spaces[name], self._handles[name]
            with self._translated:
                self._db.drop_column_family(name)

    def spaces(self) -> set[str]:
        return set(self._spaces)

    def get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            found = self._spaces[space].get(keys if type(keys) is list else list(keys))
        except Exception as error:
            self._translated.raise_from(error)
            raise
        assert found is not None
        return list(found)

    def apply(self, batch: Sequence[Entry]) -> None:
        writing = self._binding.WriteBatch(raw_mode=True)
        handles, put = self._handles, writing.put
        for space, key, value in batch:
            if value is None:
                writing.delete(key, handles[space])
            else:
                put(key, value, handles[space])
        try:
            self._db.write(writing, self._write)
        except Exception as error:
            self._translated.raise_from(error)
            raise
        self._unseen += len(batch)
        if self._unseen > self._options.family_entries // COUNTINGS:
            self._unseen = 0
            self._flush_the_many()

    def _flush_the_many(self) -> None:
        """Flush the families that have too many entries in memory. RocksDB counts entries, but
        flushes automatically only by bytes.
        """
        most = self._options.family_entries
        for space in self._spaces.values():
            if (space.property_int_value("rocksdb.num-entries-active-mem-table") or 0) >= most:
                space.flush(wait=False)

    def cursor(self, space: str) -> RocksCursor:
        return self._cursor(self._spaces[space].iter())

    def passing_cursor(self, space: str) -> RocksCursor:
        passing = self._binding.ReadOptions()
        passing.fill_cache(False)  # noqa: FBT003
        return self._cursor(self._spaces[space].iter(passing))

    def _cursor(self, iterator: "RdictIter") -> RocksCursor:
        cursor = RocksCursor(iterator, self._translated)
        self._cursors.add(cursor)
        return cursor

    def sync(self) -> None:
        logs = self._log_watch.look()
        with self._translated:
            self._db.flush_wal(True)  # noqa: FBT003
        self._log_watch.note(logs)
        self._directory.check()
        self._manifest.note()

    def flush(self) -> None:
        with self._translated:
            for space in list(self._spaces.values()):
                space.flush()

    def compact(self) -> None:
        of = rocksdict()
        how = of.CompactOptions()
        how.set_bottommost_level_compaction(of.BottommostLevelCompaction.force())
        with self._translated:
            for space in list(self._spaces.values()):
                space.compact_range(None, None, how)

    def backup(self, directory: str) -> None:
        """See `StorageEngine.backup`: a checkpoint, made of links if it is on the same disk."""
        target = Path(directory)
        with Translated(target):
            self._db.flush_wal(True)  # noqa: FBT003
            rocksdict().Checkpoint(self._db).create_checkpoint(directory)
            mark_backup(target)

    def figures(self) -> dict[str, dict[str, int]]:
        asked = {
            "entries": "estimate-num-keys",
            "bytes": "total-sst-files-size",
            "memory": "cur-size-all-mem-tables",
            "files": "num-files-at-level0",
        }
        return {
            name: {
                what: space.property_int_value(f"rocksdb.{of}") or 0 for what, of in asked.items()
            }
            for name, space in self._spaces.items()
        }

    def statistics(self) -> str:
        """RocksDB's counters, if `EngineOptions.statistics` asked for them."""
        return self._settings.get_statistics() or ""

    def close(self) -> None:
        """See `StorageEngine.close`. The directory stays locked until the last handle is gone.

        Closing writes what is in memory to files. If the disk refuses, the log still has it.
        """
        for cursor in list(self._cursors):
            cursor.close()
        for space in (*self._spaces.values(), self._db):
            with suppress(Exception):
                space.close()
        self._spaces.clear()
        self._handles.clear()
        del space
        del self._db
        self._manifest.note()


_OPEN: WeakSet[RocksEngine] = WeakSet()


class _Threads:
    """RocksDB's threads, which all engines of a process share, and which a forked child lacks."""

    process: int | None = None
    """The process in which they run; None before the first engine."""

    @classmethod
    def check(cls) -> None:
        """Raise ForkedError where they are gone, but RocksDB counts on them: an engine would never
        flush there, and closing it would hang.
        """
        if cls.process not in (None, os.getpid()):
            raise ForkedError(
                f"this process was forked by one that has opened a store ({cls.process}), and the "
                "threads of RocksDB are not in it: fork before the first store is opened, or start "
                "a new process"
            )

    @classmethod
    def leave_alone(cls) -> None:
        """In a forked child: what belongs to the parent is neither closed nor waited for.

        A child that ends would drop its copies of handles, and RocksDB would then write to the
        files of the parent. So the child keeps them. And at exit RocksDB would join the threads,
        which crashes. The C library calls first what was registered last, so here it ends the
        process at once; Python has done all of its own by then.
        """
        if cls.process is None:
            return
        for engine in _OPEN:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
        if hasattr(_C, "on_exit"):  # in glibc
            _C.on_exit(_C["_exit"], None)


_C = ctypes.CDLL(None)
os.register_at_fork(after_in_child=_Threads.leave_alone)
