"""Connections that have not yet made a request, and how long and how many of them there may be.

Whoever opens connections and says nothing, or says it a byte at a time, would take the files that
this process may open until nobody else can connect, nor this process to others; and then no owner
is renewed. So a connection has a few seconds for its first request. Of one peer only so many may be
silent at once: the one that has been silent for longest gives way, so that the clients of a host
that all come at once after a failover are let in, since theirs speak at once.
"""

import asyncio
import resource
from collections.abc import Callable
from typing import cast

SILENT_SECONDS = 10.0
"""For a whole first request: a client's is in its first packet, and slow lines repeat lost ones."""
SILENT_OF_A_PEER = 2048
"""Twice what is accepted in one go, all of it from one host."""
IDLE_SECONDS = 75.0
"""Between two requests on one connection: longer than metrics are mostly read."""


def silent_of_a_peer() -> int:
    """How many connections of one peer may be silent: of the files that this process may open, a
    quarter at most.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SILENT_OF_A_PEER if files < 0 else min(SILENT_OF_A_PEER, files // 4)


class Newcomers:
    """All of one port."""

    def __init__(
        self,
        let_go: Callable[[str], object],
        seconds: float = SILENT_SECONDS,
        most: int | None = None,
    ) -> None:
        self._let_go = let_go
        """Told who was, and why."""
        self._seconds = seconds
        self._most = silent_of_a_peer() if most is None else most
        self._silent: dict[str, dict[asyncio.Transport, asyncio.TimerHandle]] = {}
        """Those of each peer, the longest silent first."""

    def arriving(self, speaks: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol:
        """The protocol of one more connection, on which `speaks` is what is spoken."""
        return _Arriving(self, speaks)

    def arrived(self, transport: asyncio.Transport) -> None:
        """A connection was made: its first request is waited for."""
        silent = self._silent.setdefault(_peer_of(transport), {})
        why = f"said nothing for {self._seconds:g} s"
        loop = asyncio.get_running_loop()
        silent[transport] = loop.call_later(self._seconds, self._end, transport, why)
        if len(silent) > self._most:
            self._end(next(iter(silent)), f"more than {self._most} connections say nothing")

    def spoke(self, transport: asyncio.Transport) -> None:
        """A request has come; the connection is a newcomer no more."""
        peer = _peer_of(transport)
        silent = self._silent.get(peer, {})
        timer = silent.pop(transport, None)
        if timer is not None:
            timer.cancel()
            if not silent:
                del self._silent[peer]

    def close(self) -> None:
        """Wait for nobody any more."""
        for silent in self._silent.values():
            for timer in silent.values():
                timer.cancel()
        self._silent.clear()

    def _end(self, transport: asyncio.Transport, why: str) -> None:
        self.spoke(transport)
        if not transport.is_closing():
            self._let_go(f"{_peer_of(transport)}: {why}")
            transport.abort()


class _Arriving(asyncio.Protocol):
    """Until a connection is made."""

    def __init__(self, newcomers: Newcomers, speaks: Callable[[], asyncio.BaseProtocol]) -> None:
        self._newcomers = newcomers
        self._speaks = speaks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # uvloop's are of no class of asyncio
        protocol = self._speaks()
        stream.set_protocol(protocol)
        protocol.connection_made(stream)
        self._newcomers.arrived(stream)


def _peer_of(transport: asyncio.BaseTransport) -> str:
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else ""
