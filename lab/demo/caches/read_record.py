"""The record of what frontends have read and written, and when, by the clock that all processes
share.

Each frontend appends to a file of its own. A read is recorded with the instants of its call and of
its return; a write, when it was answered. Now and then a frontend says until when its record is
whole: a read is judged when all records are whole up to its beginning, for then every write that it
must not miss is known.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Literal, NamedTuple, TypeAlias

from tenure.base.instants import Instant

ENTRY = Struct(">BHIQQ")
SUFFIX = ".reads"
What: TypeAlias = Literal[1, 2, 3]
READ: What = 1
WRITTEN: What = 2
WHOLE_UNTIL: What = 3


class ReadEntry(NamedTuple):
    what: int
    product: int
    version: int
    """The version that was returned or is written."""
    began: Instant
    ended: Instant
    """When the call ended. In an entry WHOLE_UNTIL: the time up to which the record is whole."""


class ReadRecordWriter:
    """The record of one frontend."""

    def __init__(self, directory: Path, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL
        self._file = os.open(directory / f"{name}{SUFFIX}", flags, 0o600)
        self._entries: list[bytes] = []

    def add(self, what: What, product: int, version: int, began: Instant, ended: Instant) -> None:
        """Put down what has ended."""
        self._entries.append(ENTRY.pack(what, product, version, began, ended))

    def flush(self, now: Instant) -> None:
        """Write what was put down; the record is whole until `now`."""
        self.add(WHOLE_UNTIL, 0, 0, now, now)
        data, self._entries = b"".join(self._entries), []
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class ReadRecordReader:
    """The records of all frontends, as they grow."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[tuple[str, ReadEntry]]:
        """Return the entries added since the last call, each with the frontend that added it."""
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            position = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(position)
                found = file.read()
            whole = len(found) - len(found) % ENTRY.size
            self._read[path] = position + whole
            name = path.name.removesuffix(SUFFIX)
            for entry in ENTRY.iter_unpack(found[:whole]):
                yield name, ReadEntry(*entry)
