"""The policies there are, by name, for each kind of pool. The first is the one it begins with."""

from collections.abc import Callable, Mapping

from leasehold.base.keys import PoolKind
from leasehold.protocol.balance.deal import Deal
from leasehold.protocol.balance.policy import Policy
from leasehold.protocol.balance.ring import Ring
from leasehold.protocol.balance.weighted import Weighted
from leasehold.protocol.lease.table import LeaseTable

PolicyMaker = Callable[[LeaseTable], Policy]

POLICIES: Mapping[PoolKind, Mapping[str, PolicyMaker]] = {
    "hashed": {"weighted": lambda _: Weighted(), "ring": lambda _: Ring()},
    "ordered": {"deal": lambda table: Deal(table.split_points)},
}


def default_policy(table: LeaseTable) -> Policy:
    """The one that a pool of this kind begins with (P12)."""
    return next(iter(POLICIES[table.kind].values()))(table)


def policy_name(table: LeaseTable, chosen: str) -> str:
    """What the chosen policy is called; that of the kind where none was chosen, or it is unknown:
    a later leasehold may have chosen one that this one does not have.
    """
    names = POLICIES[table.kind]
    return chosen if chosen in names else next(iter(names))


def chosen_policy(table: LeaseTable, chosen: str, default: PolicyMaker) -> Policy:
    """The policy of the name `chosen`, `default`'s where there is none."""
    return POLICIES[table.kind].get(chosen, default)(table)
