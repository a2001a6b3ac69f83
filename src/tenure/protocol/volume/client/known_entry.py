"""The machine's knowledge of an entry; the shell that runs the machine has the value."""

from tenure.base.instants import Instant
from tenure.protocol.volume.messages import AsOf


class KnownEntry:
    """One life of one entry."""

    __slots__ = ("as_of", "is_live", "reader", "server", "until")

    def __init__(self, server: str, reader: int, until: Instant, as_of: AsOf) -> None:
        self.server = server
        self.reader = reader
        self.until = until
        self.as_of = as_of
        self.is_live = True
        """Whether the entry is live; otherwise it is suspect."""
