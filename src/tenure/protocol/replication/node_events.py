"""The events and actions of a node's machine."""

from typing import TypeAlias

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.base.noted import Noted
from tenure.protocol.replication.messages import ClientAnswer, ClientRequest, NodeMessage
from tenure.protocol.replication.row.copies import FillingRecord
from tenure.protocol.replication.tasks import Step, StepResult
from tenure.protocol.replication.told_topologies import Doubt
from tenure.protocol.topology.records import NodeId, Topology


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeId
    topology: Topology
    """The topology as it was kept when the node last ran."""
    patience_ns: int = seconds(5)
    """How long a request may take. After that its outcome is unknown (R9)."""
    spare_ns: int = seconds(0.5)
    """A read asks no more replicas than it needs, and after so long the others."""
    hint_ns: int = seconds(10)
    """The time between two attempts to hand over hints."""
    repair_ns: int = seconds(60)
    """The time between two rounds in which replicas are compared."""
    repair_bytes_a_second: int = 16 << 20
    """The most bytes a second that comparing and mending may take."""
    most_requests: int = 1_000
    """The most requests that are coordinated at once; a large one counts as several."""
    most_large_reads: int = 8
    """The most requests that have more than a little of what they read in memory, at once: up to 32
    MiB of each replica, and mostly of one alone.
    """
    most_hints: int = 100_000
    most_hint_bytes: int = 64 << 20
    filling: FillingRecord = FillingRecord()
    has_managers: bool = False
    """Whether there are managers that tell the numbers of leases."""
    copy_parts: int = 64
    """The number of parts into which a node divides what it gains, so that several are copied at
    once.
    """
    piece_bytes: int = 1 << 20
    """The size in bytes at which a piece ends, with the row in which it is reached."""
    copy_bytes_a_second: int = 100_000_000
    """A copy is no faster: requests need the disks, too."""


# --- events -------------------------------------------------------------------------------------


class NodeTold(msgspec.Struct, frozen=True):
    message: NodeMessage
    is_proven: bool = True
    """Whether the sender has proven that it belongs to the cluster. Only nodes of releases before
    there were proofs are heard without one.
    """


class StoreAsked(msgspec.Struct, frozen=True):
    client: int
    """The number by which the shell knows where the answer goes."""
    request: ClientRequest
    wall_us: int
    """This node's wall clock: a client's word about the time is not believed (R33)."""
    by: str = ""
    """The name under which its requests are counted: that of its token, or its address."""
    places: int = 1
    """How many places of `most_requests` it takes: more if it is large."""


class StepDone(msgspec.Struct, frozen=True):
    ticket: int
    result: StepResult
    changes: int
    """How often the store was changed up to now, this step included."""


class StepFailed(msgspec.Struct, frozen=True):
    """The store could not do a step, for example on a full disk: nothing was changed."""

    ticket: int


class Synced(msgspec.Struct, frozen=True):
    """All changes up to this number are durable."""

    changes: int


class TopologyGossiped(msgspec.Struct, frozen=True):
    """A node has gossiped the version of the topology by which it acts."""

    node: NodeId
    version: int


class TopologyLearned(msgspec.Struct, frozen=True):
    """A manager has told this topology."""

    topology: Topology


class TopologyKept(msgspec.Struct, frozen=True):
    """The topology is on disk: now it counts (R16)."""

    topology: Topology


class Convicted(msgspec.Struct, frozen=True):
    """The failure detector holds these to be down, and no others (R5)."""

    nodes: tuple[NodeId, ...]


class DelaysMeasured(msgspec.Struct, frozen=True):
    """The other nodes, the nearest first."""

    nearest: tuple[NodeId, ...]


class NumbersTold(msgspec.Struct, frozen=True):
    """Managers have told the numbers of the next leases."""

    numbers: dict[str, int]
    """By pool."""
    asked_at: Instant


class CompareAsked(msgspec.Struct, frozen=True):
    """Replicas are to be compared now."""


NodeEvent: TypeAlias = (
    NodeTold
    | StoreAsked
    | StepDone
    | StepFailed
    | Synced
    | TopologyGossiped
    | TopologyLearned
    | TopologyKept
    | Convicted
    | DelaysMeasured
    | NumbersTold
    | CompareAsked
)


# --- actions ------------------------------------------------------------------------------------


class TellNode(msgspec.Struct, frozen=True):
    node: NodeId
    message: NodeMessage


class AnswerClient(msgspec.Struct, frozen=True):
    client: int
    answer: ClientAnswer


class RunStep(msgspec.Struct, frozen=True):
    """Have the store do the step, at once, and report its result."""

    ticket: int
    step: Step


class SyncUpTo(msgspec.Struct, frozen=True):
    """Make so many changes durable, at once for all that wait for them, and say so."""

    changes: int


class KeepTopology(msgspec.Struct, frozen=True):
    """Write the topology to disk, and say so."""

    topology: Topology


class DoubtTopology(msgspec.Struct, frozen=True):
    """A node tells a topology that does not count: ask a manager which one does (R32)."""

    teller: NodeId
    version: int
    why: Doubt


class AskManagers(msgspec.Struct, frozen=True):
    """Ask the managers soon: a client names a lease number of which nobody has told (R36)."""


class StepThrough(msgspec.Struct, frozen=True):
    """This node has completed the step that began with this version: the managers wait for it."""

    version: int


NodeAction: TypeAlias = (
    TellNode
    | AnswerClient
    | RunStep
    | SyncUpTo
    | KeepTopology
    | DoubtTopology
    | AskManagers
    | StepThrough
    | Noted
)
