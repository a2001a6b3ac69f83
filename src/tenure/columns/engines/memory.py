"""An engine in memory: its entries are gone with the process."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from tenure.columns.engines.contract import Entry
from tenure.errors import Unsupported


class _Space:
    """Entries, and their keys in order. Cursors share both until an entry changes."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.values: dict[bytes, bytes] = {}
        self._is_shared = False

    def put(self, key: bytes, value: bytes | None) -> None:
        if self._is_shared:
            self.keys, self.values = list(self.keys), dict(self.values)
            self._is_shared = False
        is_there = key in self.values
        if value is not None:
            if not is_there:
                insort(self.keys, key)
            self.values[key] = value
        elif is_there:
            del self.values[key]
            del self.keys[bisect_left(self.keys, key)]

    def cursor(self) -> "MemoryCursor":
        self._is_shared = True
        return MemoryCursor(self.keys, self.values)


class MemoryCursor:
    def __init__(self, keys: list[bytes], values: dict[bytes, bytes]) -> None:
        self._keys = keys
        self._values = values

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def walk(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        end = len(self._keys) if upper is None else bisect_left(self._keys, upper)
        places = range(bisect_left(self._keys, lower), end)
        for place in reversed(places) if reverse else places:
            key = self._keys[place]
            yield key, self._values[key]


class MemoryEngine:
    def __init__(self) -> None:
        self._spaces: dict[str, _Space] = {}

    def make_spaces(self, names: Iterable[str]) -> None:
        for name in names:
            self._spaces.setdefault(name, _Space())

    def drop_spaces(self, names: Iterable[str]) -> None:
        for name in names:
            del self._spaces[name]

    def spaces(self) -> set[str]:
        return set(self._spaces)

    def get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._spaces[space].values.get, keys))

    def apply(self, batch: Sequence[Entry]) -> None:
        for space, key, value in batch:
            self._spaces[space].put(key, value)

    def cursor(self, space: str) -> MemoryCursor:
        return self._spaces[space].cursor()

    passing_cursor = cursor

    def sync(self) -> None:
        """See `StorageEngine.sync`. Nothing here survives a crash."""

    def flush(self) -> None:
        """See `StorageEngine.flush`. There are no files."""

    def compact(self) -> None:
        """See `StorageEngine.compact`. There are no files."""

    def backup(self, directory: str) -> None:
        """Raises Unsupported: there is no file to copy."""
        raise Unsupported("a store in memory has no files to back up; keep it in rocksdb:PATH")

    def figures(self) -> dict[str, dict[str, int]]:
        return {
            name: {
                "entries": len(space.keys),
                "bytes": sum(len(key) + len(value) for key, value in space.values.items()),
            }
            for name, space in self._spaces.items()
        }

    def close(self) -> None: ...
