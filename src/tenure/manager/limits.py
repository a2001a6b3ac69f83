"""How much others may use of a manager. The table [limits] of its file can set each limit.

A peer that exceeds a limit is told so and disconnected; the others notice nothing. Lengths of
names, messages and tables are not here: they are the same for all, since a manager that takes more
than another cannot be replaced by it. They are in `wire.limits`, `protocol.lease.limits` and
`base.names`.
"""

import msgspec

from tenure.errors import ConfigurationError
from tenure.transport.connection_limits import STUCK_SECONDS, ConnectionLimits
from tenure.transport.newcomers import SILENT_SECONDS

MESSAGES_A_SECOND = 500
"""The messages a second of one connection. An owner asks when it is poked, and a lookup every few
seconds: a join storm, in which ranges come free one by one, has a hundred a second.
"""
MESSAGES_AT_ONCE = 2_000
"""The messages at once of one connection: as many as an owner sends that was stopped for a while.
"""
SYNCS_AT_ONCE = 200
"""The syncs at once of a lookup, which asks every few seconds, and once more for each push that it
missed.
"""
REQUESTS_A_SECOND = 100
"""The most requests a second over HTTP on one connection: a page asks five times a second while
everything moves, and a client that asks for the keys of a pool one by one keeps a manager from its
work."""
REQUESTS_AT_ONCE = 500
FLOOD_SECONDS = 2.0
"""A peer that asks too often is not read for this long before it is told and let go. It comes back
at once, and a connection costs more than a message."""


class ManagerLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one manager. Raises ConfigurationError if a value cannot be a limit."""

    connections: int | None = None
    """The most connections in all; None is what this process may open, within bounds."""
    connections_of_a_peer: int | None = None
    """The most connections from one address; None is half of all: a proxy's clients come from one.
    """
    silent_of_a_peer: int | None = None
    """The most connections from one address without a request yet; None is a quarter of the files,
    2,048 at most.
    """
    silent_seconds: float = SILENT_SECONDS
    """How long TLS, the header and the body of a request may take."""
    stuck_seconds: float = STUCK_SECONDS
    """How long a peer may read nothing of an answer."""
    messages_a_second: int = MESSAGES_A_SECOND
    messages_at_once: int = MESSAGES_AT_ONCE
    syncs_at_once: int = SYNCS_AT_ONCE
    """The syncs at once of a lookup, as `messages_at_once`."""
    requests_a_second: int = REQUESTS_A_SECOND
    requests_at_once: int = REQUESTS_AT_ONCE
    flood_seconds: float = FLOOD_SECONDS
    """How long whoever asks too often is left waiting before it is let go."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"limits: {name} is {value}; a limit is more than 0")

    @property
    def of_connections(self) -> ConnectionLimits:
        """The limits of its port."""
        return ConnectionLimits(
            knows_peers=True,
            connections=self.connections,
            of_a_peer=self.connections_of_a_peer,
            silent_of_a_peer=self.silent_of_a_peer,
            silent_seconds=self.silent_seconds,
            stuck_seconds=self.stuck_seconds,
            requests_a_second=self.requests_a_second,
            requests_at_once=self.requests_at_once,
        )
