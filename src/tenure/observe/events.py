"""Events: each is counted by its kind's words, and becomes one line of the standard log.

A machine says `Noted`; the shell that runs it hands that to an `Observer`. What differs from one
event to the next (names, numbers) is in the detail. Counting comes before logging, and costs a
dictionary's increment: a log that is turned off loses no counts.
"""

import logging
from collections import Counter
from collections.abc import Callable
from time import monotonic_ns
from typing import TypeAlias

from tenure.base.instants import seconds
from tenure.base.noted import NOTED, Level, Noted, NotedKind

Subscriber: TypeAlias = Callable[[Noted], None]
WINDOW_NS = seconds(60)
LINES_IN_A_WINDOW = 300
"""The most lines of one kind about one pool: owners that come and go without end, which takes no
more than a token, would fill the disk. What is left out is counted. Errors are never left out.
"""


class Observer:
    """Counts what happens, logs it, and tells subscribers."""

    def __init__(self, logger: str, clock: Callable[[], int] = monotonic_ns) -> None:
        self.logger = logging.getLogger(logger)
        self._clock = clock
        self._since = clock()
        self._lines: Counter[tuple[NotedKind, str]] = Counter()
        """The lines since then, by kind and pool, with those that were left out."""
        self.counters: Counter[str] = Counter()
        self._said: dict[tuple[NotedKind, str], str] = {}
        """The last detail of repeated events, by kind and pool."""
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` at every event, in the thread in which it happens."""
        self._subscribers.append(subscriber)

    def count(self, kind: NotedKind) -> None:
        """Count an event without a line in the log."""
        self.counters[kind.phrase] += 1

    def note(self, noted: Noted) -> None:
        """Count an event, log it, and tell subscribers."""
        self.count(noted.kind)
        level = self._level(noted)
        if self.logger.isEnabledFor(level) and self._has_room(noted, level):
            self.logger.log(level, line(noted), extra={NOTED: noted})
        for subscriber in self._subscribers:
            subscriber(noted)

    def _has_room(self, noted: Noted, level: Level) -> bool:
        now, which = self._clock(), (noted.kind, noted.pool)
        if now - self._since >= WINDOW_NS:
            self._since = now
            self._tell_left_out()
        self._lines[which] += 1
        return level >= Level.ERROR or self._lines[which] <= LINES_IN_A_WINDOW

    def _tell_left_out(self) -> None:
        lines, self._lines = self._lines, Counter()
        for (kind, pool), count in lines.items():
            left_out = count - LINES_IN_A_WINDOW
            if left_out > 0 and kind.level < Level.ERROR:
                told = Noted(kind, pool, f"{left_out} more in a minute, which were only counted")
                self.logger.log(kind.level, line(told), extra={NOTED: told})

    def _level(self, noted: Noted) -> Level:
        """The level of its line: a repeated event is loud only when it is news."""
        kind, which = noted.kind, (noted.kind, noted.pool)
        if not kind.repeats:
            return kind.level
        before = self._said.get(which)
        self._said[which] = noted.detail
        return Level.DEBUG if before == noted.detail else kind.level


def line(noted: Noted) -> str:
    """One line, whatever the names in it: text that a peer sent cannot begin a second one."""
    return printable(f"[{noted.pool}] {noted.text}" if noted.pool else noted.text)


def printable(text: str) -> str:
    """`text` with everything that could steer a terminal or break a line shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
