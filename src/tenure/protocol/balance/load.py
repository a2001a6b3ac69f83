"""The load, as a policy sees it: how often each key is requested.

A rate is known for each range that an owner reported, and for each of the hottest keys in it. The
rest of the range's rate is taken to be spread evenly over its keys. In a hashed pool that is nearly
true: only single keys are uneven after hashing, and the hottest of them are known.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple, TypeAlias

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import HASHED_KEY_BYTES, Key
from tenure.base.ranges import KeyRange

SPACE = 1 << 64
"""The length of the key space. A key's place in it is its first 8 bytes, which in a hashed pool is
all of it. In an ordered pool that is only a guess of how many keys lie between two others; policies
have a better one there: see `scale`."""


def place(key: Key | None) -> int:
    """The place of `key` in the key space; for the end None of a range, the end of the space."""
    if key is None:
        return SPACE
    if len(key) == HASHED_KEY_BYTES:
        return int.from_bytes(key, "big")
    return int.from_bytes(key[:HASHED_KEY_BYTES].ljust(HASHED_KEY_BYTES, b"\0"), "big")


def places(keys: Sequence[Key]) -> list[int]:
    """The places of all these keys: the same as `place` gives, but fast for a hundred thousand
    keys.
    """
    number = int.from_bytes
    return [number(key, "big") if len(key) == HASHED_KEY_BYTES else place(key) for key in keys]


def key_of(at: int) -> Key:
    """The lowest key of 8 bytes at that place."""
    return at.to_bytes(HASHED_KEY_BYTES, "big")


def share_of(key_range: KeyRange) -> float:
    """How much of the key space the range is, from 0 to 1."""
    return (place(key_range.end) - place(key_range.start)) / SPACE


Point: TypeAlias = tuple[Key, float]
"""A key, and the rate of what is asked for there."""


class Position(NamedTuple):
    """A key of an ordered pool near which keys were met: it stands for those up to the next."""

    key: Key
    rate: float
    mass: float
    """What was asked for there within the last hour or so: a guess of how much state is there."""


class Loads(NamedTuple):
    """Rates, as of `at`: checks a second, or whatever unit owners count in."""

    at: Instant
    starts: Sequence[Key]
    """The starts of the ranges: sorted, from b"" on; each range goes up to the next."""
    rates: Sequence[float]
    """The rate of each of these ranges, its hottest keys included."""
    hottest: Sequence[Point] = ()
    """Single keys with their rates, sorted by key."""
    sample: Sequence[Position] = ()
    """Where in its ranges the load of an ordered pool lies, sorted by key."""
    fronts: Sequence[Point] = ()
    """The places of an ordered pool at which ever higher keys appear, sorted: see `positions`."""


HIGHEST_RATE = 1e18
"""The highest rate, in requests a second: the sum of all rates that may exist is still finite."""


def is_rate(rate: float) -> bool:
    """Whether the value can be a rate: at least 0, and not so high that sums would be infinite."""
    return 0 <= rate <= HIGHEST_RATE


def sound(loads: Loads | None) -> Loads | None:
    """The loads without values that cannot be rates: such values count as nothing."""
    if loads is None or (
        all(map(is_rate, loads.rates))
        and all(is_rate(rate) for _, rate in (*loads.hottest, *loads.fronts))
        and all(is_rate(each.rate) and is_rate(each.mass) for each in loads.sample)
    ):
        return loads
    return loads._replace(
        rates=[rate if is_rate(rate) else 0.0 for rate in loads.rates],
        hottest=[(key, rate) for key, rate in loads.hottest if is_rate(rate)],
        sample=[each for each in loads.sample if is_rate(each.rate) and is_rate(each.mass)],
        fronts=[(key, rate) for key, rate in loads.fronts if is_rate(rate)],
    )


SMOOTHING_NS = 6 * SECOND_NS
"""The time over which rates are smoothed: two reports at the default interval of renewing. With
less, the noise of counting moves ranges; with more, a new hot spot is believed too late."""

DEVIATIONS = 3
"""How many standard deviations of a count are taken for chance: fewer than 2 owners in 1,000 lie
beyond. With one, a pool of 10 owners with 5 checks a second each moves its whole key space in an
hour; with three, 0.3 %.
"""


def chance(rate: float) -> float:
    """How far a smoothed rate may be from the true rate, by chance.

    A rate smoothed over a time is worth the counts of twice that time.
    """
    window = 2 * SMOOTHING_NS / SECOND_NS
    return DEVIATIONS * sqrt(rate / window)
