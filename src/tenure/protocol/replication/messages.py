"""The messages between clients, coordinators and replicas.

A client asks any node, which coordinates: it asks the replicas, and answers. Each answer repeats
the number that the asker gave to the request. A message between nodes names its cluster, its sender
and receiver, and the topology by which the sender acts (R10, R16); its content is its *body*.

Messages are made with keywords only. Fields are only ever added at the end, with defaults.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.copies import CopyMark, RangeHorizon
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.limits import PAGE_COLUMNS, PART_BYTES
from tenure.protocol.replication.message_limits import (
    OF_EDITS,
    OF_ENTRIES,
    OF_FAMILIES,
    ColumnName,
    Columns,
    Detail,
    Digest,
    FamilyName,
    Marker,
    RowKey,
    RowPosition,
    Rows,
    Sums,
    TableName,
)
from tenure.protocol.replication.pages import CellPage, Slice, SuperPage
from tenure.protocol.replication.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.states import RowState
from tenure.protocol.replication.versions import NEVER, Version
from tenure.protocol.topology.records import ClusterId, ClusterName, NodeId, Topology

SEAL_BYTES = 16
FailedWhy = Literal["too few replicas", "unknown", "overloaded", "no such table", "unavailable"]
"""In this order: nothing was sent; the outcome is unknown; nothing was begun, twice; no quorum
answered.
"""


class FromClient(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """The base of what a client asks a node."""

    request: Number
    """Drawn by the client; the answer has the same."""
    table: TableName
    level: Level = "quorum"


class DrawVersion(FromClient, frozen=True, kw_only=True):
    """Draw a version for a write that has not begun: see `drawing`."""

    key: RowKey
    floor: Number
    """The first time that may be drawn: the client's clock, or above what it drew before."""


class WriteRow(FromClient, frozen=True, kw_only=True):
    """Write a mutation of one row."""

    key: RowKey
    edits: Annotated[tuple[Edit, ...], OF_EDITS]
    attempt: Attempt


class ReadColumn(FromClient, frozen=True, kw_only=True):
    """One column."""

    key: RowKey
    family: FamilyName
    super: ColumnName | None = None
    name: ColumnName


class ReadPage(FromClient, frozen=True, kw_only=True):
    """Columns of a simple family or of a super column, in the family's order."""

    key: RowKey
    family: FamilyName
    super: ColumnName | None = None
    part: Slice
    warms: bool = False
    """The answer is empty: the replicas only bring it into memory. An older node sends it."""


class ReadSupers(FromClient, frozen=True, kw_only=True):
    """Super columns by name, those with columns only, each with its first `within`."""

    key: RowKey
    family: FamilyName
    part: Slice
    within: Columns
    warms: bool = False
    """See `ReadPage`."""


class ReadRow(FromClient, frozen=True, kw_only=True):
    """The first `within` columns, or super columns with as many, of each family."""

    key: RowKey
    within: Columns


class ReadRows(FromClient, frozen=True, kw_only=True):
    """Rows in the order of their positions, those with columns only. Bounds are keys."""

    part: Slice
    within: Columns


class AdoptRow(FromClient, frozen=True, kw_only=True):
    """Promise to refuse lower lease numbers, and settle what former owners wrote (R21)."""

    key: RowKey
    number: Number
    journal: Number
    attempt: Number = 1
    """Rises with each try under one lease number: no two tries have the same."""


ClientRequest: TypeAlias = (
    DrawVersion | WriteRow | ReadColumn | ReadPage | ReadSupers | ReadRow | ReadRows | AdoptRow
)


