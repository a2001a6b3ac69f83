"""The record: which process served which key, when, and under which lease number.

It exists to convict tenure, so it must not rest on what tenure believes. Each owner appends
to a file of its own; the demo reads all the files, and `judge` compares them. The instants are read
from one clock that all processes of a machine share (`CLOCK_BOOTTIME`).

*Served* means that an answer was let out after the last check said yes. Precisely, in order:

1. `check` hands out the lease (PRS 2.2, step 1);
2. the clock is read: `began`;
3. the operation is done (steps 2 and 3);
4. the clock is read: `ended`;
5. `holds` is asked whether the lease covered all of it (step 4). If not, nothing was served: the
   client is told 503, that the outcome is unknown, and there is no entry;
6. the entry is appended, in one write, which a kill cannot take back;
7. the answer is let out (step 5).

The clock is read inside of the checks, so an honest owner held the key from `began` to `ended`,
both included, wherever in these steps it was stopped. In steps 1 to 5 it finds out at step 5. In
steps 6 and 7 it does not: then the answer leaves after the lease has ended, and the entry says that
the operation was over before. That is no flaw of the record. A check and what follows it are not
one step, in any system without a fence at the receiver; what is promised is that operations on a
key follow each other, not that an answer is still current when it arrives.

The other way round nothing is left out: an answer that got out has an entry, since the entry is
written before.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import HASHED_KEY_BYTES, Key

ENTRY = Struct(f">{HASHED_KEY_BYTES}sQQQ")
SUFFIX = ".served"


class Served(NamedTuple):
    """An operation that was served."""

    owner: str
    """The process: one life of an owner."""
    key: Key
    number: int
    """The lease number that it was served under."""
    began: Instant
    ended: Instant


class RecordWriter:
    """The record of this process. Entries are in the file when `add` returns."""

    def __init__(self, directory: Path, owner: str) -> None:
        path = directory / f"{owner}{SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)

    def add(self, key: Key, number: int, began: Instant, ended: Instant) -> None:
        """Put down what is about to be answered."""
        written = os.write(self._file, ENTRY.pack(key, number, began, ended))
        assert written == ENTRY.size, written

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class RecordReader:
    """The records of all processes that ever wrote to a directory, as they grow."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[Served]:
        """Return the entries added since the last call. An incomplete entry is left for later."""
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            position = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(position)
                found = file.read()
            whole = len(found) - len(found) % ENTRY.size
            self._read[path] = position + whole
            for entry in ENTRY.iter_unpack(found[:whole]):
                yield Served(path.name.removesuffix(SUFFIX), *entry)
