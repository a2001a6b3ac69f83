"""A scrub: a node slowly reads all that it has, to find what its disk has lost before it is needed.

Reading a block verifies its checksum. But blocks that nobody reads are not looked at, and then the
second copy may be lost before the first is known to be. What a scrub finds is treated as what a
request finds. It reads files through the system's cache, so a damaged sector shows up only once
that has let go of what it had of it. What is read is not kept in the cache of blocks, which the
requests need.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

from tenure.columns.engines.contract import StorageEngine
from tenure.errors import StoreError

PIECE_BYTES = 32 << 10
"""How much is read at once: about a millisecond, in which the node does nothing else."""
PAUSE_SECONDS = 3600.0
"""The time between two passes: a small store need not be read all the time."""
_log = logging.getLogger("tenure.columns")


class Scrub:
    """The scrub of one life; `refused` is told why the disk does not give something."""

    def __init__(
        self,
        engine: StorageEngine,
        bytes_a_second: int,
        refused: Callable[[StoreError], None],
    ) -> None:
        self._engine = engine
        self._bytes_a_second = bytes_a_second
        self._refused = refused
        self._running: asyncio.Task[None] | None = None
        self._rests = self._passes()
        self.passes = 0
        """How often everything was read in this life."""
        self.entries = 0
        """How many entries were read in this life, in all passes."""

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def step(self) -> float | None:
        """Read some more. Returns for how many seconds to rest then; None if something cannot be
        read, and after that nothing more is.
        """
        try:
            return next(self._rests)
        except StoreError as error:
            self._refused(error)
            return None

    async def _run(self) -> None:
        while True:
            rest = self.step()
            if rest is None:
                return
            await asyncio.sleep(rest)

    def _passes(self) -> Iterator[float]:
        while True:
            read = 0
            for space in sorted(self._engine.spaces()):
                for size in self._pieces(space):
                    read += size
                    yield size / self._bytes_a_second
            self.passes += 1
            _log.info("scrubbed %d bytes of rows and found no damage", read)
            yield PAUSE_SECONDS

    def _pieces(self, space: str) -> Iterator[int]:
        """Read a space from its beginning to its end; the bytes of each piece."""
        last: bytes | None = b""
        while last is not None:
            size, last = self._piece(space, last + b"\0" if last else b"")
            yield size

    def _piece(self, space: str, lower: bytes) -> tuple[int, bytes | None]:
        """Read on from here; return how much, and the last key unless the space is at its end."""
        size = 0
        for key, value in self._engine.passing_cursor(space).walk(lower, None):
            size += len(key) + len(value)
            self.entries += 1
            if size >= PIECE_BYTES:
                return size, key
        return size, None
