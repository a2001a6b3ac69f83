"""The secrets of orders, by which a source shows its taker that the manager has ordered it (P13).

Anybody who can reach an owner and read the lease table knows everything else that an offer
contains. Only the two owners are told the secret, in the answers to their own requests. It is
computed from the order and the journal's secret, so a leader has nothing to remember, and its
successor computes the same secret: a hand-off that is under way at a takeover goes on.
"""

from hashlib import blake2b

import msgspec

from tenure.protocol.lease.messages import HandOff

NO_SECRET = 0
_SECRET_BYTES = 8
_HIGHEST = (1 << 63) - 1


def order_secret(order: HandOff, source: int, journal: int, secret: bytes) -> int:
    """The secret of an order, known only to those who are told it; none if the journal has no
    secret.
    """
    if not secret:
        return NO_SECRET
    named = journal, source, order.taker, order.number, order.start, order.end
    digest = blake2b(
        msgspec.msgpack.encode(named), key=secret, digest_size=_SECRET_BYTES, person=b"hand-off"
    ).digest()
    return 1 + int.from_bytes(digest, "big") % _HIGHEST
