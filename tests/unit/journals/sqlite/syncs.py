"""Counts which files SQLite syncs, at its door to the system.

SQLite reaches the disk through a table of functions, its VFS. This makes a copy of the usual one
the default; the files of the copy have another xSync. The offsets are those of the structs in
sqlite3.h, which its interface has frozen.
"""

import ctypes
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

_VFS_BYTES, _X_OPEN = 168, 40
_METHODS_BYTES, _X_SYNC = 152, 40
_POINTER = ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int)


class Syncs:
    """How often each file was synced, by the end of its name: "" and "-wal"."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.of: Counter[str] = Counter()
        self._library = library
        self._names: dict[int, str] = {}
        library.sqlite3_vfs_find.restype = _POINTER
        usual = library.sqlite3_vfs_find(None)
        self._vfs = ctypes.create_string_buffer(ctypes.string_at(usual, _VFS_BYTES), _VFS_BYTES)
        self._usual_open = _Open(_read(usual + _X_OPEN))
        self._open = _Open(self._on_open)
        self._methods: dict[int, tuple[ctypes.Array[ctypes.c_char], object]] = {}
        _write(ctypes.addressof(self._vfs) + _X_OPEN, self._open)

    def register(self) -> None:
        assert self._library.sqlite3_vfs_register(self._vfs, 1) == sqlite3.SQLITE_OK

    def unregister(self) -> None:
        assert self._library.sqlite3_vfs_unregister(self._vfs) == sqlite3.SQLITE_OK

    def _on_open(self, vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        result = int(self._usual_open(vfs, name, file, flags, out))
        usual = _read(file)
        if usual:
            path = ctypes.string_at(name).decode() if name else ""  # no name: a temporary file
            self._names[file] = path.rpartition(".sqlite")[2]
            _write(file, self._with_counter(usual))
        return result

    def _with_counter(self, usual: int) -> object:
        if usual not in self._methods:
            copy = ctypes.create_string_buffer(
                ctypes.string_at(usual, _METHODS_BYTES), _METHODS_BYTES
            )
            usual_sync = _Sync(_read(usual + _X_SYNC))
            sync = _Sync(lambda file, flags: self._on_sync(usual_sync, file, flags))
            _write(ctypes.addressof(copy) + _X_SYNC, sync)
            self._methods[usual] = (copy, sync)
        return ctypes.cast(self._methods[usual][0], _POINTER)

    def _on_sync(self, usual: object, file: int, flags: int) -> int:
        self.of[self._names[file]] += 1
        assert callable(usual)
        return int(usual(file, flags))


def _read(address: int) -> int:
    return _POINTER.from_address(address).value or 0


def _write(address: int, value: object) -> None:
    found = ctypes.cast(value, _POINTER).value  # type: ignore[arg-type]  # a function, or a pointer
    _POINTER.from_address(address).value = found


@contextmanager
def counted() -> Iterator[Syncs]:
    """Count the syncs of all that is opened within, and closed."""
    made = Syncs(ctypes.CDLL(import_module("_sqlite3").__file__))
    made.register()
    try:
        yield made
    finally:
        made.unregister()
