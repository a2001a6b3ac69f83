"""Every length that a peer can choose, with a limit and its reason.

Limits of single fields (names, addresses, texts) are beside the messages, that of a key beside
keys; here are those that a type cannot express. They bound how much a peer can make this side
allocate: bytes are counted before they are decoded, and a decoded message is a small multiple of
its bytes.
"""

from tenure.protocol.lease.limits import OWNERS_PER_POOL, RANGES_PER_TABLE

MIB = 1 << 20

RANGES_PER_MESSAGE = RANGES_PER_TABLE
"""Enough for a whole table, or for what its last living owner holds."""

OWNERS_PER_MESSAGE = OWNERS_PER_POOL
"""Enough for every owner of a table."""

LABELS_PER_OWNER = 64
LABEL_CHARACTERS = 200
"""Labels say where an owner runs (zone, version, host); they are repeated in every record of it."""


KEYS_PER_REPORT = 1 << 8
"""Hot keys: eight times as many as owners report today. A manager keeps them for a while."""

MESSAGE_BYTES = 64 * MIB
"""A message from a manager. A table of RANGES_PER_MESSAGE takes 6 MiB in a hashed pool, and fits in
an ordered one while its bounds are 200 bytes on average.
"""

REQUEST_BYTES = 16 * MIB
"""A message to a manager, which many strangers can reach. RANGES_PER_MESSAGE take 4 MiB in a hashed
pool, and fit in an ordered one while their bounds are 50 bytes on average.
"""

CHUNK_BYTES = 4 * MIB
"""A chunk of state from owner to owner. A receiver has a handful of chunks for each of a handful of
ranges in memory. A sender encodes one in the application's event loop, which takes some
milliseconds.
"""

HAND_OFF_BYTES = CHUNK_BYTES + 16 * 1024
"""A message from owner to owner: a chunk, or the offer of a range with its names and bounds."""
