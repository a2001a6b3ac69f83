"""The ledger: decisions of a leader that the journal has not yet confirmed (rule P18).

A decision is applied at once, so that the next one builds on it, but no later message leaves before
the journal has the decision: messages wait here behind the record that was the last when they were
made. One append is under way at a time, and the next takes all records that gathered meanwhile, so
a busy manager writes many changes with one fsync. An append whose fate is unknown is repeated as it
was; the journal tells a repetition from a second record by the LSN before it.
"""

from collections import deque
from typing import Generic, TypeVar

from tenure.protocol.log.journal import Append, Mandate

R = TypeVar("R")
A = TypeVar("A")

RECORDS_PER_APPEND = 1000
"""Keeps one append well under a second on a slow disk, and below any store's request limit."""


class Ledger(Generic[R, A]):
    """Records on their way to the journal, and the actions that wait for them."""

    def __init__(self, mandate: Mandate, lsn: int) -> None:
        self.mandate = mandate
        self.committed = lsn
        self.written = lsn
        self.unsettled = 0
        """How many records are written and not yet committed."""
        self._unsent: deque[R] = deque()
        self._under_way: tuple[R, ...] = ()
        self._waiting: deque[tuple[int, A]] = deque()

    def write(self, record: R) -> int:
        """Take a record, and return its LSN."""
        self._unsent.append(record)
        self.written += 1
        self.unsettled += 1
        return self.written

    def hold_back(self, action: A) -> None:
        """Keep `action` until all that is written is committed. If nothing is unsettled, the caller
        may carry it out at once.
        """
        assert self.unsettled
        self._waiting.append((self.written, action))

    def next_append(self) -> Append[R] | None:
        """The append to make now, if there are records for one and none is under way."""
        if self._under_way or not self._unsent:
            return None
        count = min(len(self._unsent), RECORDS_PER_APPEND)
        self._under_way = tuple(self._unsent.popleft() for _ in range(count))
        return self.repeated_append()

    def repeated_append(self) -> Append[R]:
        """The append under way, once more."""
        assert self._under_way
        return Append(self.mandate, self.committed, self._under_way)

    @property
    def is_appending(self) -> bool:
        """Whether an append is under way, or its fate is unknown."""
        return bool(self._under_way)

    def on_committed(self, lsn: int) -> list[A]:
        """Settle the append under way, and return the actions that may leave now."""
        assert lsn == self.committed + len(self._under_way), (lsn, self.committed)
        self.committed = lsn
        self.unsettled -= len(self._under_way)
        self._under_way = ()
        released = []
        while self._waiting and self._waiting[0][0] <= lsn:
            released.append(self._waiting.popleft()[1])
        return released

    def invariants(self) -> None:
        """No action waits for a committed record, and every written record is kept somewhere."""
        in_hand = len(self._under_way) + len(self._unsent)
        assert self.written - self.committed == in_hand, (self.written, self.committed, in_hand)
        assert self.unsettled == in_hand
        assert all(lsn > self.committed for lsn, _ in self._waiting)
