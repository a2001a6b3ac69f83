"""Messages of nodes that are too large to be sent whole, in parts.

A row is sent whole when it is copied, compared or adopted, because all of it must be of one
instant. It may have grown larger than a message. Then its bytes go in parts, one after the other on
the same connection, and the receiver of the last part has the message.

A sender sends one such message at a time, so an earlier message that it did not finish was lost
with its connection. Small messages may come between two parts.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.errors import RemoteProtocolError
from tenure.protocol.replication.messages import MessagePart, NodeMessage
from tenure.protocol.replication.row.limits import PART_BYTES, WHOLE_BYTES
from tenure.protocol.topology.records import NodeId
from tenure.wire.columns import FIRST_VERSION, decode_whole

_encoder = msgspec.msgpack.Encoder()


def in_parts(message: NodeMessage) -> Iterator[NodeMessage]:
    """The message in parts; no parts if it is too large even for that."""
    data = memoryview(_encoder.encode(message))
    if len(data) > WHOLE_BYTES:
        return
    count = -(-len(data) // PART_BYTES)
    for number in range(count):
        part = bytes(data[number * PART_BYTES : (number + 1) * PART_BYTES])
        body = MessagePart(ticket=message.body.ticket, number=number, count=count, data=part)
        yield msgspec.structs.replace(message, body=body)


def continues(message: Any) -> bool:  # noqa: ANN401 - whatever a node sends
    """Whether a message goes on with a part that was sent before it."""
    body = getattr(message, "body", None)
    return isinstance(body, MessagePart) and body.number > 0


class MessageJoiner:
    """Puts together the messages that a node receives in parts."""

    def __init__(self) -> None:
        self._begun: dict[NodeId, tuple[int, list[bytes]]] = {}

    def add(self, message: NodeMessage, part: MessagePart) -> NodeMessage | None:
        """Take a part, and return the whole message if that was the last one. Raises
        RemoteProtocolError for malformed bytes.
        """
        sender = message.sender
        ticket, parts = self._begun.pop(sender, (part.ticket, []))
        if ticket != part.ticket:
            parts = []
        others = sum(len(each) for _, begun in self._begun.values() for each in begun)
        size = others + sum(map(len, parts)) + len(part.data)
        # Otherwise there would be any number of parts, and of those who began to send some.
        is_short = part.number < part.count - 1 and len(part.data) < PART_BYTES
        if part.number != len(parts) or size > WHOLE_BYTES or is_short:
            return None  # the node that asked counts the silence
        parts.append(part.data)
        if len(parts) < part.count:
            self._begun[sender] = part.ticket, parts
            return None
        whole = decode_whole(bytes([FIRST_VERSION]) + b"".join(parts), FIRST_VERSION)
        if not isinstance(whole, NodeMessage) or isinstance(whole.body, MessagePart):
            raise RemoteProtocolError("a message in parts is not a message of a node")
        return whole
