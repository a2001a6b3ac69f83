"""How large a pool may grow, so that what is accepted can always be journaled, sent and read.

Whoever asks for more is refused when they ask: a leader that found out later, at its next snapshot,
would end, and so would each of its successors.
"""

from tenure.base.keys import KEY_BYTES

RANGES_PER_TABLE = 1 << 17
"""The paper's 2,000 owners with 64 virtual nodes each are 128,000 ranges."""

RANGES_PER_PLAN = RANGES_PER_TABLE * 15 // 16
"""Of the table and a plan laid over it: the rest is for what changes while a plan is made."""

BOUND_BYTES_PER_TABLE = 4 << 20
"""Of the bounds of an ordered pool's ranges. An owner that has all of them lists each bound twice,
and that request must stay below `wire.limits.REQUEST_BYTES`."""

OWNERS_PER_POOL = 1 << 15
"""Sixteen times the paper's 2,000, for pools of small processes."""

OWNER_CHARACTERS_PER_POOL = 4 << 20
"""Of names and addresses, all of which a snapshot for a lookup repeats: 128 for each owner of a
full pool, and 16 MiB where each character takes four bytes."""

SPLIT_POINTS_PER_POOL = 1 << 16
"""Half of all ranges: the rest is for what moves later."""

PINNED_KEY_BYTES = KEY_BYTES - 1
"""The range of one key ends at the key that follows it, which is a byte longer."""
