"""Whether a pool has room for a request. `lease.limits` says how much room there is."""

from collections.abc import Iterable, Sequence

from tenure.base.keys import HASHED_KEY_BYTES, Key
from tenure.base.names import shown, wrong_with_name
from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.limits import (
    BOUND_BYTES_PER_TABLE,
    CLASS_LABEL,
    OWNER_CHARACTERS_PER_POOL,
    OWNERS_PER_POOL,
    RANGES_PER_TABLE,
)
from tenure.protocol.lease.messages import Join, Leased, LeaseRequest, RefusalReason
from tenure.protocol.lease.range_item import RangeItem
from tenure.protocol.lease.table import LeaseTable, characters_of

FULL = (
    f"the pool is full: it has {OWNERS_PER_POOL} owners, or their names, addresses and labels have "
    f"{OWNER_CHARACTERS_PER_POOL} characters; use more and smaller pools"
)
TOO_FINE = "it lists more, longer or finer ranges than it was ever told; it joins anew"
"""The refusal of a request that asks for more."""
CUTS_PER_REQUEST = 1 << 12
"""The most bounds in a request that the leader has not heard of. Owners cut nothing by themselves,
so a leader meets at most some bounds of an earlier plan; and each that it takes costs it 0.1 ms."""
LONGEST_HASHED_BOUND = HASHED_KEY_BYTES + 1
"""The length of the end of a range of a single key."""


def wrong_with_join(table: LeaseTable, message: Join) -> tuple[RefusalReason, str] | None:
    """The reason why the pool cannot take this owner, in a word and in more; None if it can."""
    why = wrong_with_name(message.name)
    if why is not None:
        return "no_pool", f"{shown(message.name)} cannot be an owner's name: {why}"
    if (why := _of_another_class(table, message)) is not None:
        return "pool_kind", why
    characters = table.characters + characters_of(message)
    is_full = len(table.members) >= OWNERS_PER_POOL or characters > OWNER_CHARACTERS_PER_POOL
    return ("no_pool", FULL) if is_full else None


def _of_another_class(table: LeaseTable, message: Join) -> str | None:
    """The reason why the entities of this owner are not those of the pool; None if they may be. A
    key means one entity wherever it lives, so all its owners have the same class.
    """
    mine = message.labels.get(CLASS_LABEL)
    if mine is None:
        return None
    for member in table.members.values():
        theirs = member.labels.get(CLASS_LABEL, mine)
        if theirs != mine:
            return (
                f"the pool {message.pool!r} has entities of the class {shown(theirs)}, as at "
                f"{shown(member.address)}, and this process has {shown(mine)}: give each class a "
                f"pool of its own. If it is the same class under a new name, write "
                f"`class {mine}(..., name={theirs!r})` until all processes have the new one"
            )
    return None


def cuts_too_much(
    table: LeaseTable, plan: RangeMap[int], told: Sequence[Leased], message: LeaseRequest
) -> bool:
    """Whether taking back what the request does not list would cut the table into too many ranges,
    at bounds that are too long, or at too many new bounds. What owners are told never leads to
    this; `told` lists what this one was told last.
    """
    listed: tuple[RangeItem, ...] = (*message.held, *message.copies)
    bounds = [bound for each in listed for bound in (each.start, each.end) if bound]
    if len(bounds) > CUTS_PER_REQUEST:
        named = dict.fromkeys([*table.rights.starts(), *plan.starts(), *table.split_points])
        named.update((bound, None) for each in told for bound in (each.start, each.end) if bound)
        if sum(bound not in named for bound in dict.fromkeys(bounds)) > CUTS_PER_REQUEST:
            return True
    if table.kind == "hashed":
        if any(len(bound) > LONGEST_HASHED_BOUND for bound in bounds):
            return True
        if len(table.rights) + len(bounds) <= RANGES_PER_TABLE:
            return False
    starts = dict.fromkeys([*table.rights.starts(), *bounds])
    return len(starts) > RANGES_PER_TABLE or _bytes(starts) > BOUND_BYTES_PER_TABLE


def _bytes(bounds: Iterable[Key]) -> int:
    return sum(map(len, bounds))
