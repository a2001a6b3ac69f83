"""Fair turns: who does something that takes long waits for a turn, and everything else in the
process has its own in between.

An event loop runs all that is ready in one pass. A thousand connections on which something large
arrived, or as many requests that begin, would be one pass, in which nobody else is served.
"""

import asyncio
from collections import deque
from typing import Protocol

from tenure.base.instants import MILLISECOND_NS

FRAMES_A_TURN = 64
"""The frames that are read before everything else in a process has its turn, and the renewal of its
leases with it: they take a few milliseconds.
"""
TURN_NS = 5 * MILLISECOND_NS
"""A turn and a pass of the loop end after so long, however few frames were read: some take long to
decode and to answer.
"""


class TakesTurns(Protocol):
    def take_turn(self) -> None:
        """Do some of it, and `put` this again if there is more."""
        ...


class FairTurns:
    """Lets callers take turns, with the event loop serving everybody else in between. Sending a
    table to each of a hundred connections in one go would take a second, in which no owner is
    renewed.

    `free` says how many frames may be read between two passes of the loop before anybody waits.
    Without any, every socket waits whose messages come close together.
    """

    def __init__(self, free: int = 0) -> None:
        self._lock = asyncio.Lock()
        self._is_taken = False
        """Whether somebody has begun in this pass of the loop."""
        self._waiting: deque[TakesTurns] = deque()
        self._is_going_round = False
        self._free = self._left = free
        self.frames = free or 1
        """The most frames of one socket that are read in one turn."""

    async def wait(self) -> None:
        """Wait until it is the caller's turn: it is, if nobody waits or has begun in this pass."""
        if self._is_taken or self._lock.locked():
            async with self._lock:
                await asyncio.sleep(0)
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_taken = False

    def must_wait(self, *, is_close_behind: bool) -> bool:
        """Whether a socket on which something arrived waits for its turn. `is_close_behind` says
        that something arrived there a moment ago.
        """
        if not self._free:
            return is_close_behind
        return self._is_going_round or self._left <= 0

    def count(self, frames: int, spent_ns: int) -> None:
        """So many frames were read, in so much time."""
        if self._free and self._left > 0:
            self._left -= max(frames, self._free * spent_ns // TURN_NS)
            if self._left <= 0:
                asyncio.get_running_loop().call_soon(self._begin_pass)

    def _begin_pass(self) -> None:
        self._left = self._free

    def put(self, socket: TakesTurns) -> None:
        """Make the socket read when it is its turn."""
        self._waiting.append(socket)
        if not self._is_going_round:
            self._is_going_round = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Let the next sockets read: one, or as many as have what is free in a pass. The callback
        for the one after them runs after everything that arrives meanwhile.
        """
        self._left = self._free
        try:
            self._waiting.popleft().take_turn()
            while self._waiting and self._left > 0:
                self._waiting.popleft().take_turn()
        finally:
            self._is_going_round = bool(self._waiting)
            if self._is_going_round:
                asyncio.get_running_loop().call_soon(self._next)
