"""The bytes of gossip: they are inside a datagram, which has a version of its own."""

from typing import Final

import msgspec

from tenure.protocol.gossip.limits import MESSAGE_BYTES
from tenure.protocol.gossip.messages import GossipMessage
from tenure.wire.frame import Bytes, Reader, framed

VERSION: Final = 1


def encode_gossip(message: GossipMessage) -> bytes:
    """The bytes of a message."""
    return framed(message, VERSION)


def _check(message: GossipMessage, version: int) -> None:
    """Check nothing: every node with the cluster's secret is believed, and types check the rest."""


_read: Reader[GossipMessage] = Reader(msgspec.msgpack.Decoder(GossipMessage), MESSAGE_BYTES, _check)


def decode_gossip(data: Bytes) -> GossipMessage:
    """Decode what was heard. Raises RemoteProtocolError for any malformed bytes."""
    return _read(data, VERSION)
