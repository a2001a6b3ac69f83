"""The events that a gossiper is told, and the actions that it wants carried out."""

from typing import TypeAlias

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.base.noted import Noted
from tenure.base.numbers import Number
from tenure.protocol.gossip.failure_detector import THRESHOLD, WINDOW
from tenure.protocol.gossip.messages import GossipMessage, NodeDigest, NodeId


class GossiperConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a gossiper."""

    node: NodeId
    generation: Number
    """The number of this life: higher than in any earlier life."""
    address: str
    """The address at which others reach the node."""
    promises: Number = 0
    """How often the counter of the node was raised, according to its disk."""
    seeds: tuple[str, ...] = ()
    """Addresses to begin at."""
    known: tuple[NodeDigest, ...] = ()
    """The digests in the last `KeepPromises` of an earlier life."""
    interval_ns: int = SECOND_NS
    fan_out: int = 3
    """How many it begins to talk with in a round."""
    threshold: float = THRESHOLD
    window: int = WINDOW
    clock_bound_us: int = 10_000_000
    """How far the wall clock of another node may be off before it is named."""


# --- events -------------------------------------------------------------------------------------


class GossipHeard(msgspec.Struct, frozen=True):
    """A datagram has arrived from an address."""

    address: str
    message: GossipMessage
    ahead_us: int = 0
    """How far the sender's wall clock was ahead of the own one, if it took no time to arrive."""


class StateSet(msgspec.Struct, frozen=True):
    """This node has a new value under that name, which replaces the former one."""

    key: str
    value: bytes


class PromisesRaised(msgspec.Struct, frozen=True):
    """The counter on the disk was raised."""

    promises: Number


class PromisesNotKept(msgspec.Struct, frozen=True):
    """The disk has no room for what `KeepPromises` said."""


class GossipPeer(msgspec.Struct, frozen=True):
    """A node of the topology, and where it hears."""

    node: NodeId
    address: str


class MembersKnown(msgspec.Struct, frozen=True):
    """Which nodes there are, and which were removed for ever."""

    members: tuple[GossipPeer, ...]
    removed: tuple[NodeId, ...] = ()
    ring: tuple[NodeId, ...] = ()
    """The members that keep rows."""


GossiperEvent: TypeAlias = GossipHeard | StateSet | PromisesRaised | PromisesNotKept | MembersKnown


# --- actions ------------------------------------------------------------------------------------


class SendGossip(msgspec.Struct, frozen=True):
    """Send a datagram."""

    address: str
    message: GossipMessage


class TellConvicted(msgspec.Struct, frozen=True):
    """The node was silent for too long: leave it out (R5)."""

    node: NodeId


class TellAcquitted(msgspec.Struct, frozen=True):
    """The node was convicted, and is heard again; or it was met for the first time."""

    node: NodeId


class TellState(msgspec.Struct, frozen=True):
    """A node says something new."""

    node: NodeId
    key: str
    value: bytes


class TellVouched(msgspec.Struct, frozen=True):
    """Enough others know of this life and do not refuse it: the node may take part (R26)."""


class TellWentBack(msgspec.Struct, frozen=True):
    """The node has forgotten something: nothing that it says counts any longer (R26).

    It may be this very node, which must then end.
    """

    node: NodeId


class KeepPromises(msgspec.Struct, frozen=True):
    """Keep on the disk, some time soon, how many promises were heard of each node."""

    known: tuple[NodeDigest, ...]


GossiperAction: TypeAlias = (
    SendGossip
    | TellConvicted
    | TellAcquitted
    | TellState
    | TellVouched
    | TellWentBack
    | KeepPromises
    | Noted
)


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """Another node, as this one knows it."""

    node: NodeId
    address: str
    digest: NodeDigest
    phi: float
    is_convicted: bool
    has_gone_back: bool
    clock_ahead_us: int
    state: dict[str, bytes]


class GossiperView(msgspec.Struct, frozen=True, kw_only=True):
    """The gossiper, as the shell that runs it may see it."""

    own: NodeDigest
    nodes: tuple[NodeView, ...]
    ignored: int
    """Messages of nodes that were removed or have gone back."""
