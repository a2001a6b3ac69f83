"""Balance by the weight of ranges: the policy that follows the load.

Consistent hashing gives every owner an even part of the keys, but not of the load: with a skew like
that of names on the web, a few keys get more requests than all other keys of their owner together.
This policy starts from the present owners, and evens out the load with as few changes as possible:

1. *pin*: pinned keys go to their owners.
2. *house*: ranges without an owner go to owners that came a moment ago, or to those that carry
   least.
3. *devote*: a key that fills an owner alone gets an owner to itself, which gives everything else
away.
4. *welcome*: a new owner is given an even share, a little from many others; but not at once, since
   in a rolling restart some ranges soon lose their owner: see `arrivals`.
5. *level*: while an owner carries too much, or far too little, the piece that helps most for the
   least churn goes from the one with most to the one with least. Mostly that is a single hot key,
   which takes next to no state with it, and goes where another hot key has just cooled down.
6. *roll*: in an ordered pool, the place at which ever higher keys appear goes from owner to owner.
7. *join*: keys that stood alone and are cold again go back to their neighbours; so do the smallest
   ranges, if there are too many.

An ordered pool is planned in the same way, with another scale: its ranges are cut at the positions
that owners have reported (see `scale` and `positions`), and at first at the pool's split points.

The idea of weighing benefit against churn, within a budget for each round, is Slicer's (OSDI 2016,
4.4.2). Here a round takes seconds, not minutes, so the budget refills with time.
"""

from collections.abc import Sequence

from tenure.base.keys import Key
from tenure.protocol.balance.devoting import devote
from tenure.protocol.balance.joining import join
from tenure.protocol.balance.levelling import level
from tenure.protocol.balance.placing import house, pin, turn, wait
from tenure.protocol.balance.policy import Plan, Situation, nothing_to_plan
from tenure.protocol.balance.rolling import roll
from tenure.protocol.balance.round import Round
from tenure.protocol.balance.tuning import DEFAULT, Tuning
from tenure.protocol.balance.welcoming import welcome


class Weighted:
    """The policy, with its literals."""

    def __init__(self, tuning: Tuning = DEFAULT, split_points: Sequence[Key] | None = None) -> None:
        self.tuning = tuning
        self.split_points = split_points
        """Those of an ordered pool; None for a hashed one."""

    def __call__(self, situation: Situation) -> Plan:
        """Plan for the situation, keeping within the budget."""
        if not situation.candidates:
            return nothing_to_plan()
        this = Round(situation, self.tuning, self.split_points)
        pin(this)
        house(this)
        if this.capacity == 0:
            this.hold_back("balance", "all owners are cordoned")
        elif not situation.frozen:
            _balance(this)
        return this.plan()


def _balance(this: Round) -> None:
    wait(this)
    turn(this)
    devote(this)
    welcome(this)
    if this.situation.loads is not None:  # otherwise only space would count
        level(this)
        roll(this)
    join(this)
