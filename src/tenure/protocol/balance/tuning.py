"""The literals of the weighted policy, each with its reason."""

from typing import NamedTuple

from tenure.base.instants import seconds


class Tuning(NamedTuple):
    """The literals, each with its reason."""

    ranges: int = 64
    """For each owner, at first: as many as the ring has points. A range is then 1.6 % of an owner,
    fine enough to level with whole ranges, and the table of 1,000 owners is 2 MB."""
    ranges_at_most: int = 96
    """For each owner, on the average: above it the smallest are joined to their neighbours."""
    high: float = 1.05
    """An owner is relieved above this, as a part of the even share: half of the 10 % of the papers,
    so that what is not measured yet has room below their bound."""
    low: float = 0.8
    """An owner is filled up below this: an owner with less to do harms nobody, so it costs less to
    leave it until it is a fifth."""
    budget: float = 0.09
    """Of the key space, that may move for balance at once: Slicer's figure for a round."""
    joining: float = 0.01
    """Of the key space, that may move at once in order to have fewer ranges: Slicer's figure."""
    refill_ns: int = seconds(300)
    """How long both budgets take to fill up. What moves for ever moves the space about once in an
    hour at most, and nothing that is worth it waits longer than this."""
    cooldown_ns: int = seconds(20)
    """What has moved for balance does not move again for this long: three times the smoothing, when
    19 in 20 parts of what is known of it was measured since."""
    alone: float = 0.05
    """A key is moved alone from this part of an even share on: below it a whole range weighs as
    much, and is known better."""
    cold: float = 0.02
    """A key that stands alone goes back below this: far enough below `alone` that noise does not
    send it to and fro."""
    settling_ns: int = seconds(5)
    """For so long who came is left to take what others leave, and is not filled up. In a rolling
    restart the next ones leave within it; who adds owners waits no longer than reports of load
    take to be believed."""
    idle: float = 1.0
    """What idle key space weighs for each owner, in checks a second: what makes an even share of
    keys without load, and nothing to speak of with it."""


DEFAULT = Tuning()
