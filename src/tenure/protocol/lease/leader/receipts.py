"""Receipts: a leader's sealed word on how far its journal went. Clients show it to the next leader.

An owner or a lookup may have seen more of a journal's history than the journal holds: then the
journal is an old copy, and leading on it would give keys to two owners (P22). But a client can also
lie, and one liar must not end a leader. So each answer carries a receipt, sealed with a secret that
only the journal and its managers know, and requests repeat the latest. Nobody but a leader of that
very journal can have made it, so it is true whoever shows it, and one honest witness is enough. A
claim without a receipt proves nothing about the journal: it counts against the client that made it.
"""

from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

SECRET_BYTES = 16
"""Too many bytes to guess; drawn once for each journal, at its first takeover."""
_NUMBER_BYTES = 8
_SEAL_BYTES = 16
_NUMBERS = 3


class Receipt(NamedTuple):
    """A leader's words about the history that its answer was a part of."""

    leadership: int
    nonce: int
    """The nonce of the leader, drawn once for each leadership (P2)."""
    lsn: int


def sealed(receipt: Receipt, journal: int, secret: bytes) -> bytes:
    """The bytes of a receipt; empty if the journal has no secret, since then anybody could seal."""
    if not secret:
        return b""
    body = b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in receipt)
    return body + _seal(body, journal, secret)


def opened(data: bytes, journal: int, secret: bytes) -> Receipt | None:
    """The receipt that a client shows, if a leader of this journal has made it."""
    body, seal = data[: _NUMBERS * _NUMBER_BYTES], data[_NUMBERS * _NUMBER_BYTES :]
    # In equal time, whatever it differs in: a seal must not be guessed byte by byte.
    if not secret or not compare_digest(seal, _seal(body, journal, secret)):
        return None
    parts = (body[i : i + _NUMBER_BYTES] for i in range(0, len(body), _NUMBER_BYTES))
    return Receipt(*(int.from_bytes(part, "big") for part in parts))


def _seal(body: bytes, journal: int, secret: bytes) -> bytes:
    named = journal.to_bytes(_NUMBER_BYTES, "big") + body
    return blake2b(named, key=secret, digest_size=_SEAL_BYTES).digest()
