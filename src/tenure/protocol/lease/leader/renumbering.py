"""Renumbering: adjacent ranges of one owner become one entry of the table again.

Ranges are one entry only if owner, number and `since` agree (P11). Each move makes a number, so the
table would keep growing if keys come and go with their state. Now and then the leader gives one new
number to neighbours that differ in nothing but their numbers. Their owner is told the old numbers
too (`Leased.former`) and goes on holding: nothing moves, ends or is lost.

`since` stays as it is. Raising it, so that neighbours with different `since` could be joined too,
would be wrong: everything written under a lower number would then count as lost, for lookups and
for all programs that store the number of a lease beside their data.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby

from tenure.base.instants import Instant, seconds
from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import Changed
from tenure.protocol.lease.table import NOBODY, LeaseTable, Right

EVERY_NS = seconds(60)
"""The time between two looks at the whole table: often enough for what moves within a policy's
budget.
"""
RUNS_PER_RECORD = 4_096
"""The most runs that are changed at once: a push to lookups and an append stay small beside the
table.
"""


class Renumbering:
    """The renumbering of one pool under a leader."""

    def __init__(
        self,
        context: LeaderContext,
        table: LeaseTable,
        publisher: Publisher,
        sessions: Mapping[int, Session],
    ) -> None:
        self.context = context
        self.table = table
        self.publisher = publisher
        self.sessions = sessions
        self.at = Instant(0)
        """When to look next: at the next message after it, since no wake-up is set for this."""

    def advance(self, now: Instant) -> None:
        """Look whether there are too many entries, if it is time."""
        if now < self.at or len(self.table.rights) <= self.context.fragments:
            return
        self.at = Instant(now + EVERY_NS)
        found = self.runs(self.table.rights, self.table.next_number)
        mine = [each for each in found if self._may_change(each[0].owner)][:RUNS_PER_RECORD]
        if sum(count - 1 for _, count in mine) < self.context.fragments:
            return
        entries = tuple(entry for entry, _ in mine)
        record = Changed(pool=self.table.pool, entries=entries, renumbers=True)
        self.publisher.add(now, self.context.write(record), entries)
        for incarnation in sorted({entry.owner for entry in entries}):
            self.sessions[incarnation].unsettle(self.context)

    def _may_change(self, incarnation: int) -> bool:
        """Whether the owner lists exactly what the table has, and knows renumbering."""
        session = self.sessions.get(incarnation)
        return session is not None and session.settled and session.knows_former

    @staticmethod
    def runs(rights: RangeMap[Right], number: int) -> Iterator[tuple[Entry, int]]:
        """The entries that could be one, as one under `number`, and how many entries
        they are now.
        """
        alike = groupby(rights, key=lambda each: (each[1].owner, each[1].since))
        for (owner, since), group in alike:
            ranges = [key_range for key_range, _ in group]
            if owner != NOBODY and len(ranges) > 1:
                start, end = ranges[0].start, ranges[-1].end
                entry = Entry(start=start, end=end, owner=owner, number=number, since=since)
                yield entry, len(ranges)
