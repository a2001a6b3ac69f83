"""Every length that a peer can choose, with a limit and its reason.

The types of messages have the limits of their fields, so that none is decoded beyond it; here are
those of whole messages. They bound how much a peer can make this side
allocate: bytes are counted before they are decoded, and a decoded message is a small multiple of
its bytes.
"""

from tenure.protocol.lease.limits import CHUNK_BYTES, RANGES_PER_TABLE

MIB = 1 << 20

RANGES_PER_MESSAGE = RANGES_PER_TABLE
"""Enough for a whole table, or for what its last living owner holds."""

MESSAGE_BYTES = 64 * MIB
"""A message from a manager. A table of RANGES_PER_MESSAGE takes 6 MiB in a hashed pool, and fits in
an ordered one while its bounds are 200 bytes on average.
"""

REQUEST_BYTES = 16 * MIB
"""A message to a manager, which many strangers can reach. RANGES_PER_MESSAGE take 4 MiB in a hashed
pool, and fit in an ordered one while their bounds are 50 bytes on average.
"""

LOOKUP_BYTES = 16 * 1024
"""A message of a lookup to a manager: the name of a pool, and some numbers."""

HAND_OFF_BYTES = CHUNK_BYTES + 16 * 1024
"""A message from owner to owner: a chunk, or the offer of a range with its names and bounds."""

INSPECTION_BYTES = 2 * MIB
"""A question about entities, or its answer: renewals follow on the same connection."""
