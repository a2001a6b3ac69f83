"""The manager's side of one incarnation of an owner: numbers, nonces, and its one hold (P2, P4).

The paper numbers messages both ways and drops those that cross (Centrifuge 2.3.2). Here only the
owner asks, so one rising number an incarnation is enough.
"""

from bisect import bisect_left
from typing import Any

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import LOWEST, KeyRange
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.causes import joined
from tenure.protocol.lease.fingerprints import fingerprint
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.messages import Held, Leased, Poke
from tenure.protocol.lease.port_proof import PortProof
from tenure.protocol.lease.reports import TierReport

NOT_RECALLED = Instant(0)
NOT_ORDERED = Instant(0)


class Session:
    """A leader's knowledge of an incarnation beside the journaled table; it is lost with the
    leader.
    """

    __slots__ = (
        "cause",
        "connection",
        "ending",
        "fingerprint",
        "fingerprinted",
        "heard_at",
        "hold_until",
        "incarnation",
        "knows_former",
        "leaving",
        "letting_go",
        "letting_go_since",
        "name",
        "orders",
        "owner_nonce",
        "planned",
        "poked",
        "proven",
        "proves",
        "recalled",
        "renewal",
        "renewed",
        "report",
        "sequence",
        "settled",
        "stuck",
        "told_proof",
        "untold",
        "waits",
    )

    def __init__(self, incarnation: int, name: str, owner_nonce: int, hold_until: Instant) -> None:
        self.incarnation = incarnation
        self.name = name
        self.owner_nonce = owner_nonce
        self.sequence = 0
        self.connection: Connection | None = None
        self.cause = ""
        """The cause of the news for the incarnation, until all of it is told."""
        self.ending = ""
        """The reason why the incarnation may be gone; empty once it is heard again."""
        self.hold_until = hold_until
        """No range of this incarnation is free before this time, unless it is returned."""
        self.heard_at = Instant(0)
        """When its last request came; 0 while this leader has not heard it."""
        self.proven = False
        """Whether the incarnation has spoken under its number: only then is it worth planning for.
        The join of a process that died meanwhile is numbered too, and would otherwise be dealt
        ranges that it never takes.
        """
        self.proves = True
        """Whether it can show the pool's secret at ports; assumed of one that was not heard."""
        self.told_proof: PortProof | None = None
        """What it was told last of that secret."""
        self.planned = False
        """Whether the present plan was made with it in view. An incarnation that has been proven
        since may be given everything by the next plan."""
        self.leaving = False
        self.waits = False
        """Whether it is leaving, and would serve on what nobody can take; its own drain ends that.
        """
        self.letting_go: tuple[Held, ...] = ()
        """The ranges that its application has not let go of: granting them would be in vain."""
        self.letting_go_since = FAR_FUTURE
        self.stuck = False
        """Whether it has not let go for so long that others are to have its ranges."""
        self.knows_former = False
        """Whether the ranges that it holds may be renumbered."""
        self.poked = False
        """Whether a poke is on its way; one is enough until the next request."""
        self.settled = False
        """Whether it has what the plan gives it, and nothing is recalled: its renewals need no
        thought.
        """
        self.recalled: RangeMap[Instant] = RangeMap(NOT_RECALLED)
        """The deadlines of the ranges that it was told to return. A recall that was told is never
        taken back: the owner has stopped believing, and interrupted work must not go on (S3)."""
        self.orders: RangeMap[Instant] = RangeMap(NOT_ORDERED)
        """The deadlines of the ranges that it was told to hand over. It goes on serving them, since
        an order may be taken back."""
        self.untold: RangeMap[bool] = RangeMap(value=False)
        """The ranges that the table gives it with their state, and that no answer has told yet: a
        request that does not list them says nothing about them.
        """
        self.renewal: tuple[Leased, ...] = ()
        """The leases in the answer to a settled request that lists what the table gives it."""
        self.renewed: tuple[Held, ...] | None = None
        """The leases that the table gave when that answer was made; None if it granted more."""
        self.report: TierReport | None = None
        """The last report of what it runs beside its leases."""
        self.fingerprint = b""
        """The fingerprint of what the table gave it when the table was `fingerprinted`."""
        self.fingerprinted: tuple[Held, ...] | None = None

    def take_fingerprint(self, given: tuple[Held, ...], manager_nonce: int) -> None:
        """The fingerprint of what the table gives it now."""
        self.fingerprinted = given
        self.fingerprint = fingerprint(given, self.owner_nonce, manager_nonce)

    def is_in_order(self, sequence: int) -> bool:
        """Whether a request is newer than all that were taken: a late one lists the past."""
        return sequence > self.sequence

    def take(
        self, sequence: int, connection: Connection, hold_until: Instant, *, leaving: bool
    ) -> None:
        """Take a request; the hold counts from its receipt (P3) and never shrinks."""
        self.sequence = sequence
        self.connection = connection
        self.hold_until = max(self.hold_until, hold_until)
        self.leaving = self.leaving or leaving
        self.settled = self.settled and not self.leaving  # nothing that it has is to stay
        self.poked = False
        self.ending = ""

    def let_go(self, now: Instant, letting_go: tuple[Held, ...], patience_ns: int) -> bool:
        """Take the list of ranges that its application still has. Returns whether the incarnation
        became stuck by it, or no longer is. An application that hangs keeps its ranges from itself
        only: others are given them.
        """
        was_stuck = self.stuck
        self.settled = self.settled and self.letting_go == letting_go
        self.letting_go = letting_go
        self.letting_go_since = min(self.letting_go_since, now) if letting_go else FAR_FUTURE
        self.stuck = now - self.letting_go_since >= patience_ns
        return self.stuck != was_stuck

    def still_has(self, key_range: KeyRange) -> bool:
        """Whether its application has not let go of something in the range. The list has as many
        ranges as a message takes, in order, and is consulted for each range that could be granted.
        """
        there = self.letting_go
        last = len(there)
        if key_range.end is not None:
            last = bisect_left(there, key_range.end, key=lambda each: each.start)
        return last > 0 and there[last - 1].range.overlaps(key_range)

    def unsettle(self, context: LeaderContext) -> None:
        """Note that there is news for the incarnation: poke it, unless a poke is on its way."""
        self.settled = False
        self.cause = joined(self.cause, context.story())
        if not self.poked:
            self.poked = True
            context.send(self.connection, Poke(cause=self.cause))

    def forget_moves(self, key_range: KeyRange) -> None:
        """Forget the moves of a range that is no longer this incarnation's, or is so anew."""
        self.recalled.assign(key_range, NOT_RECALLED)
        self.orders.assign(key_range, NOT_ORDERED)
        self.untold.assign(key_range, value=False)

    @property
    def is_moving(self) -> bool:
        """Whether it was told to return or hand over anything, and has not done so yet."""
        return _is_laid(self.recalled) or _is_laid(self.orders) or _is_laid(self.untold)


def _is_laid(laid: RangeMap[Any]) -> bool:
    return len(laid) > 1 or bool(laid[LOWEST])
