"""Steps: what a node's machine asks of its store. Each happens at one instant.

The machine decides what is done and what it means; the engine has the entries. A step is read,
decide, write, and its result comes back as an event. Its changes are not durable yet: results say
how many changes the store had seen by then, and a sync makes all up to some number durable.
"""

from typing import TypeAlias

import msgspec

from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.copies import (
    CopyMark,
    FillingPart,
    FillingRecord,
    RangeHorizon,
)
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.states import RowState
from tenure.protocol.topology.records import Position


class ApplyMutation(msgspec.Struct, frozen=True):
    """Admit a mutation, and apply it: see `admission`."""

    table: str
    key: Key
    edits: tuple[Edit, ...]
    attempt: Attempt


class ReadParts(msgspec.Struct, frozen=True):
    """Read what there is of a row: see `parts`."""

    table: str
    key: Key
    questions: tuple[SectionQuestion, ...]


class ReadState(msgspec.Struct, frozen=True):
    """Read all of a row: see `states`."""

    table: str
    key: Key


class TakeState(msgspec.Struct, frozen=True):
    """Merge a state: see `merging`."""

    table: str
    key: Key
    state: RowState


class RaiseRowFence(msgspec.Struct, frozen=True):
    """Refuse lower lease numbers from here on, and this try's repetitions; read all of the row."""

    table: str
    key: Key
    number: int
    journal: int
    attempt: int


class ListRows(msgspec.Struct, frozen=True):
    """List the rows in a range after a position."""

    table: str
    range: KeyRange
    after: bytes


class ListKeys(msgspec.Struct, frozen=True):
    """List the rows between two positions."""

    table: str
    lower: bytes
    upper: bytes | None
    reverse: bool


class FollowRanges(msgspec.Struct, frozen=True):
    """Keep the sums of these ranges, and of no others."""

    ranges: tuple[KeyRange, ...]


class BuildSums(msgspec.Struct, frozen=True):
    """Count some rows that are not in the sums yet."""


class ReadSums(msgspec.Struct, frozen=True):
    """The sums of a range, or the inner ones of one."""

    table: str
    range: KeyRange
    place: int | None = None


class ListPlaces(msgspec.Struct, frozen=True):
    """List the rows in some inner sums of a range."""

    table: str
    range: KeyRange
    places: tuple[int, ...]


class FindDoomed(msgspec.Struct, frozen=True):
    """Find the newest thing in a range that was deleted at least `lag_us` ago."""

    range: KeyRange
    lag_us: int


class SweepSome(msgspec.Struct, frozen=True):
    """Remove some of what was deleted, and is sealed."""


class WeighRows(msgspec.Struct, frozen=True):
    """Measure some more of a sample of rows."""


class KeepHint(msgspec.Struct, frozen=True):
    """Keep a write for another node."""

    key: bytes
    hint: bytes


class DropHint(msgspec.Struct, frozen=True):
    """Forget it."""

    key: bytes


class ReadHints(msgspec.Struct, frozen=True):
    """Read some of the hints that are kept, after a key."""

    after: bytes


class RaisePromised(msgspec.Struct, frozen=True):
    """Take no more writes in a range that are not above a time."""

    range: KeyRange
    time: int


class RaiseSealed(msgspec.Struct, frozen=True):
    """Record that everything in a range up to a time is known."""

    range: KeyRange
    time: int


class WipeRange(msgspec.Struct, frozen=True):
    """Forget some rows of a range; with the last of them, what was promised there."""

    range: KeyRange


class BeginFilling(msgspec.Struct, frozen=True):
    """Record what is to be copied; all of it was wiped."""

    record: FillingRecord


class ReadPiece(msgspec.Struct, frozen=True):
    """Read rows of a range as they are kept, after a mark."""

    range: KeyRange
    mark: CopyMark
    most_bytes: int


class TakePiece(msgspec.Struct, frozen=True):
    """Store rows as another replica keeps them, together with how far the copy has come."""

    rows: bytes
    horizons: tuple[RangeHorizon, ...]
    number: int
    """The number of the part of the filling's record."""
    part: FillingPart
    """The part as it is with these rows."""


