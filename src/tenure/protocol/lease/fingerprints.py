"""The fingerprint of what an owner holds: sixteen bytes instead of ranges and numbers.

A request lists all that its owner holds, because an owner returns a range by not listing it (P5).
Mostly the list is the same as the table's, and nothing changes; then its fingerprint is enough. The
manager compares it with that of the table's own list. If they are equal, the request has said just
what the list would have said; if they differ, it has said nothing. Neither side has to remember any
list that was sent: a new leader makes the fingerprint from the journal's table.

Two lists must not have one fingerprint, or a manager would renew ranges that the owner does not
hold, and nobody would serve them. With 128 bits this does not happen by chance. Somebody who
chooses the bounds of ranges and computes for long enough could bring it about. So the hash has a
key: the nonces of both sides, which are drawn for this incarnation and this leadership. An owner
that lies about its fingerprint claims what the table gives it anyway: it could as well lie with a
list.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from tenure.protocol.lease.messages import Held

FINGERPRINT_BYTES = 16
_NONCE_BYTES = 8
_packed = msgspec.msgpack.Encoder().encode


def fingerprint(held: Sequence[Held], owner_nonce: int, manager_nonce: int) -> bytes:
    """The fingerprint of `held`, which is in order: the hash of its MessagePack, with the shortest
    numbers, in one conversation.
    """
    key = owner_nonce.to_bytes(_NONCE_BYTES, "big") + manager_nonce.to_bytes(_NONCE_BYTES, "big")
    return blake2b(_packed(held), key=key, digest_size=FINGERPRINT_BYTES).digest()
