"""A leadership that trusts the wall clock, for the mutant of that rule."""

from collections.abc import Callable
from typing import Any

from tenure.base.instants import Instant
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.journal import Beaten, Campaigned
from tenure.protocol.log.leadership import Leadership, SeatAction


class LeadershipByWallClock(Leadership):
    """A leadership that is counted from when the last confirmed beat was sent, as it should be, but
    on the wall clock.
    """

    def __init__(self, manager: str, timing: Timing, wall: Callable[[], Instant]) -> None:
        super().__init__(manager, timing)
        self._wall = wall
        self._asked_at_wall = self._proven_until_wall = Instant(0)

    def is_proven_at(self, now: Instant) -> bool:  # which it does not trust
        """Whether the wall clock says that the leadership lasts."""
        return self.phase == "leading" and self._wall() < self._proven_until_wall

    def _ask(self, now: Instant, action: SeatAction) -> SeatAction:
        self._asked_at_wall = self._wall()
        return super()._ask(now, action)

    def on_campaigned(self, event: Campaigned) -> bool:
        """Count from the campaign, on the wall clock."""
        return self._proven_anew(super().on_campaigned, event)

    def on_beaten(self, event: Beaten) -> bool:
        """Count from the beat, on the wall clock."""
        return self._proven_anew(super().on_beaten, event)

    def _proven_anew(self, take: Callable[[Any], bool], event: Campaigned | Beaten) -> bool:
        before = self.proven_until
        taken = take(event)
        if self.proven_until > before:
            self._proven_until_wall = Instant(self._asked_at_wall + self.timing.leadership_ns)
        return taken
