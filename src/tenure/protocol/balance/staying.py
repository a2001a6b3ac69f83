"""The simplest rule: everything stays where it was planned, and ranges without an owner get one.

A pool whose policy raises or hangs goes on by this rule. It needs no loads and no memory, runs in
one pass, and moves only ranges of owners that are gone or may no longer have any.
"""

from heapq import heapify, heapreplace

from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import share_of
from tenure.protocol.balance.policy import (
    NOBODY,
    Plan,
    Situation,
    Why,
    forbidden,
    obeying,
    open_to_more,
)

WHY = Why("staying", "its owner is gone, and the pool's policy gives no plan")


class Staying:
    """A policy that keeps to the last plan."""

    def __init__(self, last: RangeMap[int]) -> None:
        self.last = last

    def __call__(self, situation: Situation) -> Plan:
        """The last plan; a range that it gives to nobody goes to the owner with least for its
        capacity.
        """
        there = {each.incarnation for each in situation.candidates}
        planned = list(self.last)
        having = dict.fromkeys(there, 0.0)
        for key_range, owner in planned:
            if owner in there:
                having[owner] += share_of(key_range)
        least = [
            (having[each.incarnation] / each.capacity, each.incarnation, each.capacity)
            for each in open_to_more(situation)
        ]
        heapify(least)
        owners = []
        for key_range, owner in planned:
            if owner in there or not least:
                owners.append(owner if owner in there else NOBODY)
                continue
            use, taker, capacity = least[0]
            heapreplace(least, (use + share_of(key_range) / capacity, taker, capacity))
            owners.append(taker)
        stayed = RangeMap.at_starts(self.last.starts(), owners)
        return Plan(obeying(situation, stayed), RangeMap(WHY), forbidden(situation))
