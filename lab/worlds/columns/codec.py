"""Messages between clients, nodes and managers as bytes."""

from typing import Any

import msgspec

from tenure.protocol.gossip.messages import GossipAck, GossipEnd, GossipMessage, GossipSyn
from tenure.protocol.replication.messages import ClientAnswer, ClientRequest, NodeMessage
from tenure.protocol.topology.messages import NodeRefused, NodeRequest, TopologyTold
from tenure.sim.kernel.process import SimProcess
from tenure.wire.topology import FIRST_VERSION, decode_node_request, decode_to_node, encode_topology

_OF_MANAGERS, _OF_NODES, _OF_GOSSIP, _OF_CLIENTS = b"m", b"n", b"g", b"c"
_KINDS: dict[type, bytes] = {
    **dict.fromkeys((NodeRequest, TopologyTold, NodeRefused), _OF_MANAGERS),
    **dict.fromkeys((GossipSyn, GossipAck, GossipEnd), _OF_GOSSIP),
    NodeMessage: _OF_NODES,
}


class StoreCodec:
    """Encodes and decodes messages. The first byte tells the receiver of which kind a
    message is.
    """

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
        kind = _KINDS.get(type(message), _OF_CLIENTS)
        if kind == _OF_MANAGERS:
            return kind + encode_topology(message, FIRST_VERSION)
        return kind + self._encoder.encode(message)

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """Decode bytes as a node or a client reads them."""
        kind, inside = data[:1], data[1:]
        if kind == _OF_NODES:
            return self._of_nodes.decode(inside)
        if kind == _OF_GOSSIP:
            return self._gossip.decode(inside)
        is_node = receiver.slot.startswith("n")
        if kind == _OF_MANAGERS:
            return (decode_to_node if is_node else decode_node_request)(inside, FIRST_VERSION)
        return (self._of_clients if is_node else self._answers).decode(inside)
