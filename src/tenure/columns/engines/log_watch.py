"""Notes how long the commit log was when it was last synced: one that was cut looks like one that a
crash has ended.

RocksDB reads the log up to the first record that is not whole. After a crash that is right: what
follows was never acknowledged. But if a disk has lost the end of a log that it had synced, the
acknowledged writes there are gone, and nothing says so. So the watch notes after each sync how much
was synced, and a shorter log is damage.

A note is written in place, and not synced itself: a sync for each would double what a write costs.
So a power failure loses the notes of the last seconds, up to thirty on Linux, and an older note
asks for less of the log. A note that is torn does not count.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tenure.errors import MALFORMED, StoreDamaged

NOTE: Final = "tenure-log-end.json"
NOTE_BYTES: Final = 1_024
LOGS: Final = 8
"""The most logs in a note, the newest. Older ones exist only while a family is not flushed."""


class LogNote(msgspec.Struct, frozen=True):
    """How many bytes of each log were synced."""

    logs: dict[str, int]
    checksum: int

    @property
    def is_whole(self) -> bool:
        return self.checksum == _checksum(self.logs)


def _checksum(logs: dict[str, int]) -> int:
    return zlib.crc32(msgspec.json.encode(logs))


class LogWatch:
    """Notes how the logs of an open store grow. `look` before a sync, and `note` after it."""

    def __init__(self, store: Path, log: Path) -> None:
        self._store = store
        self._log = log
        self._newest: Path | None = None
        self._noted: dict[str, int] = {}

    def look(self) -> dict[str, int]:
        newest = self._newest
        with suppress(OSError):
            if newest is not None and (size := newest.stat().st_size) > self._noted.get(
                newest.name, 0
            ):
                return {**self._noted, newest.name: size}
        return self._look_at_all()

    def _look_at_all(self) -> dict[str, int]:
        """A log that has not grown may have a successor."""
        found: dict[str, int] = {}
        with suppress(OSError):
            for each in sorted(self._log.glob("*.log"))[-LOGS:]:
                self._newest = each
                with suppress(FileNotFoundError):
                    found[each.name] = each.stat().st_size
        return found

    def note(self, synced: dict[str, int]) -> None:
        """So much is synced. If the disk refuses, only the note is lost."""
        if synced == self._noted:
            return
        self._noted = synced
        said = msgspec.json.encode(LogNote(synced, _checksum(synced)))
        with suppress(OSError):
            handle = os.open(self._store / NOTE, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(handle, said.ljust(NOTE_BYTES), 0)
            finally:
                os.close(handle)


def check_log(store: Path, log: Path) -> None:
    """Raise StoreDamaged if a log is shorter than what was synced of it. One that is not there was
    flushed to files, and removed.
    """
    try:
        said = msgspec.json.decode((store / NOTE).read_bytes(), type=LogNote)
    except (OSError, *MALFORMED):
        return
    for name, synced in said.logs.items() if said.is_whole else ():
        with suppress(FileNotFoundError):
            size = (log / name).stat().st_size
            if size < synced:
                raise StoreDamaged(
                    f"the commit log {log / name} has {size} bytes, and {synced} of it were "
                    "synced: acknowledged writes at its end are gone; nothing was touched. Restore "
                    "a backup: tenure columns restore. A node of a cluster is replaced: the others "
                    "have its rows"
                )
