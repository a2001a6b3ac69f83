"""The manager's side of one incarnation of an owner: numbers, nonces, and its one hold (P2, P4).

The paper numbers messages both ways and drops those that cross (Centrifuge 2.3.2). Here only the
owner asks, so one rising number an incarnation is enough.
"""

from leasehold.base.instants import Instant
from leasehold.base.rangemap import RangeMap
from leasehold.base.ranges import KeyRange
from leasehold.protocol.lease.manager_events import Connection
from leasehold.protocol.lease.messages import Held, Leased

NOT_RECALLED = Instant(0)


class Session:
    """What a leader knows of an incarnation beside the journaled table. Gone with the leader."""

    __slots__ = (
        "connection",
        "heard_at",
        "hold_until",
        "incarnation",
        "leaving",
        "name",
        "owner_nonce",
        "poked",
        "proven",
        "recalled",
        "renewal",
        "sequence",
        "settled",
    )

    def __init__(self, incarnation: int, name: str, owner_nonce: int, hold_until: Instant) -> None:
        self.incarnation = incarnation
        self.name = name
        self.owner_nonce = owner_nonce
        self.sequence = 0
        self.connection: Connection | None = None
        self.hold_until = hold_until
        """Nothing of this incarnation is free before, unless it is returned."""
        self.heard_at = Instant(0)
        """When its last request came; 0 while this leader has heard nothing of it."""
        self.proven = False
        """It has spoken under its number: only then is it worth planning for. The join of a process
        that died meanwhile is numbered too, and would else be dealt ranges that it never takes."""
        self.leaving = False
        self.poked = False
        """A poke is on its way; one is enough until the next request."""
        self.settled = False
        """It has what the plan gives it, nothing is recalled: its renewals need no thought."""
        self.recalled: RangeMap[Instant] = RangeMap(NOT_RECALLED)
        """The deadlines of what it was told to return. A recall that was told is never taken back:
        the owner has stopped believing, and what was interrupted must not go on (S3)."""
        self.renewal: tuple[tuple[Held, ...], tuple[Leased, ...]] = ((), ())
        """The answer to a settled request, beside the table's ranges that it was made of."""

    def is_in_order(self, sequence: int) -> bool:
        """Whether a request is newer than all that were taken: a late one lists what is past."""
        return sequence > self.sequence

    def take(
        self, sequence: int, connection: Connection, hold_until: Instant, *, leaving: bool
    ) -> None:
        """Take a request; the hold counts from its receipt (P3) and never shrinks."""
        self.sequence = sequence
        self.connection = connection
        self.hold_until = max(self.hold_until, hold_until)
        self.leaving = self.leaving or leaving
        self.poked = False

    def forget_recall(self, key_range: KeyRange) -> None:
        """The range was returned."""
        self.recalled.assign(key_range, NOT_RECALLED)

    @property
    def has_recalls(self) -> bool:
        """Whether it was told to return anything that it has not returned."""
        return len(self.recalled) > 1 or self.recalled[b""] != NOT_RECALLED
