"""What every journal promises: the contract between managers and the log that they share.

A journal is two things in one. A *log* of records with LSNs 1, 2, 3 ..., a prefix of which may have
been replaced by a snapshot. And a *seat*, on which one manager at a time leads. They are one thing
because only the leader may write, and the place that takes its writes decides whether it still
leads.

- **Mandates.** A call with a mandate does nothing unless this is the journal that it names, and its
  leadership has the seat. An append also says after which LSN; one leader writes one log, so a log
  that has gone on without it means two writers under one leadership, and is damage.
- **All or none, and durable.** A write that was answered with success outlives the manager, and its
  host too if the journal says so.
- **Repeatable.** After `Unknown`, the same append may be repeated until the answer is known (rule
  P18): finding the very records already there is success.
- **One history, one identity** (P22), drawn when the journal begins. LSNs and leaderships are never
  used twice in it, compacted or not.

Methods may be called from one event loop. On one handle, calls about the seat are carried out in
the order made, and so are appends, and so are compactions; between these kinds there is no order: a
beat need not wait for an append. `tenure.testing.contracts.journal` tests all this.
"""

import secrets
from typing import Generic, Protocol

import msgspec

from tenure.base.numbers import JournalId, Number
from tenure.errors import JournalDamaged, JournalTooNew, JournalWentBack
from tenure.protocol.log.journal import AppendResult, Mandate, R, S, Seat

FATAL = (JournalDamaged, JournalTooNew, JournalWentBack)
"""Errors that repeating a call does not mend: a manager that meets one stops, and says so."""


class WholeLog(msgspec.Struct, Generic[R, S], frozen=True):
    """All that was committed: the last snapshot, and every record after it."""

    journal: JournalId
    state: S
    state_lsn: int
    records: tuple[R, ...]

    @property
    def lsn(self) -> int:
        """The LSN of the last record."""
        return self.state_lsn + len(self.records)


class Tail(msgspec.Struct, Generic[R], frozen=True):
    """Records that follow one another, from the one after `after_lsn` on."""

    after_lsn: Number
    records: tuple[R, ...]

    @property
    def lsn(self) -> int:
        """The LSN of the last record."""
        return self.after_lsn + len(self.records)


class Journal(Protocol[R, S]):
    """A log and a seat, shared by managers: of records R, whose sum is a state S.

    Every method raises JournalError if it could not be carried out, and one of FATAL if repeating
    it is useless. Only `append` has a value for "not known", since only an append must be repeated
    until its outcome is known.
    """

    async def read_seat(self) -> Seat:
        """The seat, which says which manager leads."""
        ...

    async def campaign(self, seen: Seat, taken: Seat) -> Mandate | None:
        """Put `taken` in the place of the seat if that is exactly as `seen`; None if it is not.

        `taken` is of the leadership after `seen`, and names its manager.
        """
        ...

    async def beat(self, mandate: Mandate, beat: int) -> bool:
        """Show that the leader lives; False if it does not lead. Need not be durable."""
        ...

    async def resign(self, mandate: Mandate) -> None:
        """Leave the seat, if the mandate has it. From then on that leadership does not lead."""
        ...

    async def load(self) -> WholeLog[R, S]:
        """All that was committed."""
        ...

    async def load_after(self, journal: int, lsn: int) -> WholeLog[R, S] | Tail[R]:
        """All that was committed after `lsn` of `journal`, for a caller that has read that far.

        The whole log, if a snapshot has replaced some of those records, or this is another journal.
        Raises JournalWentBack if it is that journal, and ends before `lsn`.
        """
        ...

    async def append(
        self, mandate: Mandate, after_lsn: int, records: tuple[R, ...]
    ) -> AppendResult:
        """Add `records` right after `after_lsn`, all or none, if the mandate leads.

        `Committed` also where those very records already are there, by that leadership. `Unknown`
        for all that may pass: repeat the call. Raises JournalDamaged when the log ends elsewhere.
        """
        ...

    async def compact(self, mandate: Mandate, lsn: int, state: S) -> bool:
        """Put `state` in the place of the records up to `lsn`; False if the mandate does not lead.

        At once or not at all. Nothing happens if a snapshot of `lsn` or later exists already.
        """
        ...

    async def close(self) -> None:
        """Let go of the journal. It is not resigned; a second close does nothing."""
        ...


class Beginning(msgspec.Struct, Generic[S], frozen=True):
    """The beginning of a history that goes on from a copy of another."""

    journal: JournalId
    seat: Seat
    state: S


class Restorable(Journal[R, S], Protocol):
    """A journal that may be an old copy."""

    async def restore(self, seen: Seat, lsn: int, beginning: Beginning[S]) -> bool:
        """Go on as the journal that `beginning` says, its state in the place of all records.

        False, and nothing is done, where the seat is not exactly as `seen`, or the log does not end
        at `lsn`. LSNs go on from there. A manager that has it open from before finds it replaced,
        and gets one of FATAL; this handle goes on with the new one.
        """
        ...


def draw_identity() -> int:
    """An identity for a new journal: 63 random bits, and not 0, which stands for none."""
    return 1 + secrets.randbelow((1 << 63) - 1)


def check_campaign(seen: Seat, taken: Seat) -> None:
    """Assert the duties of a campaigner, so that no leadership is ever used twice."""
    assert taken.leadership == seen.leadership + 1, (seen, taken)
    assert taken.manager, "a leader has a URL"


def went_back(seen_lsn: int, lsn: int) -> JournalWentBack:
    """The error for a log that ends before what was already read of it."""
    return JournalWentBack(
        f"the journal ends at LSN {lsn}, and this manager has read it up to {seen_lsn}: it was put "
        "back to an earlier state. Stop every manager of it; then put the present one back, or go "
        "on from the old copy with `tenure restore`"
    )


def wrong_end(after_lsn: int, lsn: int, leadership: int) -> JournalDamaged:
    """The error for an append or a compaction whose LSN does not fit the log."""
    return JournalDamaged(
        f"the journal ends at LSN {lsn}, but leadership {leadership} writes as if at {after_lsn}: "
        "another manager writes under the same leadership, or the journal was put back to an "
        "earlier state. Stop every manager of it, and see that each has a journal of its own host"
    )
