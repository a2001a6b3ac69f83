"""The checkers of a world of entities. They know what left the entities, and nothing about who
asked.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lab.worlds.entity.entries import PlacedOp, Point, Shown
from lab.worlds.entity.history import LedgerHistory, Lost
from tenure.base.keys import hashed_key
from tenure.base.ranges import KeyRange
from tenure.sim.kernel.checkers import Violation

MOST_OVERDUE = 400.0
"""Seconds: an alarm whose handler fails is put off for 300 at most."""


class ToldLoss(NamedTuple):
    """A process was told of a loss."""

    at: int
    ranges: tuple[KeyRange, ...]
    later_than: frozenset[int] = frozenset()
    """The journals before the one that its lookup follows."""


class Told:
    """The losses that one process was told of."""

    def __init__(self, since: int, name: str = "") -> None:
        self.since = since
        """When the process's lookup first had a table."""
        self.name = name
        self.tellings: list[ToldLoss] = []

    def of(self, lost: Lost) -> bool:
        """Whether the process was told of this loss, and no earlier than it can have happened.

        A lookup that follows another journal finds nothing of the one before, and never will. So
        its process knows of the loss, although an owner may do operations for others until its term
        is over; but not if the process itself has asked it for some since.
        """
        place = hashed_key(lost.key)
        here = [each for each in self.tellings if any(place in it for it in each.ranges)]
        asked_at = lost.asked_at_by.get(self.name, 0)
        return any(
            each.at >= (asked_at if lost.journal in each.later_than else lost.since)
            for each in here
        )


class EntityCheckers:
    """The promises of entities."""

    def __init__(self, keys: Iterable[str], *, is_durable: bool, now: Callable[[], int]) -> None:
        self.histories = {key: LedgerHistory(key, is_durable=is_durable) for key in keys}
        self._losses: list[Lost] = []
        self._now = now

    def newest(self, key: str) -> Point:
        """The latest known point of the key's ledger."""
        return self.histories[key].newest

    def begins(self, key: Any, epoch: int, journal: int) -> None:
        """A ledger may begin now, at an owner that has its lease in that journal."""
        self.histories[key].begins(epoch, journal)

    def see(self, key: str, entry: PlacedOp, after: Point, asked_at: int, by: str) -> None:
        """Check an entry that has left the entity, and that a process sees. Raises Violation."""
        lost = self.histories[key].see(entry, after, asked_at, self._now(), by)
        if lost is not None:
            self._losses.append(lost)

    def check_alarms(self, key: str, shown: Shown, wall: float) -> None:
        """Check that a working entity has an alarm for everything that waits for one, and that none
        is overdue.
        """
        if sorted(shown.waiting) != sorted(shown.alarms):
            raise Violation("alarms", f"{key}: {shown.waiting} wait, and {shown.alarms} are set")
        for name, due in shown.alarms.items():
            if due + MOST_OVERDUE < wall:
                raise Violation("alarms", f"{key}: {name} is overdue by {wall - due:.0f} s")

    def check_told(self, told: Iterable[Told]) -> None:
        """Check that every process that existed was told of every loss (S2). Raises Violation."""
        check_told(told, self._losses)


def check_told(told: Iterable[Told], losses: list[Lost]) -> None:
    """Check that every process that existed was told of every loss (S2), and forget the losses.
    Raises Violation.
    """
    for each in told:
        for lost in losses:
            if each.since < lost.since and not each.of(lost):
                raise Violation("a loss is told", f"{lost} is not among {each.tellings[-5:]}")
    losses.clear()
