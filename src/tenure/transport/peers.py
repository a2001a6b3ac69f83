"""Connections, by number, and sending to them without ever waiting.

When the machine says `TellClient` or `TellClients`, nobody may wait for a slow peer, or it would
hold up all others. So a frame is handed to the transport, which sends what the socket takes at once
and keeps the rest, up to a bound: a peer that lags by more is cut off, and will ask for what it
missed when it comes back (Centrifuge 2.2: a lookup too far behind gets the whole table).

The bound does not include the largest message that is still waiting. Otherwise a table that takes a
minute to cross a thin line would be cut off by the first change after it, asked for again, and cut
off again, for ever.

Frames are made here and not by aiohttp, whose sending is a coroutine for each peer: the bytes of
one message are the same for all 2,000 lookups that it is pushed to, as long as they speak the same
version of the protocol.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from tenure.protocol.lease.answers import Connection
from tenure.transport.websocket_frames import frame

LAG_BYTES = 1 << 20
"""The bytes that may wait for a peer beside one large message: hundreds of renewals, thousands of
changes.
"""


class ConnectedPeer:
    """One client's connection."""

    __slots__ = ("_lag_bytes", "_largest", "transport", "version")

    def __init__(
        self, transport: asyncio.WriteTransport, version: int, lag_bytes: int = LAG_BYTES
    ) -> None:
        self.transport = transport
        self.version = version
        self._lag_bytes = lag_bytes
        self._largest = 0
        """The largest frame since frames began to wait."""

    def send_frame(self, data: bytes) -> bool:
        """Send a frame. Returns False if the peer lagged too far behind and was cut off."""
        transport = self.transport
        if transport.is_closing():
            return True
        waiting = transport.get_write_buffer_size()
        if waiting:
            if waiting > self._lag_bytes + self._largest:
                transport.abort()
                return False
            self._largest = max(self._largest, len(data))
        else:
            self._largest = len(data)
        self.write(data)
        return True

    def write(self, data: bytes) -> None:
        """Hand a frame to the transport."""
        self.transport.write(data)


class Peers:
    """All connections. Numbers are never used twice."""

    def __init__(self) -> None:
        self._peers: dict[Connection, ConnectedPeer] = {}
        self._last: Connection = 0

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, peer: ConnectedPeer) -> Connection:
        """Add a connection, and return its number."""
        self._last += 1
        self._peers[self._last] = peer
        return self._last

    def remove(self, connection: Connection) -> None:
        """The connection is gone."""
        self._peers.pop(connection, None)

    def version(self, connection: Connection | None) -> int | None:
        """The version that is spoken on a connection; None if the connection is gone."""
        peer = self._peers.get(connection or 0)
        return peer.version if peer else None

    def versions(self) -> Counter[int]:
        """How many connections there are of each version."""
        return Counter(peer.version for peer in self._peers.values())

    def send(
        self, connections: Iterable[Connection], encoded: Callable[[int], bytes | None]
    ) -> int:
        """See `Clients.send`. All peers that speak the same version get the same frame."""
        frames: dict[int, bytes | None] = {}
        cut_off = 0
        for connection in connections:
            peer = self._peers.get(connection)
            if peer is None:
                continue
            if peer.version not in frames:
                payload = encoded(peer.version)
                frames[peer.version] = None if payload is None else frame(payload)
            data = frames[peer.version]
            cut_off += data is not None and not peer.send_frame(data)
        return cut_off
