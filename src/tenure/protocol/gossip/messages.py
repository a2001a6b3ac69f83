"""The messages of gossip: a digest, then the values that the other node knows better, then the same
in return.

One message is one datagram, so it may be lost, come twice, or late. Each says what it is relative
to, so all of that is harmless: the receiver skips values that it already knows, and refuses a delta
that would leave a gap.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from tenure.base.numbers import Nonce, Number
from tenure.protocol.gossip.limits import KEY_CHARACTERS, PARTS_BYTES, VALUE_BYTES

NodeId: TypeAlias = Nonce
"""The identity of a node, drawn when its directory is made."""


IN_A_DATAGRAM: Final = msgspec.Meta(max_length=PARTS_BYTES)
"""No more parts than bytes."""
REFUSED: Final = (1 << 63) - 1
"""The number in the place of promises that says that the node's disk went back, and that the node
is refused until it is replaced.
"""


class NodeDigest(msgspec.Struct, frozen=True, array_like=True):
    """How much is known of a node."""

    node: NodeId
    generation: Number
    """The number of the node's life: a restarted node has a higher one, and tells all its values
    anew.
    """
    heartbeat: Number
    """The rounds that the node has made in this life."""
    version: Number
    """The version of the newest value that is known of the node; all values up to it are known."""
    promises: Number = 0
    """How often the node's counter was raised, in all its lives; it never falls (R26)."""

    @property
    def age(self) -> tuple[int, int]:
        """The sort key that puts the digests of one node in the node's own order."""
        return self.generation, self.heartbeat


class StateEntry(msgspec.Struct, frozen=True, array_like=True):
    """A value that a node tells, under a name."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_CHARACTERS)]
    value: Annotated[bytes, msgspec.Meta(max_length=VALUE_BYTES)]
    version: Number


class NodeDelta(msgspec.Struct, frozen=True, array_like=True):
    """The values of a node that a sender knows better."""

    head: NodeDigest
    """The digest with the version of the last entry, or `after` if there are no entries."""
    after: Number
    """The entries are all those of a higher version, up to the head's."""
    entries: Annotated[tuple[StateEntry, ...], IN_A_DATAGRAM] = ()


class GossipSyn(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """A round begins: this is how much the sender knows."""

    sender: NodeId
    address: Annotated[str, msgspec.Meta(max_length=80)]
    """The address at which the sender hears."""
    is_whole: bool
    """Whether all nodes that the sender knows are listed."""
    digests: Annotated[tuple[NodeDigest, ...], IN_A_DATAGRAM]


class GossipAck(msgspec.Struct, frozen=True, array_like=True, tag="a"):
    """The values that the asked node knows better, and the digests of those that it knows less
    well.
    """

    sender: NodeId
    deltas: Annotated[tuple[NodeDelta, ...], IN_A_DATAGRAM]
    wanted: Annotated[tuple[NodeDigest, ...], IN_A_DATAGRAM]


class GossipEnd(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """The values that were wanted: the round is over."""

    sender: NodeId
    deltas: Annotated[tuple[NodeDelta, ...], IN_A_DATAGRAM]


GossipMessage: TypeAlias = GossipSyn | GossipAck | GossipEnd


def heads_of(message: GossipMessage) -> tuple[NodeDigest, ...]:
    """How much the sender knows, of all nodes that the message is about."""
    match message:
        case GossipSyn(digests=digests):
            return digests
        case GossipAck(deltas=deltas, wanted=wanted):
            return (*(delta.head for delta in deltas), *wanted)
        case GossipEnd(deltas=deltas):
            return tuple(delta.head for delta in deltas)


_encoder = msgspec.msgpack.Encoder()


def size_of(part: msgspec.Struct) -> int:
    """How many bytes a part takes in a message."""
    return len(_encoder.encode(part))
