"""How many connections one port takes, and for how long they may be silent, or stuck."""

import resource

import msgspec

from tenure.transport.newcomers import SILENT_SECONDS, silent_of_a_peer

MOST_CONNECTIONS = 20_000
"""Each connection costs a manager 3 to 4 KiB at rest, and more during a TLS handshake. So this many
still fit in a gigabyte.
"""
LEAST_STRANGERS = 64
"""How many connections may have proven nothing in any case."""
STUCK_SECONDS = 30.0
"""A peer that reads nothing of an answer for so long has died, or means harm."""

UNREAD_BYTES = 512 << 20
"""A gateway has a thousand clients that read slowly, or a member sixty-four of 8 MiB each."""

BUFFER_BYTES = 32 << 10
"""The bytes that the kernel keeps of a connection until they are read, and so the most of a flood
that this side parses in one go. On a line of 50 ms it still lets a megabyte through in a second.
"""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one port."""

    connections: int | None = None
    """The most connections in all; None means three quarters of the files that this process may
    open, and at most `MOST_CONNECTIONS`.
    """
    of_a_peer: int | None = None
    """The most connections from one address; None means half of all."""
    silent_of_a_peer: int | None = None
    """How many of these may have made no request yet; None means the default in `newcomers`."""
    silent_seconds: float = SILENT_SECONDS
    """The time for TLS and a whole first request."""
    knows_peers: bool = False
    """Whether peers prove who they are. Then those that have not have a quarter of the places, and
    give way to others: whoever only connects, and asks what anybody may ask, locks out nobody.
    """
    stuck_seconds: float = STUCK_SECONDS
    unread_bytes: int = UNREAD_BYTES
    """The most bytes of answers that wait at all connections together. Beyond that, those at which
    most waits are ended, and those first whose peers read nothing.
    """
    buffer_bytes: int | None = BUFFER_BYTES
    """The kernel's buffer for the unread bytes of one connection; None lets the kernel choose, for
    long messages from known peers.
    """
    requests_a_second: float | None = None
    """The most requests a second on one connection; None means no bound."""
    requests_at_once: int = 1

    @property
    def most(self) -> int:
        """The most connections in all."""
        if self.connections is not None:
            return self.connections
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return MOST_CONNECTIONS if files < 0 else min(MOST_CONNECTIONS, files * 3 // 4)

    @property
    def most_strangers(self) -> int:
        """The most connections that have proven nothing."""
        return max(LEAST_STRANGERS, self.most // 4) if self.knows_peers else self.most

    @property
    def most_of_a_peer(self) -> int:
        """The most connections from one address."""
        return self.most // 2 if self.of_a_peer is None else self.of_a_peer

    @property
    def most_silent(self) -> int:
        """The most silent connections from one address."""
        return silent_of_a_peer() if self.silent_of_a_peer is None else self.silent_of_a_peer
