"""Whether this process is about to be succeeded by another: its supervisor has begun one lately.

gunicorn, told to reload, begins new workers and ends the old ones in the same moment, seconds
before the new ones have joined. An owner that leaves then waits for one that joins. It must not
wait whenever nobody else is there: most often everything is to end, and somebody waits for that.
"""

import os
from contextlib import suppress
from pathlib import Path

from tenure.client.attestation import ENDED, PROC, START_TIME, STATE, stat_fields

PARENT = 1
"""The position of the parent in `stat`, after the name."""
AFTER_SECONDS = 2.0
"""Workers that were begun together are younger than each other, but by less than this."""
LATELY_SECONDS = 30.0
"""Longer ago, a successor has joined, or never will: the wait would be in vain."""


def has_successor(waited: float = 0.0, proc: Path = PROC) -> bool:
    """Whether the parent of this process has begun another child, well after this one, and lately:
    seen from when this one began to wait for it, `waited` seconds ago. False where that cannot be
    seen, as everywhere but on Linux.
    """
    with suppress(OSError, ValueError, IndexError):
        ticks = os.sysconf("SC_CLK_TCK")
        own = stat_fields(proc / "self")
        now = float((proc / "uptime").read_text().split()[0]) * ticks
        since = max(
            int(own[START_TIME]) + AFTER_SECONDS * ticks,
            now - (LATELY_SECONDS + waited) * ticks,
        )
        return any(
            fields[PARENT] == own[PARENT] and int(fields[START_TIME]) >= since
            for fields in map(_fields, proc.glob("[0-9]*"))
            if fields is not None and fields[STATE] not in ENDED
        )
    return False


def _fields(process: Path) -> list[bytes] | None:
    try:
        return stat_fields(process)
    except OSError:  # it has ended in the meantime
        return None
