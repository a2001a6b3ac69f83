"""Whether a pool can take what is asked of it. How much room it has, `lease.limits` says."""

from collections.abc import Iterable

from tenure.base.keys import HASHED_KEY_BYTES, Key
from tenure.base.names import shown, wrong_with_name
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


def wrong_with_join(table: LeaseTable, message: Join) -> str | None:
    """Why the pool cannot take this owner; None where it can."""
    why = wrong_with_name(message.name)
    if why is not None:
        return f"{shown(message.name)} cannot be an owner's name: {why}"
    characters = table.characters + len(message.name) + len(message.address)
    is_full = len(table.members) >= OWNERS_PER_POOL or characters > OWNER_CHARACTERS_PER_POOL
    return FULL if is_full else None


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
