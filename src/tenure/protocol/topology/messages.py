"""The messages between nodes and managers.

A node asks every few seconds and when it is poked, and the manager answers. A request is complete:
it repeats all that counts, so one that is lost, doubled or late changes nothing. The manager hands
out committed topologies only, so any topology that a node is told is true, whoever tells it. A node
takes a topology of its own cluster (by id) with a higher version, and no other.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from tenure.base.numbers import JournalId, Number, Signed
from tenure.protocol.topology.limits import RANGES, TABLES, WEIGHTS
from tenure.protocol.topology.records import (
    NO_NODE,
    OF_NODES,
    ClusterId,
    ClusterName,
    Node,
    NodeId,
    Proof,
    ReplicaIds,
    Start,
    Topology,
)
from tenure.protocol.topology.tables import Word

DETAIL_CHARACTERS = 1000
Detail: TypeAlias = Annotated[str, msgspec.Meta(max_length=DETAIL_CHARACTERS)]

NodeRefusalReason = Literal[
    "cluster",  # there is none of that name, or it is another one of that name
    "removed",  # this node was taken out, for ever
    "taken",  # another node has this name or address
    "past",  # a later life of this node is there, or its disk was put back
    "full",  # the cluster has no room for more nodes
]


class TopologyMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of all messages here."""


class RangeWeight(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """The bytes that one replica has of a part of the ring, and the requests that it gets there."""

    start: Start
    end: Start | None
    bytes: Number
    requests: float = 0.0
    """The requests a second."""


class RangeTended(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """The state of a range, from the node that looks after it: its first replica that is up (R23 to
    R27).
    """

    start: Start
    end: Start | None
    compared_seconds: float | None = None
    """How long ago it was compared with all replicas that were up."""
    sealed_seconds: float | None = None
    differing: Number = 0
    """The rows that were not the same at that time."""
    bytes: Number = 0
    """The bytes that were sent to find them, without the rows themselves."""
    held_back_by: ReplicaIds = ()
    """Replicas that are down, or did not answer: nothing is sealed without them."""


class HintsFor(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """The hints that a node keeps for another one that was silent (R13)."""

    node: NodeId
    count: Number
    bytes: Number


class NodeSeen(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """How another node seems to one (R30)."""

    node: NodeId
    phi: float
    is_convicted: bool = False
    clock_ahead_us: Signed = 0


class NodeScrubbed(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """How a node's reading of its own files goes, to find what they have lost (R35)."""

    entries: Number = 0
    """The entries of rows that were read in this life."""
    passes: Number = 0
    """How often everything was read in this life."""
    damages: Number = 0
    """How often this directory was found to have lost something, by a request or by reading."""
    mended: Number = 0
    """How often another node's copy has taken the place of what was lost."""


class NodeReport(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The upkeep that a node does unasked, for people to see: nothing is decided by it."""

    tended: Annotated[tuple[RangeTended, ...], msgspec.Meta(max_length=RANGES)] = ()
    hints: Annotated[tuple[HintsFor, ...], OF_NODES] = ()
    hints_dropped: Number = 0
    seen: Annotated[tuple[NodeSeen, ...], OF_NODES] = ()
    scrubbed: NodeScrubbed = NodeScrubbed()


class NodeRequest(TopologyMessage, frozen=True, kw_only=True):
    """A node's state, knowledge and progress, sent to the leading manager."""

    cluster: ClusterName
    cluster_id: ClusterId = 0
    """The id of the node's cluster; 0 before the node was told one."""
    node: Node
    life: Number
    """The count of the node's starts, by its disk. Of two lives the later counts. A lower count
    than before comes from a disk that was put back.
    """
    sequence: Number
    """Rises within a life; the answer repeats it."""
    version: Number = 0
    """The version of the topology that the node has on its disk; 0 for none."""
    through: Number = 0
    """The version with which the step began that the node is through with. If that is
    `RingChange.began`, the node has copied all that it gains; if it is `RingChange.joint`, it has
    caught up (R15)."""
    copied: Number = 0
    """The bytes copied so far of what it gains by the step that runs, to be shown."""
    to_copy: Number = 0
    counter: Number = 0
    """The counter that promises, changes and lives of the node raise, durably (R26)."""
    weights: Annotated[tuple[RangeWeight, ...], msgspec.Meta(max_length=WEIGHTS)] = ()
    """The weights of the node's parts of the ring, in order; empty if there is nothing new."""
    topology: Topology | None = None
    """The topology that the node has, if a manager has asked for it after a restore."""
    report: NodeReport = NodeReport()
    proof: Proof = b""
    """The secret of the node, which only it and managers have; empty in earlier releases."""
    damage: Detail = ""
    """What the node's disk has lost; empty if it is well."""
    replaces: NodeId = NO_NODE
    """The node whose place this one takes, because that one's disk has lost something."""
    replaced_proof: Proof = b""
    """The secret of that node."""


class TopologyTold(TopologyMessage, frozen=True, kw_only=True):
    """The present topology: the answer to a request, or sent because it changed."""

    sequence: Number = 0
    """The number of the request; 0 without a request."""
    journal: JournalId
    leadership: Number
    topology: Topology | None = None
    """The topology; None if the node has this version."""
    version: Number
    wanted: bool = False
    """The journal was restored: the node is to say what topology it has, with its next request."""
    life: Number = 0
    """The number of the request; 0 without a request."""
    compare: Number = 0
    """How often this leader was told to have replicas compared at once."""
    may_leave: bool = False
    """Whether the node, which is damaged, may leave and come back as another one."""
    numbers: Annotated[dict[Word, Number], msgspec.Meta(max_length=TABLES)] = {}
    """The number of the next lease of each pool that is here, and fences a table (R36)."""


class NodeRefused(TopologyMessage, frozen=True, kw_only=True):
    """This node may not take part, and why."""

    sequence: Number
    node: NodeId
    reason: NodeRefusalReason
    detail: Detail
    life: Number = 0
    """The life in the request: a refusal of an earlier life does not concern a later one."""


ToNode: TypeAlias = TopologyTold | NodeRefused
"""`Standby` also goes to nodes, from a manager that does not lead."""
