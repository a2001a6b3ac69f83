"""Restoring: an old copy of a journal goes on, as another journal, once no manager has it.

`protocol.lease.restoration` decides what may be done and what follows; this module carries it out:
it reads the copy, watches its seat, and changes the journal in one step that compares what was read
and watched.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from secrets import token_bytes
from types import MappingProxyType

import msgspec

from tenure.base.instants import in_seconds
from tenure.errors import ConfigurationError, JournalError
from tenure.journals.contract import Beginning, Restorable, draw_identity
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.receipts import SECRET_BYTES
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.lease.restoration import Vigil, restored
from tenure.protocol.log.journal import Seat
from tenure.protocol.topology.history import LostCluster
from tenure.protocol.topology.records import ClusterName
from tenure.runtime.clock import Clock, boot_clock

LOOK_SECONDS = 0.25
"""How often the seat is looked at: a manager that beats is found out at its next beat."""

Pause = Callable[[float], Awaitable[None]]


class RestoredCopy(msgspec.Struct, frozen=True):
    """A copy of a journal, read."""

    journal: int
    lsn: int
    seat: Seat
    history: LeaseHistory
    above: int = 0
    """A number above which those of the new history are, beside those of the copy."""
    clusters: Mapping[ClusterName, LostCluster] = {}
    """Clusters of a lost journal, which their nodes know."""

    def beginning(self) -> Beginning[State]:
        """The beginning of the new history, under an identity that is drawn anew each time."""
        secret = token_bytes(SECRET_BYTES)
        seat, state = restored(
            self.history, self.seat, secret, self.above, self.clusters, self.journal
        )
        return Beginning(draw_identity(), seat, state)


async def read_copy(
    journal: Restorable[AnyRecord, State],
    above: int = 0,
    clusters: Mapping[ClusterName, LostCluster] = MappingProxyType({}),
) -> RestoredCopy:
    """Read all that is in the journal; its numbers are to go on beyond `above`, too, and it is to
    have the clusters that are named, as their nodes know them.

    Raises JournalError; ConfigurationError if there is nothing in it, or another ring in the place
    of a cluster.
    """
    seat = await journal.read_seat()
    found = await journal.load()
    history = LeaseHistory(found.state, found.state_lsn)
    for record in found.records:
        history.apply(record)
    for name in clusters.keys() & history.clusters.states.keys():
        topology = history.clusters.states[name].topology
        if topology.ranges and topology.id != clusters[name].id:
            raise ConfigurationError(
                f"the journal has a cluster {name!r} with a ring of its own, {topology.id:016x}: "
                "forget that one first, with tenure columns forget; nothing was changed"
            )
    if not history.tables and not history.clusters.states and not (above or clusters):
        # Also: a journal that has granted nothing believes --first-start, and this one must not.
        raise ConfigurationError(
            f"the journal ends at LSN {history.lsn} and knows no pool and no cluster, so there is "
            "nothing in it to go on from: move it away, and start the managers with a new one; "
            "nothing was changed"
        )
    return RestoredCopy(found.journal, history.lsn, seat, history, above, clusters)


async def restore(
    journal: Restorable[AnyRecord, State],
    copy: RestoredCopy,
    tell: Callable[[float], None],
    *,
    clock: Clock = boot_clock,
    pause: Pause = asyncio.sleep,
) -> Beginning[State]:
    """Watch the seat, then begin the new history; with what it begins.

    `tell` is called with how many seconds are still to watch. Raises JournalError if a manager has
    the journal, or it cannot be reached; then nothing was changed.
    """
    vigil = Vigil(clock(), copy.seat)
    while not vigil.is_over(now := clock()):
        left = in_seconds(vigil.over_at - now)
        tell(left)
        await pause(min(LOOK_SECONDS, left))
        seat = await journal.read_seat()
        if vigil.is_disturbed(seat):
            raise in_use(seat, copy.seat)
    beginning = copy.beginning()
    if not await journal.restore(copy.seat, copy.lsn, beginning):
        raise in_use(await journal.read_seat(), copy.seat)
    return beginning


def in_use(seat: Seat, seen: Seat) -> JournalError:
    """The error for a journal that a manager has."""
    manager = seat.manager or seen.manager
    who = f"the manager {manager} beats" if manager else "a manager writes to it"
    return JournalError(
        f"the journal is in use: {who} (leadership {seat.leadership}, beat {seat.beat}). Stop "
        "every manager of it, and whatever starts them again, then restore it; nothing was changed"
    )
