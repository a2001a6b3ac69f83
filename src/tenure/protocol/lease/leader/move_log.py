"""The log of moves: where ranges were, and how they came to their present owners, as a leader
remembers.

It is for people who ask why a key is where it is. Nothing is decided by it, so it is not journaled:
a new leader begins with an empty log, and says when its knowledge begins.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.policy import NOBODY, Plan, Why
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.table import LeaseTable

REMEMBERED = 10_000
"""The most moves of one pool that are remembered, some 200 bytes each: 150 restarts of an owner
with 64 ranges.
"""


class LoggedMove(NamedTuple):
    """A range went from one owner to another; to NOBODY if it was freed."""

    at: Instant
    range: KeyRange
    how: str
    giver: int
    giver_name: str
    taker: int
    taker_name: str
    number: int
    since: int
    why: Why | None
    """The reason why the plan had it elsewhere."""


class MoveLog:
    """The last moves of one pool."""

    def __init__(self, table: LeaseTable, at_most: int = REMEMBERED) -> None:
        self.table = table
        self.at_most = at_most
        self.begins_at: Instant | None = None
        """The time from which everything is known; None if nothing has happened yet."""
        self.plan = Plan(RangeMap(NOBODY), RangeMap(None))
        """The plan that is being carried out."""
        self.joined: dict[int, Instant] = {}
        """When the present members joined, as far as that was seen."""
        self._moves: deque[LoggedMove] = deque()

    def follow(self, now: Instant, plan: Plan) -> None:
        """Expect moves by `plan` from now on."""
        self._begin(now)
        self.plan = plan

    def _begin(self, now: Instant) -> None:
        if self.begins_at is None:
            self.begins_at = now

    def add(self, now: Instant, entries: Sequence[Entry], how: str) -> None:
        """Note the changes that `entries` are about to make in the table."""
        self._begin(now)
        for entry in entries:
            for piece, right in self.table.within(entry.range):
                planned, why = self.plan.owners[piece.start], self.plan.why[piece.start]
                is_recalled = how == "returned" and planned not in (right.owner, NOBODY)
                is_taken_back = how == "handed over" and entry.owner == right.owner
                said = "taken back" if is_taken_back else "recalled" if is_recalled else how
                names = self._name(right.owner), self._name(entry.owner)
                self._moves.append(
                    LoggedMove(
                        now,
                        piece,
                        said,
                        *(right.owner, names[0], entry.owner, names[1]),
                        *(entry.number, entry.since, why),
                    )
                )
        while len(self._moves) > self.at_most:
            self.begins_at = self._moves.popleft().at

    def _name(self, incarnation: int) -> str:
        member = self.table.members.get(incarnation)
        return member.name if member else ""

    def on_joined(self, now: Instant, incarnation: int) -> None:
        """Note a new member."""
        self._begin(now)
        self.joined[incarnation] = now

    def on_gone(self, incarnation: int) -> None:
        """Note that a member is gone."""
        self.joined.pop(incarnation, None)

    def of(self, key: Key) -> Iterator[LoggedMove]:
        """The moves of a key, the latest first."""
        return (move for move in reversed(self._moves) if key in move.range)
