"""Refusals of strangers are always counted, and reported within bounds.

Anybody who reaches a port can be refused as often as they like. Without a bound, the log would fill
the disk, and pages and commands would show only refusals.
"""

from collections import Counter
from collections.abc import Callable

from tenure.base.instants import Instant, seconds
from tenure.base.noted import Noted
from tenure.manager.noted import ServiceKind
from tenure.observe.events import Observer

WINDOW_NS = seconds(60)
MOST_TOLD = 100
"""The most lines in a minute: a screen or two."""
MOST_TOLD_OF_A_PEER = 10
"""The most lines about one peer in a minute, so that it does not hide the others."""


class StrangerNotes:
    """Passes refusals on to an observer, while they are news."""

    def __init__(self, observer: Observer, clock: Callable[[], Instant]) -> None:
        self._observer = observer
        self._clock = clock
        self._since = clock()
        self._told: Counter[str] = Counter()
        self._untold = 0

    def note(self, noted: Noted, peer: str) -> None:
        """The client at `peer` was refused."""
        now = self._clock()
        if now - self._since >= WINDOW_NS:
            self._since = now
            self._tell_untold()
        if self._told[peer] < MOST_TOLD_OF_A_PEER and self._told.total() < MOST_TOLD:
            self._told[peer] += 1
            self._observer.note(noted)
        else:
            self._untold += 1
            self._observer.count(noted.kind)

    def _tell_untold(self) -> None:
        untold, self._untold = self._untold, 0
        self._told.clear()
        if untold:
            self._observer.note(Noted(ServiceKind.UNTOLD, detail=f"{untold} in a minute"))
