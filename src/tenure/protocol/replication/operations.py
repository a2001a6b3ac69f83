"""Operations: what a node asks of a replica of a row, or of a range.

Each is carried out at one instant: it reads, decides and writes, and nothing comes in between
(R11). An operation *is* the body of the message by which another node is asked, and its result is
the answer: the replica only adds the ticket. What a node asks of its own store alone: see `tasks`.

To add an operation, describe it here, with its result and its terms, and carry it out in
`columns/node_replica.py`: a type checker finds both places. Fields are only ever added at the end,
with defaults. Tags are the names on the wire; some have the name of an earlier release.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from tenure.base.numbers import Number
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.row.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.row.copies import CopyMark, RangeHorizon
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.message_limits import (
    OF_EDITS,
    OF_ENTRIES,
    Digest,
    Marker,
    RowKey,
    RowPosition,
    Rows,
    Sums,
    TableName,
)
from tenure.protocol.replication.row.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.row.states import RowState


class BetweenNodes(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """The base of what nodes say to each other."""

    ticket: Number = 0
    """Drawn by who asks, when it asks; the answer has the same."""


class ReplicaAnswer(BetweenNodes, frozen=True, kw_only=True):
    """The base of results."""


R = TypeVar("R")


class ReplicaOperation(BetweenNodes, Generic[R], frozen=True, kw_only=True):
    """The base of operations; R is the result."""


class OfRow(ReplicaOperation[R], Generic[R], frozen=True, kw_only=True):
    """The base of operations on one row: only its replicas carry them out."""

    table: TableName
    key: RowKey


# --- rows ---------------------------------------------------------------------------------------


class RowApplied(ReplicaAnswer, frozen=True, kw_only=True):
    """The mutation was applied; or it was refused, and nothing of it was kept."""

    refused: Refused | None = None


class ApplyRow(OfRow[RowApplied], frozen=True, kw_only=True):
    """Admit a mutation, and apply it: see `admission`."""

    edits: Annotated[tuple[Edit, ...], OF_EDITS]
    attempt: Attempt


class PartsRead(ReplicaAnswer, frozen=True, kw_only=True, tag="PartsTold"):
    """The parts that a replica has, all of one instant, and by which horizon and adoption."""

    digest: Digest
    parts: Annotated[tuple[SectionPart, ...], OF_EDITS] = ()
    """The parts in the order of the questions; none if only the digest was asked for."""
    sealed: Number = 0
    adopted: Number = 0
    attempt: Number = 0
    newest: Marker = b""
    """The newest version that the row ever had there, packed; an older node does not tell it."""
    promised: Number = 0
    """The horizon up to which it refuses writes."""
    is_larger: bool = False
    """Whether there is more than was asked for at most; then it says nothing else."""


class ReadParts(OfRow[PartsRead], frozen=True, kw_only=True, tag="AskParts"):
    """Read what there is of a row: see `parts`. Without questions, only what concerns all of it."""

    questions: Annotated[tuple[SectionQuestion, ...], OF_EDITS]
    digest_only: bool = False
    most_bytes: Number = 0
    """The most that may be told, or summed up in the digest; 0 without such a bound."""


class StateRead(ReplicaAnswer, frozen=True, kw_only=True, tag="StateTold"):
    """All that a replica has of a row; or the replica refused to promise."""

    state: RowState
    refused: Outranked | None = None
    is_larger: bool = False
    """Whether there is more than was asked for at most; then nothing is told, or promised."""


class ReadState(OfRow[StateRead], frozen=True, kw_only=True, tag="AskState"):
    """Read all of a row: see `states`."""

    most_bytes: Number = 0
    """See `ReadParts`."""


class PromiseFence(OfRow[StateRead], frozen=True, kw_only=True):
    """Refuse lower lease numbers from here on, and this try's repetitions; read all of the row."""

    number: Number
    journal: Number
    attempt: Number
    most_bytes: Number = 0
    """See `ReadParts`."""


