"""Tasks: what a node asks of its own store alone. What replicas are asked for: see `operations`.

A task is carried out at one instant, as an operation is. Its changes are not durable yet: results
come with the number of changes that the store had seen by then, and a sync makes all up to some
number durable.
"""

from typing import ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.operations import AnyAnswer, AnyOperation
from tenure.protocol.replication.row.copies import FillingPart, FillingRecord, RangeHorizon
from tenure.protocol.topology.records import Position

R = TypeVar("R")


class Task(msgspec.Struct, Generic[R], frozen=True):
    """The base of tasks; R is the result."""

    changes: ClassVar[bool] = True


class TaskDone(msgspec.Struct, frozen=True):
    """The task is done; or a part of it, and the next one goes on there."""

    is_all: bool = True


class FollowRanges(Task[TaskDone], frozen=True):
    """Keep the sums of these ranges, and of no others."""

    ranges: tuple[KeyRange, ...]


class BuildSums(Task[TaskDone], frozen=True):
    """Count some rows that are not in the sums yet."""


class SweepSome(Task[TaskDone], frozen=True):
    """Remove some of what was deleted, and is sealed."""


class RowsWeighed(msgspec.Struct, frozen=True):
    """Whether that is all; then bytes by position on the ring, each for all that it stands for."""

    sizes: dict[Position, float]
    is_all: bool


class WeighRows(Task[RowsWeighed], frozen=True):
    """Measure some more of a sample of rows."""

    changes = False


class KeepHint(Task[TaskDone], frozen=True):
    key: bytes
    hint: bytes


class DropHint(Task[TaskDone], frozen=True):
    key: bytes


class HintsRead(msgspec.Struct, frozen=True):
    """Keys and hints, and whether that is all."""

    hints: tuple[tuple[bytes, bytes], ...]
    is_all: bool


class ReadHints(Task[HintsRead], frozen=True):
    """Read some of the hints that are kept, after a key."""

    changes = False
    after: bytes


class WipeRange(Task[TaskDone], frozen=True):
    """Forget some rows of a range; with the last of them, what was promised there."""

    range: KeyRange


class BeginFilling(Task[TaskDone], frozen=True):
    """Record what is to be copied; all of it was wiped."""

    record: FillingRecord


class TakePiece(Task[TaskDone], frozen=True):
    """Store rows as another replica keeps them, together with how far the copy has come."""

    rows: bytes
    horizons: tuple[RangeHorizon, ...]
    number: int
    """The number of the part of the filling's record."""
    part: FillingPart
    """The part as it is with these rows."""


class CompareRows(Task[tuple[Key, ...]], frozen=True):
    """Find the keys of those rows that are not the same here."""

    changes = False
    table: str
    rows: tuple[tuple[bytes, bytes], ...]
    """Positions and prints."""


NodeTask: TypeAlias = (
    FollowRanges
    | BuildSums
    | SweepSome
    | WeighRows
    | KeepHint
    | DropHint
    | ReadHints
    | WipeRange
    | BeginFilling
    | TakePiece
    | CompareRows
)
Step: TypeAlias = AnyOperation | NodeTask
StepResult: TypeAlias = AnyAnswer | TaskDone | RowsWeighed | HintsRead | tuple[Key, ...]
