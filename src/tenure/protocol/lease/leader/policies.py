"""The available policies, by name, for each kind of pool. A pool begins with the first one."""

from collections.abc import Callable, Mapping

from tenure.base.keys import PoolKind
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.policy import Policy
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.tuning import ORDERED
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.table import LeaseTable

PolicyMaker = Callable[[LeaseTable, str], Policy]
"""A function that makes a policy from a pool's table and the name of the policy that was chosen for
the pool, which is empty if none was.
"""

POLICIES: Mapping[PoolKind, Mapping[str, Callable[[LeaseTable], Policy]]] = {
    "hashed": {"weighted": lambda _: Weighted(), "ring": lambda _: Ring()},
    "ordered": {
        "weighted": lambda table: Weighted(ORDERED, table.split_points),
        "deal": lambda table: Deal(table.split_points),
    },
}


def policy_name(table: LeaseTable, chosen: str) -> str:
    """The name of the chosen policy. If none was chosen, or its name is unknown, that of the kind's
    first policy: a later tenure may have chosen one that this one does not have.
    """
    names = POLICIES[table.kind]
    return chosen if chosen in names else next(iter(names))


def chosen_policy(table: LeaseTable, chosen: str) -> Policy:
    """The policy of that name, or the one with which pools of this kind begin (P12)."""
    return POLICIES[table.kind][policy_name(table, chosen)](table)
