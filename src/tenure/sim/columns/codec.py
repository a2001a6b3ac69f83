"""Messages between clients, nodes and managers as bytes."""

from typing import Any

import msgspec

from tenure.protocol.gossip.messages import GossipAck, GossipEnd, GossipMessage, GossipSyn
from tenure.protocol.replication.messages import ClientAnswer, ClientRequest, NodeMessage
from tenure.protocol.topology.messages import TopologyMessage
from tenure.sim.kernel.process import SimProcess
from tenure.wire.topology import (
    FIRST_VERSION,
    decode_node_request,
    decode_to_node,
    encode_topology,
)


class StoreCodec:
    """Messages as bytes. Who gets one is told of which kind it is by a byte."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._of_nodes: msgspec.msgpack.Decoder[NodeMessage] = msgspec.msgpack.Decoder(NodeMessage)
        self._of_clients: msgspec.msgpack.Decoder[ClientRequest] = msgspec.msgpack.Decoder(
            ClientRequest
        )
        self._gossip: msgspec.msgpack.Decoder[GossipMessage] = msgspec.msgpack.Decoder(
            GossipMessage
        )
        self._answers: msgspec.msgpack.Decoder[ClientAnswer] = msgspec.msgpack.Decoder(ClientAnswer)

    def encode(self, message: Any) -> bytes:
        """The bytes of a message."""
        if isinstance(message, TopologyMessage):
            return b"m" + encode_topology(message, FIRST_VERSION)  # type: ignore[arg-type]
        if isinstance(message, GossipSyn | GossipAck | GossipEnd):
            return b"g" + self._encoder.encode(message)
        kind = b"n" if isinstance(message, NodeMessage) else b"c"
        return kind + self._encoder.encode(message)

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """As a node or a client reads it."""
        if data[:1] == b"m":
            decode = decode_to_node if receiver.slot.startswith("n") else decode_node_request
            return decode(data[1:], FIRST_VERSION)
        inside = memoryview(data)[1:]
        if data[:1] == b"n":
            return self._of_nodes.decode(inside)
        if data[:1] == b"g":
            return self._gossip.decode(inside)
        if receiver.slot.startswith("n"):
            return self._of_clients.decode(inside)
        return self._answers.decode(inside)
