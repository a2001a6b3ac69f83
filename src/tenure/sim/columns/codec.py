"""Messages between clients and nodes as bytes."""

from typing import Any

import msgspec

from tenure.protocol.replication.messages import ClientAnswer, ClientRequest, NodeMessage
from tenure.sim.kernel.process import SimProcess


class StoreCodec:
    """Messages as bytes. A node is told which of its two kinds of message it gets by a byte."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._of_nodes: msgspec.msgpack.Decoder[NodeMessage] = msgspec.msgpack.Decoder(NodeMessage)
        self._of_clients: msgspec.msgpack.Decoder[ClientRequest] = msgspec.msgpack.Decoder(
            ClientRequest
        )
        self._answers: msgspec.msgpack.Decoder[ClientAnswer] = msgspec.msgpack.Decoder(ClientAnswer)

    def encode(self, message: Any) -> bytes:
        """The bytes of a message."""
        kind = b"n" if isinstance(message, NodeMessage) else b"c"
        return kind + self._encoder.encode(message)

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """As a node or a client reads it."""
        inside = memoryview(data)[1:]
        if data[:1] == b"n":
            return self._of_nodes.decode(inside)
        if receiver.slot.startswith("n"):
            return self._of_clients.decode(inside)
        return self._answers.decode(inside)
