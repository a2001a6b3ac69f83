"""The journal as a standby has read it so far, so that a takeover reads only new records.

At each look at the seat, a standby asks for the records after those that it knows, and applies
them: a few, or none. If a snapshot has replaced them, or the journal is another, it reads
everything again. This history has committed records only. A leader works on a history that runs
ahead of what is durable: it takes this one over, and a new one begins when the leader is deposed.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from tenure.protocol.log.journal import Followed, Load, Loaded

R = TypeVar("R")
S = TypeVar("S")
R_contra = TypeVar("R_contra", contravariant=True)

NOBODY = 0
"""The leadership under which a standby reads."""
NO_JOURNAL = 0


class History(Protocol[R_contra]):
    """The sum of a protocol's records."""

    lsn: int
    """The LSN of the last record."""

    def apply(self, record: R_contra) -> None:
        """Apply `record`, which has the next LSN."""

    def invariants(self) -> None:
        """Assert the invariants of the history."""


H = TypeVar("H", bound=History[Any])


class Follower(Generic[R, S, H]):
    """A history that keeps up with the journal; `begin` makes one from a snapshot."""

    def __init__(self, begin: Callable[[S, int], H]) -> None:
        self.begin = begin
        self.journal = NO_JOURNAL
        self.history: H | None = None
        self.snapshot_lsn = 0
        """The LSN of the snapshot from which the history was last begun."""
        self._under_way: Load | None = None

    @property
    def lsn(self) -> int:
        """The LSN up to which the follower has read."""
        return self.history.lsn if self.history else 0

    def look(self) -> list[Load]:
        """Ask for new records as a standby, unless such a question is under way."""
        return [] if self._under_way else [self.read(NOBODY)]

    def read(self, leadership: int) -> Load:
        """Ask for new records. Answers to earlier questions are no longer taken."""
        self._under_way = Load(leadership, self.journal, self.lsn)
        return self._under_way

    def has_gone_back(self, event: Loaded[R, S] | Followed[R]) -> bool:
        """Whether the leader is told less than it had read before it led: the journal is an old
        copy (P22).
        """
        is_newest = self._is_under_way(event) and event.leadership != NOBODY
        return is_newest and event.journal == self.journal and event.lsn < self.lsn

    def on_read(self, event: Loaded[R, S] | Followed[R]) -> bool:
        """Take the journal's answer. Returns whether it answers the last question."""
        if not self._is_under_way(event):
            return False
        self._under_way = None
        if isinstance(event, Loaded):
            if event.journal == self.journal and event.lsn < self.lsn:
                return False  # an overtaken answer to an earlier question
            self.journal = event.journal
            self.history = self.begin(event.state, event.state_lsn)
            self.snapshot_lsn = event.state_lsn
        assert self.history
        for record in event.records:
            self.history.apply(record)
        return True

    def _is_under_way(self, event: Loaded[R, S] | Followed[R]) -> bool:
        asked = self._under_way
        if asked is None or event.leadership != asked.leadership:
            return False
        if isinstance(event, Loaded):
            return True
        return (event.journal, event.after_lsn) == (asked.journal, asked.after_lsn)

    def on_failed(self, load: Load) -> bool:
        """Ask again at the next look. Returns whether the last question is the one that failed."""
        if load != self._under_way:
            return False
        self._under_way = None
        return True

    def take(self) -> H:
        """Hand the history over to a leader, and forget it."""
        assert self.history
        history, self.history, self.journal = self.history, None, NO_JOURNAL
        return history

    def invariants(self) -> None:
        """The follower knows to which journal its history belongs."""
        assert (self.history is None) == (self.journal == NO_JOURNAL)
        if self.history:
            self.history.invariants()
