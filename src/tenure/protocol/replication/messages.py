"""The messages between clients, coordinators and replicas.

A client asks any node, which coordinates: it asks the replicas, and answers. Each answer repeats
the number that the asker gave to the request. A message between nodes names its cluster, its sender
and receiver, and the topology by which the sender acts (R10, R16); its content is its *body*.

Messages are made with keywords only. Fields are only ever added at the end, with defaults.
"""

from collections.abc import Mapping
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.operations import AnyAnswer, AnyOperation, BetweenNodes
from tenure.protocol.replication.row.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import PAGE_COLUMNS, PART_BYTES
from tenure.protocol.replication.row.message_limits import (
    OF_EDITS,
    OF_FAMILIES,
    ColumnName,
    Columns,
    Detail,
    FamilyName,
    RowKey,
    TableName,
)
from tenure.protocol.replication.row.pages import CellPage, Slice, SuperPage
from tenure.protocol.replication.row.versions import NEVER, Version
from tenure.protocol.topology.records import ClusterId, ClusterName, NodeId, Topology

A = TypeVar("A")

SEAL_BYTES = 16
FailedWhy = Literal["too few replicas", "unknown", "overloaded", "no such table", "unavailable"]
"""In this order: nothing was sent; the outcome is unknown; nothing was begun, twice; no quorum
answered.
"""


class FromClient(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    request: Number = 0
    """Drawn when it is sent; the answer has the same."""
    table: TableName
    level: Level = "quorum"


class Reads(FromClient, Generic[A], frozen=True, kw_only=True):
    """The base of what reads; A is what is found."""


class DrawVersion(FromClient, frozen=True, kw_only=True):
    """Draw a version for a write that has not begun: see `drawing`."""

    key: RowKey
    floor: Number
    """The first time that may be drawn: the client's clock, or above what it drew before."""


class WriteRow(FromClient, frozen=True, kw_only=True):
    key: RowKey
    edits: Annotated[tuple[Edit, ...], OF_EDITS]
    attempt: Attempt


class ReadColumn(Reads[CellPage], frozen=True, kw_only=True):
    """One column: a page that has it, or nothing."""

    key: RowKey
    family: FamilyName
    super: ColumnName | None = None
    name: ColumnName


class ReadPage(Reads[CellPage], frozen=True, kw_only=True):
    """Columns of a simple family or of a super column, in the family's order.

    In the order of time, bounds are inverted times of 8 bytes, see `layout.inverted`. `after` of a
    slice is the `next` of a page, which a replica or a coordinator made.
    """

    key: RowKey
    family: FamilyName
    super: ColumnName | None = None
    part: Slice
    warms: bool = False
    """The answer is empty: the replicas only bring it into memory. An older node sends it."""


class ReadSupers(Reads[SuperPage], frozen=True, kw_only=True):
    """Super columns by name, those with columns only, each with its first `within`."""

    key: RowKey
    family: FamilyName
    part: Slice
    within: Columns
    warms: bool = False
    """See `ReadPage`."""


class ReadRow(Reads["WholeRow"], frozen=True, kw_only=True):
    """The first `within` columns, or super columns with as many, of each family."""

    key: RowKey
    within: Columns


class ReadRows(Reads["RowsFound"], frozen=True, kw_only=True):
    """Rows in the order of their positions, those with columns only. Bounds are keys. The rows of
    a hashed table come in any fixed order, and are asked for without bounds.
    """

    part: Slice
    within: Columns


class AdoptRow(FromClient, frozen=True, kw_only=True):
    """Promise to refuse lower lease numbers, and settle what former owners wrote (R21)."""

    key: RowKey
    number: Number
    journal: Number
    attempt: Number = 1
    """Rises with each try under one lease number: no two tries have the same."""


AnyRead: TypeAlias = ReadColumn | ReadPage | ReadSupers | ReadRow | ReadRows
ClientRequest: TypeAlias = DrawVersion | WriteRow | AnyRead | AdoptRow


class ToClient(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    request: Number = 0


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
    page: SuperPage


class WholeRow(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A row by families: simple ones, and those with super columns."""

    key: RowKey
    simple: Annotated[dict[FamilyName, CellPage], OF_FAMILIES] = {}
    supers: Annotated[dict[FamilyName, SuperPage], OF_FAMILIES] = {}

    @property
    def families(self) -> dict[str, CellPage | SuperPage]:
        """The families that have any columns, of both kinds."""
        return {**self.simple, **self.supers}

    @property
    def size(self) -> int:
        """The bytes of all names and values."""
        return sum(page.size for page in self.families.values())


def whole_row(key: RowKey, pages: Mapping[str, CellPage | SuperPage]) -> WholeRow:
    """The row of these families, of which only those count that have any columns."""
    found = pages.items()
    return WholeRow(
        key=key,
        simple={name: page for name, page in found if isinstance(page, CellPage) and page.cells},
        supers={name: page for name, page in found if isinstance(page, SuperPage) and page.supers},
    )


class RowFound(ToClient, frozen=True, kw_only=True):
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


class Outdated(BetweenNodes, frozen=True, kw_only=True):
    """The topology that the sender acted by has been replaced (R16)."""

    topology: Topology


class AskTopology(BetweenNodes, frozen=True, kw_only=True):
    """Say by which topology you act."""


class TopologySaid(BetweenNodes, frozen=True, kw_only=True):
    topology: Topology


class MessagePart(BetweenNodes, frozen=True, kw_only=True):
    """A part of a message that is too large to be sent whole: shells put it together."""

    number: Number
    count: Number
    data: Annotated[bytes, msgspec.Meta(max_length=PART_BYTES)]


NodeBody: TypeAlias = AnyOperation | AnyAnswer | Outdated | AskTopology | TopologySaid | MessagePart


class NodeMessage(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
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
