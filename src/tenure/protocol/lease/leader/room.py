"""Whether a pool has room for what is asked of it. How much it has, `lease.limits` says."""

from collections.abc import Iterable

from tenure.base.keys import HASHED_KEY_BYTES, Key
from tenure.protocol.lease.limits import (
    BOUND_BYTES_PER_TABLE,
    OWNER_CHARACTERS_PER_POOL,
    OWNERS_PER_POOL,
    RANGES_PER_TABLE,
)
from tenure.protocol.lease.messages import Join, LeaseRequest
from tenure.protocol.lease.table import LeaseTable

FULL = (
    f"the pool is full: it has {OWNERS_PER_POOL} owners, or their names and addresses have "
    f"{OWNER_CHARACTERS_PER_POOL} characters; use more and smaller pools"
)
TOO_FINE = "it lists more or longer ranges than any table has; it joins anew"
"""What whoever asks for more is told."""
LONGEST_HASHED_BOUND = HASHED_KEY_BYTES + 1
"""That of the range of a single key."""


def is_full_for(table: LeaseTable, message: Join) -> bool:
    """Whether the pool cannot take one more owner."""
    characters = table.characters + len(message.name) + len(message.address)
    return len(table.members) >= OWNERS_PER_POOL or characters > OWNER_CHARACTERS_PER_POOL


def cuts_too_much(table: LeaseTable, message: LeaseRequest) -> bool:
    """Whether to take back what the request does not list would cut the table into too many
    ranges, or at bounds that are too long. What owners are told never leads to this.
    """
    ranges = [*(each.range for each in message.held), *(each.range for each in message.copies)]
    bounds = [bound for each in ranges for bound in (each.start, each.end) if bound]
    if table.kind == "hashed":
        if any(len(bound) > LONGEST_HASHED_BOUND for bound in bounds):
            return True
        if len(table.rights) + len(bounds) <= RANGES_PER_TABLE:
            return False
    starts = dict.fromkeys([*table.rights.starts(), *bounds])
    return len(starts) > RANGES_PER_TABLE or _bytes(starts) > BOUND_BYTES_PER_TABLE


def _bytes(bounds: Iterable[Key]) -> int:
    return sum(map(len, bounds))
