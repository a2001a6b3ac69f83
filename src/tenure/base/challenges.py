"""How two processes prove to each other that they have the same secret, without sending it.

Each side draws a nonce, and answers the other's with a seal over both nonces. The seal also says
which side has made it, so that nobody gets one by sending a question back, and at which address, so
that no listener can pass a connection on to another one as its own. A listener takes each of its
nonces once.
"""

import hmac
from typing import Literal, NamedTuple

NONCE_BYTES = 16
_ID_BYTES = 8
_NONCE_CHARACTERS = 2 * NONCE_BYTES
Side = Literal["client", "listener"]


class Challenge(NamedTuple):
    """What both sides prove their secret by. The nonces are in hexadecimal."""

    at: str
    """The origin at which the client has connected, such as http://10.0.0.7:9000."""
    client: str
    listener: str


def seal(secret: bytes, side: Side, challenge: Challenge) -> str:
    """The seal by which that side proves that it has the secret."""
    said = "\n".join(("tenure port 1", side, *challenge))
    return hmac.digest(secret, said.encode(), "sha256").hex()


def is_sealed(shown: str, secret: bytes, side: Side, challenge: Challenge) -> bool:
    """Whether that side has shown that it has the secret."""
    wanted = seal(secret, side, challenge).encode()
    return hmac.compare_digest(shown.encode("utf-8", "replace"), wanted)


def id_of(secret: bytes) -> str:
    """Which secret it is, for the two sides to find one that both have."""
    return hmac.digest(secret, b"tenure port id", "sha256")[:_ID_BYTES].hex()


def is_nonce(said: str) -> bool:
    """Whether it is a nonce: no other text is sealed."""
    return len(said) == _NONCE_CHARACTERS and all(each in "0123456789abcdef" for each in said)
