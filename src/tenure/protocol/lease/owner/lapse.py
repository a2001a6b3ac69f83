"""Lapses: a lease that a reader saw end must not go on (S3), whatever the machine has decided by
then.

The machine decides at 12.0 s that a renewal moves the end of the term, which was 12.1 s. Before the
new snapshot is published, at 12.2 s, a reader sees that the published one has ended, and says no.
From then on no snapshot that holds anything may be published until the machine has noticed and
dropped everything: leases that it is granted later have new numbers.
"""

from tenure.protocol.lease.owner.events import Holdings


class Lapse:
    """Whether a reader saw the end before the machine did."""

    __slots__ = ("is_seen",)

    def __init__(self) -> None:
        self.is_seen = False

    def admits(self, holdings: Holdings) -> bool:
        """Whether readers may be shown these holdings. Empty ones show that the machine has dropped
        everything that was held before.
        """
        if not holdings.leases:
            self.is_seen = False
        return not self.is_seen
