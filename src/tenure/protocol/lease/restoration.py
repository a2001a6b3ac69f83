"""Going on from an old copy of a journal: when that may be, and what the new history begins with.

An old copy knows less than managers, owners and lookups do. Under its own identity it would give
numbers out a second time, and forget what was acknowledged. So it goes on as *another* journal
(rule P22): owners drop what they hold and join anew, lookups signal loss on all they knew, and
nothing is granted until whatever the lost history promised has run out. Nobody can say who held
what in the lost part, so the owners and leases of the copy are not taken over either. Pools are
taken over; and so are numbers, for applications that use them as fences: they go on far beyond any
that can have been given out in the lost part. An operator's orders go on too, except evictions,
which concerned incarnations. Clusters go on as their nodes know them; the nodes are asked.

No manager may use the copy meanwhile: neither one that leads on it, nor the last leader of the lost
history, which may answer for its leadership term after its last beat. To exclude both, a vigil
watches the seat for as long as a standby of any preset would.
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import PoolState, State
from tenure.protocol.lease.rivalry import PREDECESSORS_KEPT, Predecessor
from tenure.protocol.lease.table import NOBODY, LeaseTable
from tenure.protocol.lease.timing import PRESETS
from tenure.protocol.log.journal import Seat
from tenure.protocol.topology.history import LostCluster
from tenure.protocol.topology.records import ClusterName

LEADERSHIPS_PASSED = 10**9
"""A new leader every second for thirty years."""
INCARNATIONS_PASSED = 10**9
"""An owner that joins every second for thirty years."""
NUMBERS_PASSED = 10**12
"""A thousand grants a second for thirty years. Some thousands of restorations later, numbers are
still exact in JSON for languages that know only floating point."""
ABOVE_MOST = 8 * 10**15
"""The highest number that rows can name to go on above, so that a thousand more restorations give
exact numbers.
"""


class Vigil:
    """Watching the seat of a copy, to be sure that no manager has it."""

    def __init__(self, now: Instant, seat: Seat) -> None:
        self.seat = seat
        longest = (each.on_any_clock(each.leadership_ns) for each in PRESETS.values())
        self.over_at = Instant(now + max(seat.watch_ns, *longest))

    def is_disturbed(self, seat: Seat) -> bool:
        """Whether a manager beats, or has taken the seat or left it."""
        return seat != self.seat

    def is_over(self, now: Instant) -> bool:
        """Whether whoever led can count on its leadership no longer."""
        return now >= self.over_at


def restored(
    history: LeaseHistory,
    seat: Seat,
    secret: bytes,
    above: int = 0,
    clusters: Mapping[ClusterName, LostCluster] = MappingProxyType({}),
    journal: int = 0,
) -> tuple[Seat, State]:
    """The beginning of the new history: an empty seat, and the snapshot at the copy's LSN.

    Numbers go on far beyond those of the copy, and beyond `above`: if the journal was lost without
    a copy, and managers began with a new one, what was fenced by the lost one names its numbers.
    The nodes of its `clusters` know these, too.

    Its `secret`, drawn anew, is there before anybody leads on it. Were it drawn at the first
    takeover, a copy from before that one would lead to another secret, and no leader on the copy
    could open the receipts that show it to be old.

    `journal` is the copy's identity. With the copy's secret the new history remembers it, and can
    prove to its managers, if any still lives, that it goes on from there (P25).
    """
    leadership = max(history.leadership, seat.leadership) + LEADERSHIPS_PASSED
    pools = tuple(_restored(history.tables[pool], above) for pool in sorted(history.tables))
    predecessors = history.predecessors
    if journal and history.secret:
        predecessors = (*predecessors, Predecessor(journal, history.secret))[-PREDECESSORS_KEPT:]
    return Seat(leadership), State(
        leadership=leadership,
        promise_ns=history.promise_ns,
        waited_out=False,
        pools=pools,
        secret=secret,
        next_number=max(history.first.number, above) + NUMBERS_PASSED,
        next_incarnation=history.first.incarnation + INCARNATIONS_PASSED,
        clusters=history.clusters.restored(clusters),
        versions_passed=history.clusters.passed_by(clusters),
        predecessors=predecessors,
        realm=history.realm,
    )


def _restored(table: LeaseTable, above: int) -> PoolState:
    number = max(table.next_number, above) + NUMBERS_PASSED
    copied = table.state()
    return PoolState(
        pool=copied.pool,
        kind=copied.kind,
        split_points=copied.split_points,
        next_number=number + 1,
        next_incarnation=copied.next_incarnation + INCARNATIONS_PASSED,
        entries=(Entry(start=b"", end=None, owner=NOBODY, number=number, since=number),),
        members=(),
        numbered=copied.numbered,
        steering=replace(copied.steering, evicted=()),
        deleted=copied.deleted,
    )
