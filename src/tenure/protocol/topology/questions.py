"""The questions and commands about clusters that people and tools give to a manager."""

from typing import TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.topology.records import ClusterId, NodeName, Placement, Token
from tenure.protocol.topology.tables import TableRecord, Word


class ClusterCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The base of commands that change something, or with `dry_run` say what would change."""

    cluster: str
    dry_run: bool = False


class CreateCluster(ClusterCommand, frozen=True, kw_only=True):
    """Make a cluster; its ring is formed when its first nodes have come."""

    id: ClusterId
    """Drawn by whoever asks; kept if there is such a cluster already."""
    placement: Placement
    first_nodes: int


class DeleteCluster(ClusterCommand, frozen=True, kw_only=True):
    """Forget a cluster. Its nodes keep what they have, and are turned away."""


class AddNode(ClusterCommand, frozen=True, kw_only=True):
    """Let a node that waits take a part of the ring."""

    node: NodeName
    token: Token | None = None
    """The token; None stands for the one that halves the heaviest range."""


class RemoveNode(ClusterCommand, frozen=True, kw_only=True):
    """Take a node out for ever; others copy what it has."""

    node: NodeName


class ReplaceNode(ClusterCommand, frozen=True, kw_only=True):
    """Let a node that waits take the place of another, which is removed for ever."""

    node: NodeName
    by: NodeName


class MoveNode(ClusterCommand, frozen=True, kw_only=True):
    """Let a node take another place on the ring."""

    node: NodeName
    token: Token | None = None


class TakeBackChange(ClusterCommand, frozen=True, kw_only=True):
    """Go back to the ring as it was before the change that runs."""


class SetBalance(ClusterCommand, frozen=True, kw_only=True):
    """Let the manager move tokens automatically, copying so many bytes a day; 0 ends that."""

    bytes_a_day: Number


class CompareNow(ClusterCommand, frozen=True, kw_only=True):
    """Compare replicas at once, and not only in the next minute."""


class MakeTable(ClusterCommand, frozen=True, kw_only=True):
    """Make a table, or add families to it."""

    name: Word
    table: TableRecord
    by_operator: bool = True
    """Whether an operator wants it, and not a program that has declared it at a node."""


class ListClusters(msgspec.Struct, frozen=True):
    """Ask which clusters exist."""


class ReadRing(msgspec.Struct, frozen=True, kw_only=True):
    """Ask what the ring looks like, and which change runs."""

    cluster: str


class ReadMoves(msgspec.Struct, frozen=True, kw_only=True):
    """Ask which tokens should move, why, and what that would copy."""

    cluster: str
    budget: int | None = None


class ReadUpkeep(msgspec.Struct, frozen=True, kw_only=True):
    """Ask which upkeep nodes do unasked."""

    cluster: str


RingCommand: TypeAlias = (
    AddNode
    | RemoveNode
    | ReplaceNode
    | MoveNode
    | TakeBackChange
    | SetBalance
    | CompareNow
    | MakeTable
)
ClusterReading: TypeAlias = ListClusters | ReadRing | ReadMoves | ReadUpkeep
ClusterQuestion: TypeAlias = CreateCluster | DeleteCluster | RingCommand | ClusterReading
