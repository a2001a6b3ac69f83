"""The answers of a manager about clusters: the JSON API is these structs, encoded.

Nodes are named by their names; ids and tokens that are not text are spelled in hexadecimal. Other
languages read this: fields keep their names, and new ones are added at the end.
"""

from typing import Literal, TypeAlias

import msgspec

NodeStanding = Literal["member", "joining", "leaving", "moving", "waiting"]


class ClusterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster in short."""

    name: str
    version: int
    placement: str
    nodes: int
    waiting: int
    tables: int
    change: str = ""
    trouble: str = ""
    doubted: int = 0
    """How many nodes were refused, or not believed, in the last hour."""
    connected: int = 0
    """How many of its nodes are connected to the leader."""


class ClustersListed(msgspec.Struct, frozen=True):
    """All of them, by name."""

    clusters: tuple[ClusterSummary, ...]


class ClusterMade(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster exists; `created` says whether it is new."""

    name: str
    id: str
    created: bool
    dry_run: bool = False


class ClusterForgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster is gone; with `dry_run` it could be deleted now."""

    name: str
    dry_run: bool = False


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One node in short."""

    name: str
    id: str
    address: str
    gossip: str
    rack: str
    datacentre: str
    token: str
    standing: NodeStanding
    ranges: int
    """The number of ranges that the node replicates."""
    load: float
    """The node's load as a multiple of the mean; 0 if nothing is known."""
    bytes: int
    heard_seconds: float | None = None
    """How long ago it last asked this manager; None if it has not."""
    version: int = 0
    """The version of the topology that the node has."""
    copied: int = 0
    to_copy: int = 0
    is_through: bool = False
    """Whether the node is through with the step that runs, if it gains something by it."""
    connected: bool = False
    """Whether the node is connected to the manager that answers."""
    damage: str = ""
    """What the node's disk has lost; empty if it is well."""
    replaces: str = ""
    """The damaged node whose place the node takes."""


class RangeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas of a range."""

    start: str
    end: str | None
    replicas: tuple[str, ...]
    new: tuple[str, ...] = ()
    """The replicas as they will be, if they change."""
    bytes: int = 0
    load: float = 0.0
    """The range's share of the whole load."""


class RingRead(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, and the change that runs there."""

    cluster: str
    id: str
    version: int
    placement: str
    phase: str
    nodes: tuple[NodeSummary, ...]
    ranges: tuple[RangeSummary, ...]
    tables: tuple[str, ...]
    removed: tuple[str, ...]
    short_racks: dict[str, int]
    """Racks whose nodes replicate more than N - 1 ranges beside their own, and by how many."""
    unevenness: float
    """The heaviest node's load to the mean."""
    change: str = ""
    waits_for: tuple[str, ...] = ()
    """The nodes that the running change waits for."""
    trouble: str = ""
    balance_bytes: int = 0
    doubted: tuple[str, ...] = ()
    """Nodes that were refused, or not believed, in the last hour, each with the reason."""


class RangeUpkept(msgspec.Struct, frozen=True, kw_only=True):
    """The upkeep of a range, according to the first of its replicas that is up."""

    start: str
    end: str | None
    by: str | None = None
    """The node that reports this; None if no node has yet."""
    compared_seconds: float | None = None
    """How long ago its replicas were compared; None if they were not since that node began."""
    sealed_seconds: float | None = None
    """How long ago it was sealed: what was deleted before that may be forgotten."""
    differing: int = 0
    """Rows that were not the same when they were compared."""
    bytes: int = 0
    """The bytes that were sent to find the differing rows, without the rows themselves."""
    held_back_by: tuple[str, ...] = ()
    """Replicas that are down, or did not answer: nothing is sealed without them."""


class HintsHeld(msgspec.Struct, frozen=True, kw_only=True):
    """Writes that a node keeps for another one, which was silent."""

    at: str
    target: str
    count: int
    bytes: int


class PeerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How one node seems to another."""

    by: str
    node: str
    phi: float
    """The suspicion of the failure detector; above 5 the node is taken to be down."""
    is_convicted: bool
    clock_ahead_us: int = 0
    """How far the peer's clock seems to be ahead."""


class ScrubSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How a node's reading of its own files goes, to find what they have lost."""

    node: str
    entries: int
    """The entries of rows that were read since the node began."""
    passes: int
    """How often everything was read since then."""
    damages: int
    """How often the node's directory was found to have lost something."""
    mended: int
    """How often the node has got what was lost again from other nodes."""


class UpkeepRead(msgspec.Struct, frozen=True, kw_only=True):
    """The upkeep that nodes do by themselves: comparing, sealing, handing over hints, watching each
    other.
    """

    cluster: str
    ranges: tuple[RangeUpkept, ...]
    hints: tuple[HintsHeld, ...]
    hints_dropped: int
    """The hints dropped since the nodes began, because there were too many. Comparing brings the
    rows that they would have brought.
    """
    seen: tuple[PeerSeen, ...]
    scrubs: tuple[ScrubSeen, ...] = ()


class TokenMoved(msgspec.Struct, frozen=True, kw_only=True):
    """A move that would even out the load."""

    node: str
    token: str
    token_hex: str
    """The token to give to `move`."""
    bytes: int
    why: str
    before: float
    after: float


class MovesRead(msgspec.Struct, frozen=True, kw_only=True):
    """Moves that would help, each after the one before it."""

    cluster: str
    unevenness: float
    moves: tuple[TokenMoved, ...]
    known: bool
    """Whether nodes have said what they carry."""


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """The range that one node gains by a change."""

    node: str
    ranges: int
    bytes: int


class RingSteered(msgspec.Struct, frozen=True, kw_only=True):
    """The change that was made, or with `dry_run` would be made."""

    cluster: str
    done: str
    changed: bool
    dry_run: bool
    version: int
    gains: tuple[Gain, ...] = ()
    short_racks: dict[str, int] = {}
    unevenness: float = 1.0
    """The unevenness after the change."""


class ClusterRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The command cannot be carried out, and what can be done instead."""

    why: str
    way_out: str
    missing: bool = False


ClusterAnswer: TypeAlias = (
    ClustersListed
    | ClusterMade
    | ClusterForgotten
    | RingRead
    | MovesRead
    | UpkeepRead
    | RingSteered
    | ClusterRefused
)
