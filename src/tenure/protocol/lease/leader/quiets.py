"""Quiets: how long caches may still hit what an earlier owner let them read (rule V13).

An owner that dies withdraws nothing. The end of a hold, a return and a hand-off leave no read lease
behind (V11, V12); only an attested death frees ranges while caches may still hit. So the leader
remembers until when they may, also after the ranges are granted, and says so with each grant. A new
leader does not know which deaths its predecessor accepted as attested: it counts from its takeover.

An owner that gives no read leases has not said that it understands quiets: it is granted the range
when the quiet is over.
"""

from collections.abc import Iterable

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.table import LeaseTable

NO_QUIET = Instant(0)


class Quiets:
    """The times at which caches of dead owners stop hitting each range of one pool."""

    def __init__(self, context: LeaderContext, table: LeaseTable) -> None:
        self.context = context
        self.table = table
        self.until: RangeMap[Instant] = RangeMap(NO_QUIET)
        self.wake_at = FAR_FUTURE
        """When a range that was held back may be granted."""
        if table.reads_ns:
            # Deaths that the predecessor believed are on no record: any range may be hit yet.
            self.until = RangeMap(self.ends_at(context.took_over_at, table.reads_ns))

    def ends_at(self, now: Instant, reads_ns: int) -> Instant:
        """When all volume leases that were given until now have ended."""
        return Instant(now + self.context.timing.on_any_clock(reads_ns))

    def on_death(self, now: Instant, incarnation: int, ranges: Iterable[KeyRange]) -> None:
        """Note that an owner died before its term was over; these were its ranges."""
        until = self.ends_at(now, self.table.members[incarnation].reads_ns)
        for key_range in ranges:
            for piece, before in list(self.until.within(key_range)):
                # An earlier death may be the one whose caches hit longer.
                self.until.assign(piece, max(before, until))
        for piece, before in list(self.until.within(WHOLE)):
            if before <= now:
                self.until.assign(piece, NO_QUIET)

    def left_ns(self, now: Instant, key: Key) -> int:
        """How long the next owner must wait, on any clock, from when it is told."""
        left_ns = self.until[key] - now
        if left_ns <= 0:
            return 0
        timing = self.context.timing
        # Its clock may be the faster one, and would end the quiet too early.
        return timing.on_any_clock(min(left_ns, self.table.reads_ns))

    def longest_ns(self, now: Instant) -> int:
        """The longest time for which anything of the pool that dead owners served may
        still be hit.
        """
        return max(max(self.until.values()) - now, 0)

    def is_held_back(self, now: Instant, key: Key, incarnation: int) -> bool:
        """Whether a range must wait, because that owner knows no quiets."""
        if self.table.members[incarnation].reads_ns or not self.left_ns(now, key):
            return False
        self.wake_at = min(self.wake_at, self.until[key])
        return True

    def is_over(self, now: Instant) -> bool:
        """Whether something that was held back may be granted by now. Says so only once."""
        if now < self.wake_at:
            return False
        self.wake_at = FAR_FUTURE
        return True
