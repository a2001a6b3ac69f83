"""The requests of the manager machine to a journal, and the answers.

The journal is the manager's durable, ordered log, and the place where managers compete to lead. The
deciding code knows the journal only by these structs: a request is an action, its result an event.

Whatever a leader writes is guarded by its mandate, and an append also by the LSN before it. So an
append can be repeated after an `Unknown` (rule P18): a journal that finds the very records there
already, under that leadership, answers `Committed`. Nothing rests on a journal's sense of time
(P20).
"""

from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from tenure.base.numbers import JournalId, Number

R = TypeVar("R")
"""The records that the protocol's journal holds."""
S = TypeVar("S")
"""The state that the records add up to, and that a snapshot keeps."""


class Seat(msgspec.Struct, frozen=True):
    """The leader's seat in the journal, which changes by compare-and-set only."""

    leadership: Number = 0
    beat: Number = 0
    """A number that grows while the leader lives; a standby watches it (P23)."""
    manager: str = ""
    """The leader's URL; empty where nobody leads, at the very start or after a resignation."""
    watch_ns: Number = 0
    """How long a standby must see no beat, on its own clock, before it may take the seat (P23)."""


class Mandate(msgspec.Struct, frozen=True):
    """A leader's proof of its right to write, shown with each write: its journal, and its
    leadership.

    The number alone would not suffice: leaderships are numbered within a journal, so if a journal
    replaces another, two leaders can have the same number.
    """

    journal: JournalId = 0
    leadership: Number = 0


# --- actions ------------------------------------------------------------------------------------


class ReadSeat(msgspec.Struct, frozen=True):
    """Read the seat. Answered by SeatRead or JournalFailed."""


class Campaign(msgspec.Struct, frozen=True):
    """Replace `seen` by `taken`, if the seat has not changed. Answered by Campaigned."""

    seen: Seat
    taken: Seat


class Beat(msgspec.Struct, frozen=True):
    """Set the seat's beat, if the manager still leads by the mandate. Answered by Beaten."""

    mandate: Mandate
    beat: Number


class Resign(msgspec.Struct, frozen=True):
    """Give up the seat: its manager becomes "", and a standby need not wait. Not answered."""

    mandate: Mandate


class Load(msgspec.Struct, frozen=True):
    """Read what was committed after `after_lsn` of `journal`. Answered by Followed; or by Loaded,
    if those records are no longer kept, or the journal is another.
    """

    leadership: Number
    """0 if a standby reads, to keep up."""
    journal: JournalId = 0
    """0 if nothing is known yet."""
    after_lsn: Number = 0


class Append(msgspec.Struct, Generic[R], frozen=True):
    """Add `records` after `after_lsn`, all or none, if the manager still leads by the mandate.
    Answered by Appended.
    """

    mandate: Mandate
    after_lsn: Number
    records: tuple[R, ...]


class Compact(msgspec.Struct, Generic[S], frozen=True):
    """Replace all records up to `lsn` by `state`, if the manager still leads. Not answered."""

    mandate: Mandate
    lsn: Number
    state: S


LogAction: TypeAlias = ReadSeat | Campaign | Beat | Resign | Load | Append[R] | Compact[S]
LOG_ACTIONS = (ReadSeat, Campaign, Beat, Resign, Load, Append, Compact)


# --- events -------------------------------------------------------------------------------------


class SeatRead(msgspec.Struct, frozen=True):
    """The seat, as the journal has it."""

    seat: Seat


class Campaigned(msgspec.Struct, frozen=True):
    """The campaign for `leadership` was won or lost. A lost answer is no answer: read the seat."""

    leadership: Number
    mandate: Mandate | None
    """None if the campaign was lost."""


class Beaten(msgspec.Struct, frozen=True):
    """The beat was taken, or refused because another leads."""

    leadership: Number
    beat: Number
    kept: bool


class Loaded(msgspec.Struct, Generic[R, S], frozen=True):
    """Everything that was committed: a state, and the records after it."""

    leadership: Number
    journal: JournalId
    state: S
    state_lsn: Number
    records: tuple[R, ...]

    @property
    def lsn(self) -> int:
        """The LSN of the last record."""
        return self.state_lsn + len(self.records)


class Followed(msgspec.Struct, Generic[R], frozen=True):
    """Everything that was committed after `after_lsn`."""

    leadership: Number
    journal: JournalId
    after_lsn: Number
    records: tuple[R, ...]

    @property
    def lsn(self) -> int:
        """The LSN of the last record."""
        return self.after_lsn + len(self.records)


class Committed(msgspec.Struct, frozen=True):
    """The records are durable; `lsn` is the LSN of the last one."""

    lsn: Number


class Deposed(msgspec.Struct, frozen=True):
    """Nothing was written, because another manager leads."""


class Unknown(msgspec.Struct, frozen=True):
    """Nobody knows whether the records were written: no answer came."""

    why: str = ""


AppendResult: TypeAlias = Committed | Deposed | Unknown


class Appended(msgspec.Struct, frozen=True):
    """The outcome of the append after `after_lsn` under `leadership`."""

    leadership: Number
    after_lsn: Number
    result: AppendResult


class JournalFailed(msgspec.Struct, frozen=True):
    """A call other than an append did not reach the journal, or was refused."""

    action: LogAction[Any, Any]
    why: str


LogEvent: TypeAlias = (
    SeatRead | Campaigned | Beaten | Loaded[R, S] | Followed[R] | Appended | JournalFailed
)
