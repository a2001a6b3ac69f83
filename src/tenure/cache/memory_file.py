"""The file in which a server without a manager keeps what the next server must know (rule V16).

Each write makes a whole new file beside the old one, and replaces the old one once the new one is
on the disk. So whatever happens, the file is either the old or the new one. Two servers on one file
would give leases without knowing of each other, so a server holds a lock as long as it lives. The
lock is on another file, because each write replaces this one.
"""

import fcntl
import os
import zlib
from pathlib import Path
from typing import IO

import msgspec

from tenure.errors import MALFORMED, ConfigurationError
from tenure.protocol.volume.server.events import VolumeMemory
from tenure.runtime import private_files

MAGIC = b"tenure volume "
VERSION = 1
VERSION_DIGITS = 9
MOST_BYTES = 4096
"""The most bytes that are read, far more than it needs."""


class MemoryFile:
    """One file, from `open` to `close`."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        """The file itself, so that servers which know it by several names lock the same one."""
        self._lock: IO[bytes] | None = None

    def open(self) -> VolumeMemory | None:
        """Lock the file, and return what is in it, or None if it does not exist yet. Raises
        ConfigurationError if it cannot be used.
        """
        beside = self.path.with_name(self.path.name + ".lock")
        try:
            self._lock = private_files.open_lock(beside)
        except OSError as error:
            raise self._useless(f"{beside} cannot be written: {error.strerror or error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise self._useless(
                "another server uses it: each has a memory of its own, and the next server of the "
                "same volume starts when this one has ended"
            ) from None
        try:
            private_files.warn_of_writers(self.path.parent, "what the server must know")
            return self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> VolumeMemory | None:
        try:
            if self.path.exists() and not self.path.is_file():
                raise self._useless("it is not a file")  # reading a pipe would wait for ever
            with self.path.open("rb") as file:
                data = file.read(MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._useless(f"it cannot be read: {error.strerror or error}") from error
        head, _, body = data.partition(b"\n")
        version = head.removeprefix(MAGIC)
        if not head.startswith(MAGIC) or not version.isdigit() or len(version) > VERSION_DIGITS:
            raise self._damaged("it does not begin as one does")
        if int(version) > VERSION:
            raise self._useless(
                f"it is of version {int(version)}, and this tenure knows {VERSION}: use the newer "
                "tenure that has written it"
            )
        if len(body) < 4 or zlib.crc32(body[4:]) != int.from_bytes(body[:4], "big"):  # noqa: PLR2004
            raise self._damaged("its checksum is wrong")
        try:
            return msgspec.msgpack.decode(body[4:], type=VolumeMemory)
        except MALFORMED as error:
            raise self._damaged(str(error)) from error

    def write(self, memory: VolumeMemory) -> None:
        """Write `memory` to the disk. Raises ConfigurationError if it cannot be written."""
        body = msgspec.msgpack.encode(memory)
        data = MAGIC + b"%d\n" % VERSION + zlib.crc32(body).to_bytes(4, "big") + body
        try:
            private_files.replace(self.path, data)
        except OSError as error:
            raise self._useless(f"it cannot be written: {error.strerror or error}") from error

    def close(self) -> None:
        """Let another server use the file."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _damaged(self, how: str) -> ConfigurationError:
        return self._useless(
            f"it is damaged: {how}. Remove it, and put no copy back, which may say that there is "
            "nothing to wait for: then the server waits before its first write for as long as "
            "`longest` says"
        )

    def _useless(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"the memory {self.path} cannot be used: {why}")
