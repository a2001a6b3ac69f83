"""The file of an audit: it is bounded in size, and leaves the last of the disk to the journal.

The two may share a disk. An audit that filled it would stop the journal, and with it every grant.
So the audit gives up first: it writes nothing while less than a reserve is free. Its caller then
refuses the change, and leases go on.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from tenure.errors import ConfigurationError

FILE_BYTES = 64 << 20
"""The size at which a file is put aside: 100,000 changes or more."""
FILES_KEPT = 8
"""How many files there are at most, with the one that is written."""
RESERVE_BYTES = 64 << 20
"""What the audit leaves free on its disk: the journal of 1,000 owners takes a tenth of it."""
RESERVE_PART = 20
"""Or this part of a small disk, if that is less."""
MODE = 0o600


class AuditFile:
    """Lines in a file, and in those that were put aside: `FILE.1` is the latest of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._is_regular = False
        """Whether it has a size, and a disk: a pipe has neither."""
        self._size = 0
        self._is_cut = False
        """Whether the file ends within a line."""

    def open(self) -> None:
        """Open the file. Raises ConfigurationError if it cannot be written."""
        try:
            self._open()
        except OSError as error:
            raise ConfigurationError(
                f"the audit log {self._path} cannot be written: {error.strerror or error}; "
                "name another file with --audit-log"
            ) from error

    def write(self, line: bytes) -> None:
        """Write a line. Raises OSError if there is no room for it, or none that is the audit's."""
        if self._file is None or (self._is_regular and self._size >= FILE_BYTES):
            self._put_aside()
        assert self._file is not None
        self._check_room(self._file.fileno())
        rest = b"\n" * self._is_cut + line + b"\n"
        while rest:  # a disk that is nearly full takes a part, and no more the next time
            written = self._file.write(rest)
            self._size += written
            rest = rest[written:]
            self._is_cut = bool(rest)

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, MODE)
        self._file = os.fdopen(handle, "ab", buffering=0)
        found = os.fstat(handle)
        self._is_regular, self._size = stat.S_ISREG(found.st_mode), found.st_size

    def _put_aside(self) -> None:
        """Begin a new file, and remove the oldest. If this fails in between, the next line tries
        again.
        """
        self.close()
        names = [self._path, *(self._aside(number) for number in range(1, FILES_KEPT))]
        for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
            if newer.exists():
                newer.replace(older)
        self._open()
        self._is_cut = False

    def _aside(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _check_room(self, handle: int) -> None:
        if not self._is_regular:
            return
        disk = os.fstatvfs(handle)
        free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        reserve = min(RESERVE_BYTES, size // RESERVE_PART)
        if free < reserve:
            why = f"{free >> 20} MiB are free, and the last {reserve >> 20} are the journal's"
            raise OSError(errno.ENOSPC, why)
