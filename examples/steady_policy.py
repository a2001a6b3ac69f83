"""A policy of one's own: it follows no load, and moves as little as it can when owners come or go.

Run a manager that may use it, and choose it for a pool:

    PYTHONPATH=examples tenure manager --policies steady_policy:Steady
    tenure pool policy rooms steady_policy:Steady --dry-run

The key space has 1,024 slots. Each stays with its owner, as long as that owner is there and has no
more slots for its capacity than others. `tests/contracts/test_policies.py` tests it with the suite
for policies, as you would test yours.
"""

from tenure.policies import (
    NOBODY,
    Candidate,
    Plan,
    RangeMap,
    Situation,
    Why,
    forbidden,
    nothing_to_plan,
    obeying,
    open_to_more,
)

SLOTS = 1024
STARTS = [b"", *((i << 54).to_bytes(8, "big") for i in range(1, SLOTS))]
WHY = Why("steady", "each owner has as many slots as its capacity allows")


class Steady:
    """Makes plans for hashed pools."""

    follows_load = False
    """The manager asks only when owners come or go."""

    def __call__(self, situation: Situation) -> Plan:
        """Plan for the situation, without changing it."""
        if not situation.candidates:
            return nothing_to_plan()
        there = {each.incarnation for each in situation.candidates}
        owners = [situation.present[start].owner for start in STARTS]
        owners = [owner if owner in there else NOBODY for owner in owners]
        if takers := open_to_more(situation):
            share_out(owners, takers)
        # Pins, freezes and cordons hold whatever a policy plans; a plan should say so itself.
        kept = obeying(situation, RangeMap.at_starts(STARTS, owners))
        return Plan(kept, RangeMap(WHY), forbidden(situation))


def share_out(owners: list[int], takers: list[Candidate]) -> None:
    """Give each slot that nobody has to the owner with the least; then even out the rest."""
    capacity = {each.incarnation: min(max(each.capacity, 0.01), 100.0) for each in takers}
    slots: dict[int, list[int]] = {each: [] for each in sorted(capacity)}
    free = []
    for slot, owner in enumerate(owners):
        if owner == NOBODY:
            free.append(slot)
        elif owner in slots:
            slots[owner].append(slot)

    def with_one_more(owner: int) -> float:
        return (len(slots[owner]) + 1) / capacity[owner]

    def use(owner: int) -> float:
        return len(slots[owner]) / capacity[owner]

    for slot in free:
        slots[min(slots, key=with_one_more)].append(slot)
    while use(giver := max(slots, key=use)) > with_one_more(taker := min(slots, key=with_one_more)):
        slots[taker].append(slots[giver].pop())
    for owner, those in slots.items():
        for slot in those:
            owners[slot] = owner
