"""The fingerprint of what an owner holds: sixteen bytes in the place of ranges and numbers.

A request lists all that its owner holds, because what is not listed is returned (P5). Mostly the
list is the one that the table has, and nothing changes; then its fingerprint is enough. The manager
compares it with that of the table's own list. Where both agree, the request has said just what the
list would have said; where they differ, it has said nothing. Neither side has to remember any list
that was sent: a new leader makes the fingerprint from the journal's table.

Two lists must not have one fingerprint, or a manager would renew what its owner does not hold, and
nobody would serve that. With 128 bits this does not come about by chance. It could be made to,
by somebody who chooses the bounds of ranges and computes for long enough; so the hash has a key,
the nonces of both sides, which are drawn for this incarnation and this leadership. An owner that
lies about its fingerprint claims what the table gives it anyway: it could as well lie with a list.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from tenure.protocol.lease.messages import Held

FINGERPRINT_BYTES = 16
_NONCE_BYTES = 8
_packed = msgspec.msgpack.Encoder().encode


def fingerprint(held: Sequence[Held], owner_nonce: int, manager_nonce: int) -> bytes:
    """Of `held`, which is in order: the hash of its MessagePack, each number as short as it goes,
    in one conversation.
    """
    key = owner_nonce.to_bytes(_NONCE_BYTES, "big") + manager_nonce.to_bytes(_NONCE_BYTES, "big")
    return blake2b(_packed(held), key=key, digest_size=FINGERPRINT_BYTES).digest()
