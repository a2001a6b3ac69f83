"""What one gateway tells another of the connections that it passes on. Pure: nothing here connects.

Of a connection on which nothing is under way, that is what has come of a request's head. Of a
WebSocket of an entity it is what both sides have counted, what has come of the client and was not
answered by the entity, and what is on its way to the client. Of a tunnel it is what has come of
either side and was not written to the other; the connection to the server behind goes along.
Whoever is told goes on as if all of it had just come.
"""

from typing import Annotated

import msgspec

from tenure.entities.edge_socket import WAITING_BYTES
from tenure.gateway.request_reader import MOST_HEAD_BYTES, MOST_TARGET_BYTES
from tenure.member.asgi import MESSAGE_BYTES
from tenure.member.forwarded_answer import MOST_UNREAD_BYTES as MOST_UNREAD_BYTES_BEHIND
from tenure.protocol.entity.key_line import CallId, EntityKey, Name
from tenure.protocol.entity.socket_end import PassedEnd

MOST_AT_ONCE = 64
"""The most connections that are passed together. All of them are held up meanwhile."""
MOST_UNREAD_BYTES = MESSAGE_BYTES + (1 << 20)
"""The most that is passed of what a client has sent: a message, and what is read ahead."""
MOST_UNSENT_BYTES = 2 * WAITING_BYTES
MOST_BEHIND_BYTES = MOST_UNREAD_BYTES_BEHIND + (1 << 20)
"""The most that is passed of what the server behind a tunnel has sent."""
MOST_NAME_BYTES = 2048
"""The most of a target's name: it may be a URL."""
TOGETHER_BYTES = 1 << 20
"""The bytes after which no other connection is passed together with these."""
MOST_BYTES = (
    TOGETHER_BYTES
    + MOST_UNREAD_BYTES
    + max(MOST_UNSENT_BYTES, MOST_BEHIND_BYTES)
    + MOST_AT_ONCE * (1 << 17)
)
"""The most bytes that tell of connections which are passed together."""


class PassedSocket(msgspec.Struct, frozen=True, array_like=True):
    """A WebSocket of an entity."""

    pool: Name
    key: EntityKey
    id: CallId
    """By which the entity knows it, and nobody else."""
    end: PassedEnd
    unsent: Annotated[bytes, msgspec.Meta(max_length=MOST_UNSENT_BYTES)]
    """Its frames to the client, as they are sent."""
    target: Annotated[bytes, msgspec.Meta(max_length=MOST_TARGET_BYTES)]
    """That of the request which has opened it."""
    token: Annotated[bytes, msgspec.Meta(max_length=MOST_HEAD_BYTES)]
    """That of the client, whose connections have bounds in common."""


class PassedTunnel(msgspec.Struct, frozen=True, array_like=True):
    """A WebSocket that ends in a server behind."""

    behind: Annotated[str, msgspec.Meta(max_length=MOST_NAME_BYTES)]
    """The pool of that server, or its URL."""
    unread: Annotated[bytes, msgspec.Meta(max_length=MOST_BEHIND_BYTES)]
    """What the server has sent and was not written to the client."""
    target: Annotated[bytes, msgspec.Meta(max_length=MOST_TARGET_BYTES)]
    """That of the request which has opened it."""


class PassedConnection(msgspec.Struct, frozen=True, array_like=True):
    """A connection of a client."""

    has_asked: bool
    """Whether a request has come on it."""
    unread: Annotated[bytes, msgspec.Meta(max_length=MOST_UNREAD_BYTES)]
    """What has come and was not taken."""
    socket: PassedSocket | None = None
    tunnel: PassedTunnel | None = None
    """If it is one, another handle is passed after that of the client: the server's."""

    @property
    def size(self) -> int:
        """The bytes of what varies much."""
        return len(self.unread) + len(self.unsent) + len(self._behind)

    @property
    def is_bounded(self) -> bool:
        """Whether it can be told."""
        is_short = len(self.unread) <= MOST_UNREAD_BYTES and len(self.unsent) <= MOST_UNSENT_BYTES
        return is_short and len(self._behind) <= MOST_BEHIND_BYTES

    @property
    def handles(self) -> int:
        """How many handles are passed with it."""
        return 1 if self.tunnel is None else 2

    @property
    def opens_socket(self) -> bool:
        """Whether it is a WebSocket."""
        return self.socket is not None or self.tunnel is not None

    @property
    def target(self) -> bytes:
        """That of the request which has opened it."""
        opened = self.socket or self.tunnel
        return b"/" if opened is None else opened.target

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What must be known of those of that request."""
        token = b"" if self.socket is None else self.socket.token
        return [(b"authorization", token)] if token else []

    @property
    def unsent(self) -> bytes:
        """What is to be written to the client before anything else."""
        return b"" if self.socket is None else self.socket.unsent

    @property
    def _behind(self) -> bytes:
        return b"" if self.tunnel is None else self.tunnel.unread


PassedTogether = Annotated[tuple[PassedConnection, ...], msgspec.Meta(max_length=MOST_AT_ONCE)]
read_passed = msgspec.msgpack.Decoder(PassedTogether).decode
packed = msgspec.msgpack.Encoder().encode
