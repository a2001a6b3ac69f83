"""The literals of the weighted policy, each with its reason."""

from typing import NamedTuple

from tenure.base.instants import seconds


class Tuning(NamedTuple):
    """The literals, each with its reason."""

    ranges: int = 64
    """The ranges of each owner, at first: as many as the ring has points. A range is then 1.6 % of
    an owner, fine enough to level with whole ranges, and the table of 1,000 owners is 2 MB.
    """
    entries_at_most: int = 256
    """For each owner, on the average, in the table: what one owner has side by side is several
    where some state is older. Above it those with most of them move as a whole."""
    table: int = 98_304
    """Entries in all: three quarters of what a message carries."""
    ranges_at_most: int = 96
    """The most ranges of each owner, on average: above it the smallest are joined to their
    neighbours.
    """
    high: float = 1.05
    """An owner is relieved above this, as a part of the even share: half of the 10 % of the papers,
    so that what is not measured yet has room below their bound."""
    low: float = 0.8
    """An owner is filled up below this: an owner with less to do harms nobody, so it costs less to
    leave it until it is a fifth."""
    low_ns: int = seconds(300)
    """And only when it was below for so long: a key that is hot now and then leaves its owner with
    little to do in between, and what would fill that up would have to go again. A key that stands
    alone goes back when it was cold for as long."""
    peak_ns: int = seconds(600)
    """For about so long what was an even share a moment ago is not too much, up to twice what is
    one now. Where a hot key cools down, everybody else seems to carry too much, and bears no more
    than before; and mostly the key comes back."""
    budget: float = 0.09
    """The part of the key space that may move for balance at once while the pool is being placed:
    Slicer's figure for a round.
    """
    joining: float = 0.01
    """The part of the key space that may move at once to have fewer ranges: Slicer's figure."""
    refill_ns: int = seconds(300)
    """How long both budgets take to fill up: what is worth it waits no longer than this."""
    placing_ns: int = seconds(600)
    """A pool is being placed for so long after owners came or went, or a capacity changed: twice
    what it took to even out a skew. No client can bring that about."""
    load_budget: float = 0.04
    """The part of the key space that may move at once for balance later, when only load changes."""
    load_refill_ns: int = seconds(360)
    """How long that takes to fill up. Whatever clients ask for, it moves no more than a tenth of
    the space in nine minutes."""
    lasting: float = 0.4
    """The part of the key space that may move for either of them in the long run: twice the most
    that it took to even out a skew, after an even deal.
    """
    lasting_refill_ns: int = seconds(2 * 3600)
    """How long that takes to fill up. Whatever the load does, bursts or an attack, it moves no more
    than a fifth of the space an hour for ever, and what was saved up once. All hot keys may change
    every five minutes for hours: that takes as much."""
    key_cost: float = 0.0625
    """The cost of moving one key, as a part of an even range: it moves next to no state, but makes
    two ranges more.
    """
    cooldown_ns: int = seconds(20)
    """How long a range that moved for balance does not move again: three times the smoothing, when
    19 in 20 parts of what is known of it was measured since.
    """
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
    """The weight of idle key space for each owner, in checks a second: it makes an even share of
    keys without load, and next to nothing with it.
    """


DEFAULT = Tuning()
