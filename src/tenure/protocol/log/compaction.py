"""Compaction: when the records of a journal are replaced by their sum, so that it does not grow.

The sum is taken of all that is decided, and replaces the records once the last of them is durable.
Under load there may be no moment at which nothing is on its way to the journal, so waiting for one
would let whoever keeps the manager busy make the journal grow without end.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")


class Compaction(Generic[S]):
    """The compaction of one leader's journal."""

    def __init__(self, after_records: int, after_bytes: int) -> None:
        self.after_records = after_records
        self.after_bytes = after_bytes
        self._lsn = 0
        """Up to where the records are replaced, or are about to be."""
        self._bytes = 0
        """The bytes of all records up to there."""
        self._taken: tuple[int, S] | None = None
        """A sum whose last records are on their way to the journal."""

    def begin(self, lsn: int) -> None:
        """A leadership begins, with a snapshot of that LSN."""
        self._lsn, self._bytes, self._taken = lsn, 0, None

    def take(self, lsn: int, size: int, sum_up: Callable[[], S]) -> None:
        """Take the sum of all records, if it is time. The last is `lsn`, and those since the
        snapshot have about `size` bytes.
        """
        is_long = lsn >= self._lsn + self.after_records or size >= self._bytes + self.after_bytes
        if is_long and self._taken is None:
            self._lsn, self._bytes, self._taken = lsn, size, (lsn, sum_up())

    def durable(self, committed: int) -> tuple[int, S] | None:
        """The LSN and the sum that replace the records now, if these are durable up to there."""
        if self._taken is None or self._taken[0] > committed:
            return None
        taken, self._taken = self._taken, None
        return taken