class StateMerged(ReplicaAnswer, frozen=True, kw_only=True):
    """The state was merged."""

    wants_whole: bool = False
    """Whether nothing was taken, because the row was adopted later than here, so that all of it is
    needed.
    """


class MergeState(OfRow[StateMerged], frozen=True, kw_only=True):
    """Take a state: a mend, or what a repair or an adoption found (R12): see `merging`."""

    state: RowState


# --- ranges -------------------------------------------------------------------------------------


class RowsListed(ReplicaAnswer, frozen=True, kw_only=True, tag="RowsTold"):
    """Positions and prints, in order."""

    rows: Annotated[tuple[tuple[RowPosition, Digest], ...], OF_ENTRIES]
    is_all: bool = True
    horizons: Annotated[tuple[RangeHorizon, ...], OF_EDITS] = ()


class ListRows(ReplicaOperation[RowsListed], frozen=True, kw_only=True, tag="AskRows"):
    """List the rows in a range, and their prints."""

    table: TableName
    range: KeyRange
    after: RowPosition = b""
    """A position; those behind it."""


class KeysListed(ReplicaAnswer, frozen=True, kw_only=True, tag="KeysTold"):
    """Positions in the order that was asked for; if that is not all, the first of them."""

    positions: Annotated[tuple[RowPosition, ...], OF_ENTRIES]
    is_all: bool = True


class ListKeys(ReplicaOperation[KeysListed], frozen=True, kw_only=True, tag="AskKeys"):
    """List the rows by position, from `lower`, included, to `upper`, excluded."""

    table: TableName
    lower: RowPosition
    upper: RowPosition | None = None
    reverse: bool = False


class PieceRead(ReplicaAnswer, frozen=True, kw_only=True, tag="PieceTold"):
    """Rows in order, as they are kept."""

    rows: Rows
    """See `copies.rows_of`: packed, so that whoever only carries them need not look inside."""
    mark: CopyMark
    is_all: bool
    """Whether nothing is behind it."""
    horizons: Annotated[tuple[RangeHorizon, ...], OF_EDITS] = ()


class ReadPiece(ReplicaOperation[PieceRead], frozen=True, kw_only=True, tag="AskPiece"):
    """Read rows of a range as they are kept, for the node that is filled (R17)."""

    range: KeyRange
    mark: CopyMark = CopyMark()
    """The mark behind which the rows are."""
    most_bytes: Number


class SumsRead(ReplicaAnswer, frozen=True, kw_only=True, tag="SumsTold"):
    """Packed sums; none if they are the same."""

    sums: Sums = b""
    is_known: bool = True
    """Whether they are built."""


class ReadSums(ReplicaOperation[SumsRead], frozen=True, kw_only=True, tag="AskSums"):
    """Read the sums of a range, unless they are those of this digest: see `sums`."""

    table: TableName
    range: KeyRange
    place: Number | None = None
    """The inner sums of this one."""
    digest: Digest = b""


class ListPlaces(ReplicaOperation[RowsListed], frozen=True, kw_only=True, tag="AskPlaces"):
    """List the rows in some inner sums of a range, and their prints, in the order of the sums."""

    table: TableName
    range: KeyRange
    places: Annotated[tuple[Number, ...], OF_EDITS]
    after: RowPosition = b""
    """A position in the first of them; the rows there that are behind it.
    A node of an earlier release lists all.
    """


class DoomedFound(ReplicaAnswer, frozen=True, kw_only=True, tag="DoomedTold"):
    """The time of the newest thing there that was deleted long enough ago; 0 for nothing."""

    time: Number


class FindDoomed(ReplicaOperation[DoomedFound], frozen=True, kw_only=True, tag="AskDoomed"):
    """Find up to when a range should be sealed."""

    range: KeyRange


class HorizonPromised(ReplicaAnswer, frozen=True, kw_only=True):
    time: Number


class PromiseHorizon(ReplicaOperation[HorizonPromised], frozen=True, kw_only=True):
    """Take no more writes of this time or an earlier one (R24)."""

    range: KeyRange
    time: Number