class CompareRows(msgspec.Struct, frozen=True):
    """Find which of these rows are not the same here."""

    table: str
    rows: tuple[tuple[bytes, bytes], ...]
    """Positions and digests."""


Step: TypeAlias = (
    ApplyMutation
    | ReadParts
    | ReadState
    | TakeState
    | RaiseRowFence
    | ListRows
    | ListKeys
    | FollowRanges
    | BuildSums
    | ReadSums
    | ListPlaces
    | FindDoomed
    | SweepSome
    | WeighRows
    | KeepHint
    | DropHint
    | ReadHints
    | RaisePromised
    | RaiseSealed
    | WipeRange
    | BeginFilling
    | ReadPiece
    | TakePiece
    | CompareRows
)


class PartsRead(msgspec.Struct, frozen=True):
    """The parts that the replica has, and by which horizon and adoption."""

    parts: tuple[SectionPart, ...]
    sealed: int
    adopted: int
    attempt: int
    newest: bytes
    """The newest version that the row ever had, packed."""
    promised: int
    """The horizon up to which writes are refused."""


class StateRead(msgspec.Struct, frozen=True):
    """All of a row; or promising was refused."""

    state: RowState
    refused: Outranked | None = None


class MutationDone(msgspec.Struct, frozen=True):
    """The mutation was applied, or refused."""

    refused: Refused | None = None


class StateTaken(msgspec.Struct, frozen=True):
    """The state was merged, or the whole row is needed."""

    wants_whole: bool = False


class RowsListed(msgspec.Struct, frozen=True):
    """Keys and digests in the order of positions, and whether that is all."""

    rows: tuple[tuple[bytes, bytes], ...]
    is_all: bool
    horizons: tuple[RangeHorizon, ...] = ()


class KeysListed(msgspec.Struct, frozen=True):
    """Positions in order, and whether that is all."""

    positions: tuple[bytes, ...]
    is_all: bool


class RangesFollowed(msgspec.Struct, frozen=True):
    """The ranges whose sums are kept now."""


class SumsBuilt(msgspec.Struct, frozen=True):
    """Whether all rows are counted."""

    is_all: bool


class SumsRead(msgspec.Struct, frozen=True):
    """Packed sums; None if they are not built."""

    sums: bytes | None


class DoomedFound(msgspec.Struct, frozen=True):
    """The time of the entry; 0 if there is none."""

    time: int


class Swept(msgspec.Struct, frozen=True):
    """Whether that is all."""

    is_all: bool


class RowsWeighed(msgspec.Struct, frozen=True):
    """Whether that is all; then bytes by position on the ring, each for all that it stands for."""

    sizes: dict[Position, float]
    is_all: bool


class HintKept(msgspec.Struct, frozen=True):
    """The hint is kept, or forgotten."""


class HintsRead(msgspec.Struct, frozen=True):
    """Keys and hints, and whether that is all."""

    hints: tuple[tuple[bytes, bytes], ...]
    is_all: bool


class HorizonRaised(msgspec.Struct, frozen=True):
    """The horizon is as high as this."""

    time: int


class RangeWiped(msgspec.Struct, frozen=True):
    """A part of a range was wiped; if that was all, nothing is left there."""

    is_all: bool = True


class FillingBegun(msgspec.Struct, frozen=True):
    """The record of the filling is kept."""


class PieceRead(msgspec.Struct, frozen=True):
    """Rows, how far they go, and whether that is all."""

    rows: bytes
    mark: CopyMark
    is_all: bool
    horizons: tuple[RangeHorizon, ...]


class PieceTaken(msgspec.Struct, frozen=True):
    """The rows are stored."""


class RowsCompared(msgspec.Struct, frozen=True):
    """The keys of the rows that are not the same."""

    keys: tuple[Key, ...]


StepResult: TypeAlias = (
    MutationDone
    | PartsRead
    | StateRead
    | StateTaken
    | RowsListed
    | KeysListed
    | RangesFollowed
    | SumsBuilt
    | SumsRead
    | DoomedFound
    | Swept
    | RowsWeighed
    | HintKept
    | HintsRead
    | HorizonRaised
    | RangeWiped
    | FillingBegun
    | PieceRead
    | PieceTaken
    | RowsCompared
)
