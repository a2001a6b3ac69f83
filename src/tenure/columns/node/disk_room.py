"""Room on a disk: whether what a node needs to go on can be written there.

What a file system says of itself is not asked, because a quota or a limit of the process may say
otherwise: a file is written.
"""

import asyncio
import os
from pathlib import Path

from tenure.runtime import private_files

ROOM_BYTES = 16 << 20
"""A node begins its next life with so much: less would soon be full again."""
LOOK_SECONDS = 1.0
PROBE = ".room"
_BLOCK = bytes(1 << 20)


def has_room(directory: Path) -> bool:
    """Whether the disk of a directory takes `ROOM_BYTES`."""
    probe = directory / PROBE
    try:
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, private_files.MODE)
        try:
            with os.fdopen(handle, "wb", buffering=0) as file:
                for _ in range(ROOM_BYTES // len(_BLOCK)):
                    if file.write(_BLOCK) < len(_BLOCK):
                        return False
                os.fsync(handle)
        finally:
            probe.unlink()
    except OSError:
        return False
    return True


async def room_on(directory: Path) -> None:
    while not await asyncio.to_thread(has_room, directory):  # noqa: ASYNC110 - it can only be tried
        await asyncio.sleep(LOOK_SECONDS)
