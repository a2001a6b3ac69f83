"""What the weighted policy remembers of its last rounds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.arrivals import Arrivals
from tenure.protocol.balance.policy import Why
from tenure.protocol.balance.trend import Trend


class RecentMove(NamedTuple):
    """A round's change to a range."""

    at: Instant
    range: KeyRange
    why: Why
    cools: bool
    """Whether the range moved for balance, and so does not move again at once."""


class RoundMemory(NamedTuple):
    """The memory of a policy's last rounds."""

    owners: RangeMap[int]
    at: Instant
    members: Sequence[Sequence[object]]
    """The owners' incarnations and capacities."""
    placed_at: Instant
    """When the members last changed."""
    budget: float
    lasting: float
    joining: float
    moves: tuple[RecentMove, ...]
    """The moves that cool down or are under way, the oldest first."""
    arrivals: Arrivals
    hot: Mapping[Key, float] | None
    """The hot keys with the rates that were reported; None if no load was reported."""
    trends: Mapping[Key, Trend]
    """The trends of the keys whose rates had changed since the round before."""
    turned: tuple[int, ...]
    """Owners in whose load a trend was seen for the first time."""
    peak: float
    """The highest even share of recent rounds; it fades."""
    low_since: Mapping[int, Instant]
    """Owners that carry too little, and since when."""
    cold_since: Mapping[Key, Instant]
    """Keys that stand alone and are cold, and since when."""
    metric: str
    """The metric that was balanced."""
