"""Owners that came a moment ago, and why they wait: in a rolling restart, others leave ranges.

A new owner is to have an even share. But most new owners replace another: the predecessor has just
left and the next owner is about to, or the predecessor leaves once its successor exists. If a
newcomer were filled from all others at once, it would be full when the next owner leaves its ranges
behind, and each key would move twice in a restart. So a newcomer waits for a moment before it is
filled. Ranges that an owner leaves behind go to it first. Then it is filled, if it still needs
that.

In a pool that has only just begun, no owner is about to leave, so none waits.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, Instant

LONG_AGO = Instant(-FAR_FUTURE)
NOBODY_CAME: Mapping[int, Instant] = MappingProxyType({})


class Arrivals(NamedTuple):
    """The new owners that a round remembers."""

    began_at: Instant | None = None
    """When all ranges were dealt at once, because no owner had any."""
    came_at: Mapping[int, Instant] = NOBODY_CAME
    """When each new owner came that has not been filled up yet, by incarnation."""

    def seen(self, now: Instant, there: Iterable[int], having: set[int]) -> "Arrivals":
        """The arrivals to remember from now on: an owner that is present and has nothing counts as
        new.
        """
        came_at = {
            each: self.came_at.get(each, now)
            for each in there
            if each in self.came_at or each not in having
        }
        return Arrivals(self.began_at if having else now, came_at)

    def ready_at(self, incarnation: int, settling_ns: int) -> Instant:
        """When the owner is to be filled up; long ago, if it is not new."""
        came_at = self.came_at.get(incarnation, LONG_AGO)
        if self.began_at is not None and came_at - self.began_at < settling_ns:
            return LONG_AGO
        return Instant(came_at + settling_ns)

    def without(self, incarnation: int) -> "Arrivals":
        """The arrivals without this owner, which was filled up."""
        rest = {each: at for each, at in self.came_at.items() if each != incarnation}
        return self._replace(came_at=rest)
