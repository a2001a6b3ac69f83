"""Connections that have not yet made a request: how many there may be, and for how long.

A connection has a few seconds for TLS and its first request: a client that says nothing, or sends a
byte at a time, takes as many files as one that works. Only a limited number of connections from one
peer may be silent: the one that has been silent for longest gives way. So the clients of a host
that all come at once after a failover are let in, since they speak at once.
"""

import asyncio
import resource
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

SILENT_SECONDS = 10.0
"""The time for a whole first request. A client sends it in its first packet, and slow lines must
repeat lost packets.
"""
SILENT_OF_A_PEER = 2048
"""Twice the kernel's backlog, in case all of it is from one host."""
STRANGER_SECONDS = 15.0
"""The time between two requests on a connection that has proven nothing, where others have."""
IDLE_SECONDS = 75.0
"""The time between two requests on one connection: longer than the usual interval at which metrics
are read.
"""


class Newcomer(Protocol):
    """A connection that may not have made a request yet."""

    @property
    def peer(self) -> str:
        """The address at its other end."""
        ...

    def end(self) -> bool:
        """Cut it off. Returns False if it has ended already."""
        ...


N = TypeVar("N", bound=Newcomer)


def silent_of_a_peer() -> int:
    """How many connections of one peer may be silent: at most a quarter of the files that this
    process may open.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SILENT_OF_A_PEER if files < 0 else min(SILENT_OF_A_PEER, files // 4)


class Newcomers(Generic[N]):
    """All newcomers of one port."""

    def __init__(self, let_go: Callable[[str, str], object], seconds: float, most: int) -> None:
        self._let_go = let_go
        """Called with the peer of a newcomer that was cut off, and the reason."""
        self._seconds = seconds
        self._most = most
        self._silent: dict[str, dict[N, asyncio.TimerHandle]] = {}
        """The newcomers of each peer, the longest silent first."""

    def __len__(self) -> int:
        return sum(map(len, self._silent.values()))

    def arrived(self, newcomer: N) -> None:
        """A connection was made: wait for its first request."""
        silent = self._silent.setdefault(newcomer.peer, {})
        why = f"said nothing for {self._seconds:g} s"
        loop = asyncio.get_running_loop()
        silent[newcomer] = loop.call_later(self._seconds, self._end, newcomer, why)
        if len(silent) > self._most:
            self._end(next(iter(silent)), f"more than {self._most} connections say nothing")

    def spoke(self, newcomer: N) -> None:
        """A request has arrived, or the connection has ended: it is no longer a newcomer."""
        silent = self._silent.get(newcomer.peer, {})
        timer = silent.pop(newcomer, None)
        if timer is not None:
            timer.cancel()
            if not silent:
                del self._silent[newcomer.peer]

    def give_way(self, peer: str | None = None, why: str = "others have come") -> bool:
        """Cut off the one that has been silent for longest, of `peer`, or of the peer that has the
        most. Returns False if there is none.
        """
        by_peer = self._silent.values() if peer is None else [self._silent.get(peer, {})]
        silent = max(by_peer, key=len, default={})
        if silent:
            self._end(next(iter(silent)), why)
        return bool(silent)

    def close(self) -> None:
        """Stop all timers."""
        for silent in self._silent.values():
            for timer in silent.values():
                timer.cancel()
        self._silent.clear()

    def _end(self, newcomer: N, why: str) -> None:
        self.spoke(newcomer)
        if newcomer.end():
            self._let_go(newcomer.peer, why)
