"""Dealing split ranges out evenly: a policy for ordered pools that never cuts a range.

Hashing names would scatter neighbours, which an ordered pool exists to avoid. So this policy begins
with the split points that it was given (or with one range). Each range goes whole to one owner, all
owners have the same number of ranges, give or take one, and as few ranges as possible move when the
members change.
"""

from collections import Counter
from collections.abc import Sequence

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import LOWEST
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    Plan,
    Situation,
    Why,
    forbidden,
    obeying,
    open_to_more,
)
from tenure.protocol.lease.table import Right

WHY = Why("deal", "every owner has as many of the split ranges as any other, give or take one")


class Deal:
    """The policy, with the pool's split points."""

    follows_load = False

    def __init__(self, split_points: Sequence[Key]) -> None:
        self.starts = [LOWEST, *sorted(set(split_points) - {LOWEST})]

    def __call__(self, situation: Situation) -> Plan:
        """Plan, leaving ranges where they are as far as evenness allows."""
        candidates = open_to_more(situation)
        if not candidates:
            return Plan(obeying(situation, RangeMap(NOBODY)), RangeMap(WHY), forbidden(situation))
        owners = self._keep(candidates, situation.present)
        self._hand_out(candidates, owners)
        dealt = RangeMap.at_starts(self.starts, owners)
        return Plan(obeying(situation, dealt), RangeMap(WHY), forbidden(situation))

    def _keep(self, candidates: Sequence[Candidate], present: RangeMap[Right]) -> list[int]:
        """Every range with the owner it has, up to an even share each; otherwise NOBODY."""
        share, extra = divmod(len(self.starts), len(candidates))
        kept: Counter[int] = Counter({candidate.incarnation: 0 for candidate in candidates})
        owners = []
        for start in self.starts:
            owner = present[start].owner
            if owner in kept and (kept[owner] < share or (kept[owner] == share and extra > 0)):
                extra -= kept[owner] == share
                kept[owner] += 1
                owners.append(owner)
            else:
                owners.append(NOBODY)
        return owners

    def _hand_out(self, candidates: Sequence[Candidate], owners: list[int]) -> None:
        """Give what is left to the owners that have least, the earliest incarnation first."""
        having = Counter(owners)
        in_order = sorted(candidate.incarnation for candidate in candidates)
        for i, owner in enumerate(owners):
            if owner == NOBODY:
                least = min(in_order, key=lambda incarnation: having[incarnation])
                owners[i] = least
                having[least] += 1
