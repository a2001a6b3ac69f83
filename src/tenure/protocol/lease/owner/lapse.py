"""What a reader saw end must not go on (S3), whatever the machine had decided by then.

The machine decides at 12.0 s that a renewal moves the end of the term, which was 12.1 s. Before
that is put up, at 12.2 s, a reader sees the end of what is up, and says no. From then on nothing
that is held may be put up, until the machine has taken notice and dropped everything: what it is
granted later has new numbers.
"""

from tenure.protocol.lease.owner.events import Holdings


class Lapse:
    """Whether a reader saw the end before the machine did."""

    __slots__ = ("is_seen",)

    def __init__(self) -> None:
        self.is_seen = False

    def admits(self, holdings: Holdings) -> bool:
        """Whether readers may be shown these holdings. Those that are empty show that the machine
        has dropped all that was held before.
        """
        if not holdings.leases:
            self.is_seen = False
        return not self.is_seen
