"""How a gateway takes a socket over from the process that has let it in.

The gateway sends the handshake of a WebSocket on with an *offer* for each pool whose sockets it can
hold. The application decides as always who comes in, and calls `attach`. If there is an offer for
its pool, `attach` does not accept the WebSocket, but answers what the gateway needs to be its other
end: the key and the attachment. From then on the socket is no business of that process any more.

An offer is sealed with the secret of the pool: nobody else is told an attachment.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tenure.base.challenges import Challenge, is_nonce, is_sealed, seal
from tenure.protocol.entity.key_line import EntityKey, Name
from tenure.transport.pool_secret import PoolSecret

OFFER = "tenure-sockets"
"""The header of a handshake, `POOL ID NONCE SEAL`; there may be several."""
TAKE = "tenure-socket"
"""The header of the answer."""
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


def offer(pool: str, secret: PoolSecret, nonce: str) -> str | None:
    """The offer of a process that knows the pool's secret; None if it does not know it yet."""
    for id_ in secret.ids:
        mine = secret.get(id_)
        if mine is not None:
            return f"{pool} {id_} {nonce} {seal(mine, 'client', _challenge(pool, nonce))}"
    return None


def is_offered(headers: Iterable[str], pool: str, secret: PoolSecret) -> bool:
    """Whether one of these headers is an offer for the pool, from a process that belongs to it."""
    for each in headers:
        parts = each.rsplit(" ", _PARTS - 1)
        if len(parts) != _PARTS or parts[0] != pool or not is_nonce(parts[2]):
            continue
        mine = secret.get(parts[1])
        if mine is not None and is_sealed(parts[3], mine, "client", _challenge(pool, parts[2])):
            return True
    return False


def _challenge(pool: str, nonce: str) -> Challenge:
    # No port is at such an origin: what is sealed here proves nothing there.
    return Challenge(f"sockets of {pool}", nonce, "")


def told(socket: TakenSocket) -> str:
    """The answer's header."""
    return base64.b64encode(_encode(socket)).decode()


def read_told(header: bytes) -> TakenSocket | None:
    """Parse it; None if no `attach` has written it."""
    if len(header) > MOST_BYTES:
        return None
    try:
        return _decode(base64.b64decode(header, validate=True))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
