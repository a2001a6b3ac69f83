"""The beliefs of owners at this instant, as their readers see them."""

from bisect import bisect_right

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.belief import cut
from tenure.sim.lease.processes import OwnerParty


def believes(owner: OwnerParty, piece: KeyRange) -> bool:
    """Whether the owner, now, believes that it holds any key of `piece`."""
    if not owner.alive or owner.site.now >= owner.believes_until:
        return False
    leases = owner.holdings.leases
    after = bisect_right(leases, piece.start, key=_start)
    if after and piece.start in leases[after - 1].range:
        return True
    return after < len(leases) and (piece.end is None or leases[after].start < piece.end)


def _start(lease: Leased) -> Key:
    return lease.start


def number_of(owner: OwnerParty, key: Key) -> int | None:
    """The number under which the owner holds the key now, as its readers see it."""
    lease = lease_of(owner, key)
    return lease.number if lease else None


def lease_of(owner: OwnerParty, key: Key) -> Leased | None:
    """The lease under which the owner holds the key now, as its readers see it."""
    if not owner.alive or owner.site.now >= owner.believes_until:
        return None
    leases = owner.holdings.leases
    after = bisect_right(leases, key, key=_start)
    held = leases[after - 1] if after else None
    return held if held and (held.end is None or key < held.end) else None


def added(old: tuple[Leased, ...], new: tuple[Leased, ...]) -> list[Leased]:
    """The pieces of `new` that were not held under the same number in `old`."""
    had = RangeMap.of(((lease.range, lease.number) for lease in old), 0)
    return [
        cut(lease, piece)
        for lease in new
        for piece, number in had.within(lease.range)
        if number != lease.number
    ]
