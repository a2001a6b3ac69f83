"""The literals of the weighted policy, each with its reason."""

from typing import NamedTuple

from tenure.base.instants import seconds


class Tuning(NamedTuple):
    """The literals, each with its reason."""

    ranges: int = 64
    """The number of ranges of each owner, at first: as many as the ring has points. A range is then
    1.6 % of an owner, fine enough to level with whole ranges, and the table of 1,000 owners is 2
    MB.
    """
    entries_at_most: int = 256
    """The most entries in the table for each owner, on average: adjacent ranges of one owner are
    several entries if some state is older. Above this number, the ranges of owners with the most
    entries move as a whole."""
    table: int = 98_304
    """The most entries in the whole table: three quarters of what a message carries."""
    ranges_at_most: int = 96
    """The most ranges of each owner, on average: above it the smallest are joined to their
    neighbours.
    """
    high: float = 1.05
    """An owner is relieved above this, as a part of the even share: half of the 10 % of the papers,
    so that what is not measured yet has room below their bound."""
    low: float = 0.8
    """An owner is filled up below this: an owner with little to do harms nobody, so it costs less
    to leave it alone until it lacks a fifth."""
    low_ns: int = seconds(300)
    """How long an owner must carry too little before it is filled up: a key that is hot now and
    then leaves its owner with little to do in between, and ranges that were moved there would have
    to leave again. A key that stands alone goes back when it has been cold for as long."""
    peak_ns: int = seconds(600)
    """The time in which the remembered peak of the even share fades. While it lasts, an owner is
    not relieved of what was an even share at the peak, up to twice the present even share. When a
    hot key cools down, all other owners seem to carry too much although they bear no more than
    before; and mostly the key becomes hot again."""
    budget: float = 0.09
    """The part of the key space that may move for balance at once while the pool is being placed:
    Slicer's figure for a round.
    """
    joining: float = 0.01
    """The part of the key space that may move at once to have fewer ranges: Slicer's figure."""
    refill_ns: int = seconds(300)
    """How long both budgets take to fill up: a worthwhile move waits no longer than this."""
    placing_ns: int = seconds(600)
    """A pool is being placed for this long after owners came or left, or a capacity changed: twice
    as long as evening out a skew took. No client can bring that about."""
    load_budget: float = 0.04
    """The part of the key space that may move at once for balance later, when only load changes."""
    load_refill_ns: int = seconds(360)
    """How long that takes to fill up. Whatever clients request, it moves no more than a tenth of
    the space in nine minutes."""
    lasting: float = 0.4
    """The part of the key space that may move for either purpose in the long run: twice the most
    that evening out a skew took, after an even deal.
    """
    lasting_refill_ns: int = seconds(2 * 3600)
    """How long that takes to fill up. Whatever the load does, in bursts or in an attack, it moves
    no more than a fifth of the space an hour in the long run, and what was saved up once. If all
    hot keys change every five minutes for hours, that takes as much."""
    key_cost: float = 0.0625
    """The cost of moving one key, as a part of an even range: it moves next to no state, but makes
    two more ranges.
    """
    cooldown_ns: int = seconds(20)
    """How long a range that moved for balance does not move again: three times the smoothing, after
    which 19 in 20 parts of what is known of it were measured since the move.
    """
    alone: float = 0.05
    """The part of an even share from which a key is moved alone: below it a whole range weighs as
    much, and its load is better known."""
    cold: float = 0.02
    """The part of an even share below which a key that stands alone goes back: far enough below
    `alone` that noise does not send the key to and fro."""
    settling_ns: int = seconds(5)
    """How long a new owner takes only ranges that others leave, and is not filled up. In a rolling
    restart the next owners leave within this time; an operator who adds owners waits no longer for
    them to be filled than reports of load take to be believed."""
    idle: float = 1.0
    """The weight of the key space itself for each owner, in checks a second: it deals keys without
    load evenly, and matters next to nothing beside load.
    """
    rolling: float = 1.1
    """The most that an owner may carry to whom a front rolls, as a part of its even share, or of
    what the front alone is, if that is more: half of what a pool may be uneven at a moment."""


DEFAULT = Tuning()
ORDERED = Tuning(ranges=16, ranges_at_most=48)
"""For ordered pools: neighbours are to stay together, and an owner's sample of 64 keys cuts no
finer than four keys a range."""
