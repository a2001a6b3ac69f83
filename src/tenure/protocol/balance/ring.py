"""Consistent hashing with virtual nodes: the papers' policy for hashed pools.

Every owner stands at 64 points of the key space, drawn by hashing its name; it has the keys from
each of its points up to the next point of anyone (Centrifuge 2.1.2). An owner that comes takes 1/n
of the keys, from all others alike, and one that leaves gives as many back to them. As long as no
loads are known, the ring depends on names alone: the same members give the same ring, whatever
happened before.

If loads are known, the numbers of points follow them: an owner that carries more than 10 % above
the mean loses a point, and the one that carries least gets one more (Centrifuge 2.1.2); one that
carries more than 10 % below gets one too (PRS 4.5). If few requests were counted, the difference
must be larger, or points would move by chance. The owner of the point before a lost one takes over
its keys, and a new point may fall anywhere. So even many moves balance little, and a hot key is
only passed on to somebody else. The number of points that each owner has is the policy's memory; a
new leader sees it in the table.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xxhash import xxh3_64_digest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import LOWEST
from tenure.protocol.balance.load import chance, share_of, sound
from tenure.protocol.balance.metrics import by_scarcest
from tenure.protocol.balance.pieces import carried
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    HeldBack,
    Plan,
    Situation,
    Why,
    forbidden,
    nothing_to_plan,
    obeying,
    open_to_more,
)
from tenure.protocol.lease.table import Right, owners_of

VIRTUAL_NODES = 64
"""The papers' figure: max/mean of about 1.3 on 100 owners, 2 KB a lease message."""
MOST = 256
"""The most virtual nodes that one owner may come to have: four times as many, and an 8 KB message.
"""
BAND = 0.1
"""The papers' figure: an owner this far from the mean gains or loses a virtual node."""
PAUSE_NS = seconds(20)
"""The time between two changes: three times as long as loads are smoothed, so that the effect of
the last change is seen.
"""
MOSTLY = 0.5
"""The part of the key space that must be where a ring would have it: then the table counts as a
ring, of which some ranges are on their way.
"""
WHY = Why("ring", "where the owners' points of the ring are")


class RingMemory(NamedTuple):
    """How many points each owner has, by name, if not the usual number; and when that
    last changed.
    """

    counts: Mapping[str, int]
    changed_at: Instant


def points(name: str, virtual_nodes: int = VIRTUAL_NODES) -> list[Key]:
    """The places of the owner called `name` on the ring."""
    return [xxh3_64_digest(f"{name}#{i}".encode()) for i in range(virtual_nodes)]


