"""What a node does when its disk refuses something: it answers what it can until it begins anew.

What was applied and not synced when a disk refused is in doubt, and RocksDB takes nothing more
until it is opened again. So the life goes on with what is durable, without writing, until the disk
has room; then it ends, and the next life reads the log.

What the disk has lost does not come back. So the node tells the managers, goes on with what it can
read, and ends when they let it leave (R35).
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from tenure.columns.engines.directory import StoreMoved
from tenure.columns.node.disk_room import ROOM_BYTES, room_on
from tenure.errors import StoreDamaged, StoreError, StoreUnwritable
from tenure.protocol.topology.messages import DETAIL_CHARACTERS

_log = logging.getLogger("tenure.columns")


class DiskTrouble:
    """The trouble of one life with its disk; `fail` ends the life."""

    def __init__(self, directory: Path, fail: Callable[[Exception], None]) -> None:
        self._directory = directory
        self._fail = fail
        self._waiting: asyncio.Task[None] | None = None
        self._damage: StoreDamaged | None = None
        self.on_damaged: Callable[[], None] = lambda: None

    @property
    def damage(self) -> str:
        """What the disk has lost, as managers are told."""
        return str(self._damage)[:DETAIL_CHARACTERS] if self._damage else ""

    def leave(self) -> None:
        """The managers let a damaged node leave."""
        if self._damage is not None:
            self._fail(self._damage)

    def refused(self, error: StoreError) -> None:
        """Decide how the life goes on."""
        error = type(error)(str(error))  # the frames of the one that came keep the files open
        if isinstance(error, StoreDamaged):
            self._note(error)
        elif isinstance(error, StoreMoved) or not isinstance(error, StoreUnwritable):
            self._fail(error)
        elif self._waiting is None:
            _log.warning(
                "%s. Until there is room for %d MiB, this node writes nothing, and answers what it "
                "has; then it goes on by itself",
                error,
                ROOM_BYTES >> 20,
            )
            self._waiting = asyncio.get_running_loop().create_task(self._wait(error))

    def _note(self, error: StoreDamaged) -> None:
        if self._damage is None:
            self._damage = error
            _log.error(
                "%s. This node answers what it can still read. When a majority of the other "
                "replicas of each of its ranges is well, it puts its files aside, and gets its "
                "rows again from them",
                error,
            )
            self.on_damaged()

    async def _wait(self, error: StoreUnwritable) -> None:
        await room_on(self._directory)
        self._fail(error)

    async def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])
