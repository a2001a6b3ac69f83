"""How a gateway takes a socket over from the process that has let it in.

The gateway sends the handshake of a WebSocket on with an *offer* for each pool whose sockets it can
hold. The application decides as always who comes in, and calls `attach`. If there is an offer for
its pool, `attach` does not accept the WebSocket, but answers what the gateway needs to be its other
end: the key and the attachment. From then on the socket is no business of that process any more.

Both are sealed with the secret of the pool. So nobody else is told an attachment, and the gateway
believes nobody else: an answer is sealed over the nonce of its offer, which each handshake draws
anew. Whoever shows a process an offer that it has seen gets an answer for nobody but the gateway
that made the offer, and only while that handshake waits.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tenure.base.challenges import Challenge, Side, is_nonce, is_sealed, seal
from tenure.protocol.entity.key_line import EntityKey, Name
from tenure.transport.pool_secret import PoolSecret

OFFER = "tenure-sockets"
"""The header of a handshake, `POOL ID NONCE SEAL`; there may be several."""
TAKE = "tenure-socket"
"""The header of the answer, `SEAL SOCKET`."""
MOST_BYTES = 16_384
_PARTS = 4
_encode = msgspec.msgpack.Encoder().encode


class TakenSocket(NamedTuple):
    """What the gateway is told of the socket."""

    pool: Name
    key: EntityKey
    attachment: Any
    """What the application passed to `attach`."""


_decode = msgspec.msgpack.Decoder(TakenSocket).decode


class SocketOffer:
    """An offer for one pool in one handshake, at the gateway or at the process that answers it."""

    def __init__(self, pool: str, id_: str, nonce: str, secret: bytes) -> None:
        self._pool = pool
        self._id = id_
        self._nonce = nonce
        self._secret = secret

    @property
    def header(self) -> str:
        """What the gateway sends."""
        return f"{self._pool} {self._id} {self._nonce} {self._seal('client', b'')}"

    def fits(self, shown: str) -> bool:
        """Whether this seal of an offer was made with the pool's secret."""
        return is_sealed(shown, self._secret, "client", self._challenge(b""))

    def answer(self, socket: TakenSocket) -> str:
        """The header by which the process gives its socket over."""
        said = told(socket)
        return f"{self._seal('listener', said.encode())} {said}"

    def taken(self, answer: bytes) -> TakenSocket | None:
        """The socket of an answer; None if it does not answer this offer."""
        if len(answer) > MOST_BYTES:
            return None
        shown, _, said = answer.partition(b" ")
        challenge = self._challenge(said)
        if not is_sealed(shown.decode("latin-1"), self._secret, "listener", challenge):
            return None
        socket = read_told(said)
        return socket if socket is not None and socket.pool == self._pool else None

    def _seal(self, side: Side, said: bytes) -> str:
        return seal(self._secret, side, self._challenge(said))

    def _challenge(self, said: bytes) -> Challenge:
        # No port is at such an origin: what is sealed here proves nothing there. An earlier version
        # sealed no answers, and named another origin: each takes the other's offers for none, and
        # the socket stays in the process that has accepted it.
        at = f"sealed sockets of {self._pool}"
        return Challenge(at, self._nonce, hashlib.sha256(said).hexdigest())


def offer(pool: str, secret: PoolSecret, nonce: str) -> SocketOffer | None:
    """The offer of a process that knows the pool's secret; None if it does not know it yet."""
    for id_ in secret.ids:
        mine = secret.get(id_)
        if mine is not None:
            return SocketOffer(pool, id_, nonce, mine)
    return None


def offered(headers: Iterable[str], pool: str, secret: PoolSecret) -> SocketOffer | None:
    """The first of these headers that is an offer for the pool, from a process that belongs to it;
    None if there is none.
    """
    for each in headers:
        parts = each.rsplit(" ", _PARTS - 1)
        if len(parts) != _PARTS or parts[0] != pool or not is_nonce(parts[2]):
            continue
        _, id_, nonce, shown = parts
        mine = secret.get(id_)
        if mine is not None and (made := SocketOffer(pool, id_, nonce, mine)).fits(shown):
            return made
    return None


def told(socket: TakenSocket) -> str:
    """What an answer says, and seals."""
    return base64.b64encode(_encode(socket)).decode()


def read_told(said: bytes) -> TakenSocket | None:
    """Parse it; None if no `attach` has written it."""
    if len(said) > MOST_BYTES:
        return None
    try:
        return _decode(base64.b64decode(said, validate=True))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
