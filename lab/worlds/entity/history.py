"""The history of one key as seen from outside: answers, frames and readings, and what must be true
of them together.

Places are given once, and an operation has one place. A reader that asks after an operation was
seen sees it too: there is one ledger, in one order, wherever the key lives (it is linearizable). A
ledger whose state is lost begins a later epoch, and an earlier one never comes back.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lab.worlds.entity.entries import PlacedOp, Point
from tenure.sim.kernel.checkers import Violation


class Lost(NamedTuple):
    """A ledger was lost, and a new one has begun."""

    key: str
    since: int
    """The last instant, in real nanoseconds, at which somebody asked for an operation that the lost
    ledger did.
    """
    seen_at: int
    journal: int = 0
    """Where the owners of the lost ledger had their leases; 0 if that is not known."""
    asked_at_by: Mapping[str, int] = {}
    """When each process asked last for an operation that the lost ledger did."""


class LedgerHistory:
    """The history of one key."""

    def __init__(self, key: str, *, is_durable: bool) -> None:
        self.key = key
        self._is_durable = is_durable
        self.newest = Point()
        self._asked_at: dict[Point, int] = {}
        """When each newest entry was asked for."""
        self._asked_at_by: dict[int, dict[str, int]] = {}
        """When each process asked last for what a ledger did, by epochs."""
        self._journals: dict[int, int] = {}
        self._ops: dict[Point, str] = {}
        self._points: dict[tuple[int, str], Point] = {}

    def begins(self, epoch: int, journal: int) -> None:
        """A ledger may begin now, at an owner that has its lease in that journal."""
        self._journals[epoch] = journal

    def see(
        self, entry: PlacedOp, after: Point, asked_at: int, now: int, by: str = ""
    ) -> Lost | None:
        """Check an entry that was seen by a process that asked when `after` was the newest. Raises
        Violation.
        """
        point = Point(entry.epoch, entry.place)
        asked_at_by = self._asked_at_by.setdefault(entry.epoch, {})
        asked_at_by[by] = max(asked_at_by.get(by, 0), asked_at)
        if entry.place:
            self._check_op(point, entry.op)
        is_other = after.epoch and point.epoch != after.epoch
        if is_other and self._is_durable:
            raise Violation("what is stored is kept", f"{self.key}: {entry} was seen after {after}")
        begins_anew = is_other and not entry.place
        if point < after and not begins_anew:
            raise Violation(
                "one ledger",
                f"{self.key}: {entry} was seen by who asked when {after} was known already",
            )
        lost = None
        if self.newest.epoch and self.newest.epoch < point.epoch:
            lost = self._lost(self.newest, now)
        elif begins_anew:  # a slow answer: others may have begun a later ledger meanwhile
            lost = self._lost(after, now)
        if point > self.newest:
            self.newest = point
            self._asked_at[point] = asked_at
        return lost

    def _lost(self, last: Point, now: int) -> Lost:
        journal, by = self._journals.get(last.epoch, 0), self._asked_at_by.get(last.epoch, {})
        return Lost(self.key, self._asked_at[last], now, journal, by)

    def _check_op(self, point: Point, op: str) -> None:
        if op.startswith("failed"):
            raise Violation("all or nothing", f"{self.key}: {op} has raised, and is at {point}")
        there = self._ops.setdefault(point, op)
        if there != op:
            raise Violation("one ledger", f"{self.key}: both {there} and {op} are at {point}")
        first = self._points.setdefault((point.epoch, op), point)
        if first != point:
            raise Violation("done once", f"{self.key}: {op} is at {first}, and at {point}")
