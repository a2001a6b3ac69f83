"""Who came a moment ago, and what they wait for: in a rolling restart others leave something.

Whoever comes is to have an even share. But most come in the place of another: its predecessor has
just left and the next owner is about to, or its predecessor leaves now that it is there. Were the
newcomer filled up from all others at once, it would be full when the ranges of the next to leave
look for a place, and each key would move twice in a restart. So it waits a moment with what it is
given; what is left behind goes to it first. Then it is filled up, if it still needs that.

Where the whole pool has only just begun, nobody is about to leave, and nobody waits.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, Instant

LONG_AGO = Instant(-FAR_FUTURE)
NOBODY_CAME: Mapping[int, Instant] = MappingProxyType({})


class Arrivals(NamedTuple):
    """What a round remembers of who came."""

    began_at: Instant | None = None
    """When nobody had anything, and all was dealt."""
    came_at: Mapping[int, Instant] = NOBODY_CAME
    """Those that were not filled up yet, by incarnation."""

    def seen(self, now: Instant, there: Iterable[int], having: set[int]) -> "Arrivals":
        """What is remembered from now on: of those that are there, who has nothing has come."""
        came_at = {
            each: self.came_at.get(each, now)
            for each in there
            if each in self.came_at or each not in having
        }
        return Arrivals(self.began_at if having else now, came_at)

    def ready_at(self, incarnation: int, settling_ns: int) -> Instant:
        """When it is to be filled up, if it came."""
        came_at = self.came_at.get(incarnation, LONG_AGO)
        if self.began_at is not None and came_at - self.began_at < settling_ns:
            return LONG_AGO
        return Instant(came_at + settling_ns)

    def without(self, incarnation: int) -> "Arrivals":
        """It was filled up."""
        rest = {each: at for each, at in self.came_at.items() if each != incarnation}
        return self._replace(came_at=rest)