class Ring:
    """The policy, with its number of virtual nodes."""

    def __init__(self, virtual_nodes: int = VIRTUAL_NODES) -> None:
        self.virtual_nodes = virtual_nodes

    def __call__(self, situation: Situation) -> Plan:
        """Plan for the situation; the present table tells how many points every owner has."""
        if not situation.candidates:
            return nothing_to_plan()
        memory, held_back = self._follow_loads(
            by_scarcest(situation, owners_of(situation.present))[0]
        )
        owners = self._ring(open_to_more(situation), memory.counts)
        held_back += forbidden(situation)
        return Plan(obeying(situation, owners), RangeMap(WHY), held_back, memory)

    def _ring(self, candidates: Sequence[Candidate], counts: Mapping[str, int]) -> RangeMap[int]:
        if not candidates:
            return RangeMap(NOBODY)
        standing: dict[Key, int] = {}
        for candidate in sorted(candidates, key=lambda c: c.name, reverse=True):
            # Two names on one point, were it ever to happen: the lower name has it, on any machine.
            for point in points(candidate.name, counts.get(candidate.name, self.virtual_nodes)):
                standing[point] = candidate.incarnation
        starts = sorted(standing)
        owners = [standing[point] for point in starts]
        if starts[0] != LOWEST:
            starts.insert(0, LOWEST)
            owners.insert(0, owners[-1])  # the ring closes below its first point
        return RangeMap.at_starts(starts, owners)

    # --- following loads ---

    def _follow_loads(self, situation: Situation) -> tuple[RingMemory, list[HeldBack]]:
        """How many points every owner has from now on, and why no more of them have changed."""
        last = situation.memory if isinstance(situation.memory, RingMemory) else None
        if last is None:
            return RingMemory(self._counts_of(situation), situation.now), []
        if situation.loads is None or situation.frozen:
            return last, []
        if situation.now - last.changed_at < PAUSE_NS:
            return last, [
                HeldBack("following the load", "what the last change did is not seen yet")
            ]
        counts, held_back = self._adjusted(last.counts, _by_name(situation))
        changed = counts != last.counts
        return RingMemory(counts, situation.now if changed else last.changed_at), held_back

    def _adjusted(
        self, before: Mapping[str, int], weights: Mapping[str, float]
    ) -> tuple[dict[str, int], list[HeldBack]]:
        """A point less for an owner that carries too much, one more for an owner that carries least
        or too little.
        """
        counts = dict(before)
        mean = sum(weights.values()) / len(weights)
        band = max(mean * BAND, chance(mean))
        least, *others = sorted(weights, key=lambda name: (weights[name], name))
        held_back = []
        for name in reversed(others):
            if weights[name] <= mean * (1 + BAND / 2):
                break
            relieving = f"relieving {name}, at {weights[name] / mean:.2f} of the mean"
            if weights[name] <= mean + band:
                why = "nearer than 10 %" if band == mean * BAND else "so few requests may be chance"
                held_back.append(HeldBack(relieving, why))
                break
            count = counts.get(name, self.virtual_nodes)
            if count == 1:
                held_back.append(HeldBack(relieving, "it has one point of the ring, and no more"))
                continue
            counts[name] = count - 1
            counts[least] = min(counts.get(least, self.virtual_nodes) + 1, MOST)
        for name in others:  # the least has been given its own
            if weights[name] >= mean - band:
                break
            counts[name] = min(counts.get(name, self.virtual_nodes) + 1, MOST)
        if counts.get(least) == MOST:
            held_back.append(HeldBack(f"a point for {least}", f"it has {MOST}, which is the most"))
        return counts, held_back

    def _counts_of(self, situation: Situation) -> dict[str, int]:
        """The count of points of each owner in the table, if the table is a ring; the table of
        another policy tells nothing about points.
        """
        counts = self._seen(situation.candidates, situation.present)
        ring = self._ring(open_to_more(situation), counts)
        agrees = sum(
            share_of(part)
            for key_range, right in situation.present
            for part, owner in ring.within(key_range)
            if owner == right.owner
        )
        return counts if agrees > MOSTLY else {}

    def _seen(self, candidates: Sequence[Candidate], present: RangeMap[Right]) -> dict[str, int]:
        """How many points every owner has, judged by the ranges that begin at them.

        A point beside another of the same owner begins no range, and makes no difference either.
        """
        counts = {}
        owners = owners_of(present)
        owner_at = dict(zip(owners.starts(), owners.values(), strict=True))
        having = set(owner_at.values())
        for name, incarnation in ((each.name, each.incarnation) for each in candidates):
            if incarnation not in having:
                continue
            drawn = points(name, MOST)
            standing = [i for i, point in enumerate(drawn) if owner_at.get(point) == incarnation]
            hidden = {i for i, point in enumerate(drawn) if present[point].owner == incarnation}
            count = standing[-1] + 1 if standing else self.virtual_nodes
            while count < self.virtual_nodes and count in hidden:
                count += 1
            if count != self.virtual_nodes:
                counts[name] = count
        return counts


def _by_name(situation: Situation) -> dict[str, float]:
    """The load of each owner in the table, for each unit of its capacity, by name."""
    weights = carried(owners_of(situation.present), sound(situation.loads))
    return {
        each.name: weights.get(each.incarnation, 0.0) / each.capacity
        for each in situation.candidates
    }
