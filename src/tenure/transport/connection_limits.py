"""How many connections one port takes, and for how long they may be silent, or stuck."""

import resource

import msgspec

from tenure.transport.newcomers import SILENT_SECONDS, silent_of_a_peer

MOST_CONNECTIONS = 20_000
"""Each costs a manager 3 to 4 KiB at rest, and more while TLS is agreed on: so many still fit in a
gigabyte."""
STUCK_SECONDS = 30.0
"""A peer that reads nothing of an answer for so long has died, or means harm."""

BUFFER_BYTES = 32 << 10
"""What the kernel keeps of a connection until it is read, which is what a flood can make this side
take apart in one go; on a line of 50 ms it still lets a megabyte through in a second."""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one port."""

    connections: int | None = None
    """In all; None is three quarters of the files that this process may open, `MOST_CONNECTIONS` at
    most."""
    of_a_peer: int | None = None
    """From one address; None is half of all."""
    silent_of_a_peer: int | None = None
    """Of these, how many may have made no request yet; None is as `newcomers` has it."""
    silent_seconds: float = SILENT_SECONDS
    """For TLS and a whole first request."""
    stuck_seconds: float = STUCK_SECONDS
    buffer_bytes: int | None = BUFFER_BYTES
    """Of one connection, until they are read; None is what the kernel finds best for long messages
    of known peers."""
    requests_a_second: float | None = None
    """On one connection; None is without a bound."""
    requests_at_once: int = 1

    @property
    def most(self) -> int:
        """In all."""
        if self.connections is not None:
            return self.connections
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return MOST_CONNECTIONS if files < 0 else min(MOST_CONNECTIONS, files * 3 // 4)

    @property
    def most_of_a_peer(self) -> int:
        """From one address."""
        return self.most // 2 if self.of_a_peer is None else self.of_a_peer

    @property
    def most_silent(self) -> int:
        """Silent ones from one address."""
        return silent_of_a_peer() if self.silent_of_a_peer is None else self.silent_of_a_peer