class ToClient(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """The base of what a node answers a client."""

    request: Number


class VersionDrawn(ToClient, frozen=True, kw_only=True):
    """A version above all that was acknowledged when it was asked for. No other write has it."""

    version: Version
    newest: Number
    """The time of the newest version that the row had."""


class RowWritten(ToClient, frozen=True, kw_only=True):
    """As many replicas have the write as the level requires."""


class NotWritten(ToClient, frozen=True, kw_only=True):
    """No replica has the write; or the lease is gone, and some may have it: see `Outranked`."""

    refused: Refused


class Failed(ToClient, frozen=True, kw_only=True):
    """The request had no effect, or its outcome is not known."""

    why: FailedWhy
    detail: Detail = ""


class PageFound(ToClient, frozen=True, kw_only=True):
    """Columns; at most one for a question about one column."""

    page: CellPage


class SupersFound(ToClient, frozen=True, kw_only=True):
    """Super columns."""

    page: SuperPage


class WholeRow(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A row by families: simple ones, and those with super columns."""

    key: RowKey
    simple: Annotated[dict[FamilyName, CellPage], OF_FAMILIES] = {}
    supers: Annotated[dict[FamilyName, SuperPage], OF_FAMILIES] = {}

    @property
    def size(self) -> int:
        """The bytes of all names and values."""
        simple = sum(page.size for page in self.simple.values())
        return simple + sum(page.size for page in self.supers.values())


class RowFound(ToClient, frozen=True, kw_only=True):
    """A row."""

    row: WholeRow


class RowsFound(ToClient, frozen=True, kw_only=True):
    """Rows, and the key after which to go on; None after the last."""

    rows: Annotated[tuple[WholeRow, ...], msgspec.Meta(max_length=PAGE_COLUMNS)]
    next: RowKey | None = None


class Adopted(ToClient, frozen=True, kw_only=True):
    """The row is settled; or a higher lease number was promised."""

    refused: Outranked | None = None
    newest: Version = NEVER
    """The newest version that the row had: the owner must write above its time."""


ClientAnswer: TypeAlias = (
    VersionDrawn
    | RowWritten
    | NotWritten
    | Failed
    | PageFound
    | SupersFound
    | RowFound
    | RowsFound
    | Adopted
)


class BetweenNodes(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """The base of what nodes say to each other."""

    ticket: Number = 0
    """Drawn by who asks, when it asks; the answer has the same."""


class ApplyRow(BetweenNodes, frozen=True, kw_only=True):
    """Apply a mutation, or refuse it."""

    table: TableName
    key: RowKey
    edits: Annotated[tuple[Edit, ...], OF_EDITS]
    attempt: Attempt


class RowApplied(BetweenNodes, frozen=True, kw_only=True):
    """The mutation is durable; or it was refused, and nothing of it was kept."""

    refused: Refused | None = None


class AskParts(BetweenNodes, frozen=True, kw_only=True):
    """Say what you have of a row. Without questions, only what concerns all of it, at once."""

    table: TableName
    key: RowKey
    questions: Annotated[tuple[SectionQuestion, ...], OF_EDITS]
    digest_only: bool = False


class PartsTold(BetweenNodes, frozen=True, kw_only=True):
    """The parts that a replica has, all of one instant, and durable."""

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


class AskState(BetweenNodes, frozen=True, kw_only=True):
    """Say all that you have of a row."""

    table: TableName
    key: RowKey


class StateTold(BetweenNodes, frozen=True, kw_only=True):
    """All that a replica has of a row, durable; or the replica refused to promise."""

    state: RowState
    refused: Outranked | None = None


class MergeState(BetweenNodes, frozen=True, kw_only=True):
    """Take a state: a mend, or what a repair or an adoption found (R12)."""

    table: TableName
    key: RowKey
    state: RowState


class StateMerged(BetweenNodes, frozen=True, kw_only=True):
    """The merged state is durable."""

    wants_whole: bool = False
    """Whether nothing was taken, because the row was adopted later than here, so that all of it is
    needed.
    """


class PromiseFence(BetweenNodes, frozen=True, kw_only=True):
    """Refuse lower lease numbers from here on, and say all that you have of the row."""

    table: TableName
    key: RowKey
    number: Number
    journal: Number
    attempt: Number


class AskRows(BetweenNodes, frozen=True, kw_only=True):
    """Say which rows you have in a range, and their digests."""

    table: TableName
    range: KeyRange
    after: RowPosition = b""
    """A position; those behind it."""


class RowsTold(BetweenNodes, frozen=True, kw_only=True):
    """Positions and digests, in order."""

    rows: Annotated[tuple[tuple[RowPosition, Digest], ...], OF_ENTRIES]
    is_all: bool = True
    horizons: Annotated[tuple[RangeHorizon, ...], OF_EDITS] = ()
    """The horizons of the range."""


class AskKeys(BetweenNodes, frozen=True, kw_only=True):
    """Say which rows you have, by position, from `lower`, included, to `upper`, excluded."""

    table: TableName
    lower: RowPosition
    upper: RowPosition | None = None
    reverse: bool = False


class KeysTold(BetweenNodes, frozen=True, kw_only=True):
    """Positions in the order that was asked for; if that is not all, the first of them."""

    positions: Annotated[tuple[RowPosition, ...], OF_ENTRIES]
    is_all: bool = True


class AskPiece(BetweenNodes, frozen=True, kw_only=True):
    """Say all that you have of some rows in a range, as it is kept, to the node that is filled
    (R17).
    """

    range: KeyRange
    mark: CopyMark = CopyMark()
    """The mark behind which the asked rows are."""
    most_bytes: Number


class PieceTold(BetweenNodes, frozen=True, kw_only=True):
    """Rows in order, durable."""

    rows: Rows
    """See `copies.packed_rows`: packed, so that whoever only carries them need not look inside."""
    mark: CopyMark
    """How far that is."""
    is_all: bool
    """Whether nothing is behind it."""
    horizons: Annotated[tuple[RangeHorizon, ...], OF_EDITS] = ()
    """The horizons of the range."""


class AskSums(BetweenNodes, frozen=True, kw_only=True):
    """Say the sums of a range, unless they are those of this digest: see `sums`."""

    table: TableName
    range: KeyRange
    place: Number | None = None
    """The inner sums of this one."""
    digest: Digest


class SumsTold(BetweenNodes, frozen=True, kw_only=True):
    """Packed sums; none if they are the same."""

    sums: Sums = b""
    is_known: bool = True
    """Whether they are built."""


class AskPlaces(BetweenNodes, frozen=True, kw_only=True):
    """Say which rows you have in some inner sums of a range, and their prints."""

    table: TableName
    range: KeyRange
    places: Annotated[tuple[Number, ...], OF_EDITS]


class AskDoomed(BetweenNodes, frozen=True, kw_only=True):
    """Say up to when a range should be sealed."""

    range: KeyRange


class DoomedTold(BetweenNodes, frozen=True, kw_only=True):
    """The time of the newest thing there that was deleted long enough ago; 0 for nothing."""

    time: Number


class PromiseHorizon(BetweenNodes, frozen=True, kw_only=True):
    """Take no more writes of this time or an earlier one (R24)."""

    range: KeyRange
    time: Number


class HorizonPromised(BetweenNodes, frozen=True, kw_only=True):
    """The promise is durable, and this high."""

    time: Number


class SealHorizon(BetweenNodes, frozen=True, kw_only=True):
    """All replicas have everything up to this time: what was deleted may go (R23)."""

    range: KeyRange
    time: Number


class Outdated(BetweenNodes, frozen=True, kw_only=True):
    """The topology that the sender acted by has been replaced (R16)."""

    topology: Topology


class AskTopology(BetweenNodes, frozen=True, kw_only=True):
    """Say by which topology you act."""


class TopologySaid(BetweenNodes, frozen=True, kw_only=True):
    """The topology of the sender."""

    topology: Topology


class MessagePart(BetweenNodes, frozen=True, kw_only=True):
    """A part of a message that is too large to be sent whole: shells put it together."""

    number: Number
    count: Number
    data: Annotated[bytes, msgspec.Meta(max_length=PART_BYTES)]


NodeBody: TypeAlias = (
    ApplyRow
    | RowApplied
    | AskParts
    | PartsTold
    | AskState
    | StateTold
    | MergeState
    | StateMerged
    | PromiseFence
    | AskRows
    | RowsTold
    | AskKeys
    | KeysTold
    | AskPiece
    | PieceTold
    | AskSums
    | SumsTold
    | AskPlaces
    | AskDoomed
    | DoomedTold
    | PromiseHorizon
    | HorizonPromised
    | SealHorizon
    | Outdated
    | AskTopology
    | TopologySaid
    | MessagePart
)


class NodeMessage(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """A message from one node to another."""

    cluster: ClusterName
    id: ClusterId
    sender: NodeId
    receiver: NodeId
    """Whoever is at that address now may be another."""
    version: Number
    """The version of the topology by which the sender acts."""
    body: NodeBody
    seal: Annotated[bytes, msgspec.Meta(max_length=SEAL_BYTES)] = b""
    """Proves that the sender has the cluster's secret: see `wire/node_seal.py`. It is always the
    last field, so what is added to messages is added to their bodies.
    """