class SealHorizon(ReplicaOperation[HorizonPromised], frozen=True, kw_only=True):
    """All replicas have everything up to this time: what was deleted may go (R23)."""

    range: KeyRange
    time: Number


AnyOperation: TypeAlias = (
    ApplyRow
    | ReadParts
    | ReadState
    | PromiseFence
    | MergeState
    | ListRows
    | ListKeys
    | ReadPiece
    | ReadSums
    | ListPlaces
    | FindDoomed
    | PromiseHorizon
    | SealHorizon
)
AnyAnswer: TypeAlias = (
    RowApplied
    | PartsRead
    | StateRead
    | StateMerged
    | RowsListed
    | KeysListed
    | PieceRead
    | SumsRead
    | DoomedFound
    | HorizonPromised
)
RangeOperation: TypeAlias = ReadSums | ListPlaces | FindDoomed | PromiseHorizon | SealHorizon
"""About all of a range, which the replica must keep with these very bounds. The other operations on
ranges are about parts of them.
"""


# --- terms --------------------------------------------------------------------------------------


Wait: TypeAlias = Literal["nothing", "the row", "all", "for ever"]


class OperationTerms(NamedTuple):
    """What a reader must know of an operation."""

    waits: Wait
    """What must be durable before the answer leaves."""
    changes: bool = False


Bounded: TypeAlias = ReadParts | ReadState | PromiseFence
"""These bring as much as there is, up to a bound that the asker gives."""


def size_of(body: object) -> int:
    """The bytes of what an operation has others write; 0 for those that only ask."""
    match body:
        case ApplyRow(edits=edits):
            return sum(len(edit.name or b"") + len(edit.value or b"") for edit in edits)
        case MergeState(state=state):
            return state.size
    return 0


TERMS: Final[Mapping[type[ReplicaOperation[Any]], OperationTerms]] = {
    # An acknowledged write must not be forgotten (D5).
    ApplyRow: OperationTerms("all", changes=True),
    # What somebody has read must not be gone for the next reader (D5).
    ReadParts: OperationTerms("the row"),
    # What is settled by it, or compared with it, must stay so.
    ReadState: OperationTerms("the row"),
    # Otherwise a former owner's write could be admitted after a power failure (R20).
    PromiseFence: OperationTerms("all", changes=True),
    # Whoever mends counts this replica among those that have the state (R7, R21).
    MergeState: OperationTerms("all", changes=True),
    # Nobody counts on a list: rows that differ are read, and that waits.
    ListRows: OperationTerms("nothing"),
    ListKeys: OperationTerms("nothing"),
    # The node that copies them does not ask again for what is lost here (R17).
    ReadPiece: OperationTerms("all"),
    # What is found to be the same must still be so when the range is sealed (R27).
    ReadSums: OperationTerms("all"),
    ListPlaces: OperationTerms("all"),
    # It only says from where on a seal is worth while.
    FindDoomed: OperationTerms("nothing"),
    # Otherwise a write of that time could come in after the comparison (R23).
    PromiseHorizon: OperationTerms("all", changes=True),
    # Nobody waits for it: a seal that is lost comes again with the next one.
    SealHorizon: OperationTerms("for ever", changes=True),
}


def is_changed(asked: AnyOperation, answer: AnyAnswer) -> bool:
    """Whether the operation has written something, as its answer says."""
    is_refused = isinstance(answer, RowApplied) and answer.refused is not None
    return TERMS[type(asked)].changes and not is_refused


def waits_for(asked: AnyOperation, answer: AnyAnswer) -> Wait:
    """What must be durable before this answer leaves."""
    if isinstance(asked, ApplyRow) and not is_changed(asked, answer):
        return "nothing"
    if isinstance(asked, ReadParts) and not asked.questions:
        return "nothing"  # versions that a power failure takes back only make the next one greater
    return TERMS[type(asked)].waits
