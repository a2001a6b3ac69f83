"""Events: each is counted by its fixed words, and becomes one line of the standard log.

A machine says `Note(what, pool, detail)`; whoever runs it hands that to an `Observer`. `what` is
one of a small, fixed set of phrases, so that it can be a counter's name; what differs from time to
time (names, numbers) is in the detail. Counting comes before logging, and costs a dictionary's
increment: a log that is turned off loses no counts.

How loud a line is follows from `what` too. What an operator may have to act on is a warning, what
happens at every rebalance is for debugging, all else is information.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

Subscriber: TypeAlias = Callable[[str, str, str], None]
"""Called with what happened, the pool (or "") and the detail (or "")."""

ERRORS = frozenset({"gave up", "pool from the configuration refused", "message not encoded"})
WARNINGS = frozenset(
    {
        "append unknown",
        "deposed",
        "doubted: a peer has seen a later leadership or LSN",
        "journal failed",
        "malformed message",
        "oversized message",
        "owner attested dead",
        "owner expired",
        "silent: leadership not proven",
        "slow peer disconnected",
    }
)
QUIET = frozenset(
    {
        "asked a witness",
        "connected",
        "disconnected",
        "granted",
        "late attestation",
        "late request",
        "recalled",
    }
)


def level_of(what: str) -> int:
    """How loud the line of `what` is, as a level of `logging`."""
    if what in ERRORS:
        return logging.ERROR
    if what in WARNINGS or what.startswith("refused: "):
        return logging.WARNING
    return logging.DEBUG if what in QUIET else logging.INFO


class Observer:
    """Counts what happens, logs it, and tells whoever subscribed."""

    def __init__(self, logger: str) -> None:
        self.logger = logging.getLogger(logger)
        self.counters: Counter[str] = Counter()
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` at every event, in the thread in which it happens."""
        self._subscribers.append(subscriber)

    def note(self, what: str, pool: str = "", detail: str = "") -> None:
        """Something happened. `what` is one of a fixed set of phrases."""
        self.counters[what] += 1
        level = level_of(what)
        if self.logger.isEnabledFor(level):
            self.logger.log(level, line(what, pool, detail))
        for subscriber in self._subscribers:
            subscriber(what, pool, detail)


def line(what: str, pool: str, detail: str) -> str:
    """One line, whatever the names in it: what a peer sent cannot begin a second one."""
    text = f"{what}: {detail}" if detail else what
    return printable(f"[{pool}] {text}" if pool else text)


def printable(text: str) -> str:
    """`text` with everything that could steer a terminal or break a line shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
