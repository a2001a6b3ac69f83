"""The available policies, by name, for each kind of pool. A pool begins with the first one."""

from collections.abc import Callable, Mapping
from functools import partial

from tenure.base.keys import PoolKind
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.policy import Plan, Policy, PolicyFailed, Situation
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
    """The name of the chosen policy. If none was chosen, that of the kind's first policy."""
    return chosen or next(iter(POLICIES[table.kind]))


def chosen_policy(table: LeaseTable, chosen: str) -> Policy:
    """The policy of that name, or the one with which pools of this kind begin (P12).

    A name that is unknown here has a policy that only raises: an earlier leader may know one that
    this one does not. Then the pool stays as it is (`Staying`), and everybody is told.
    """
    name = policy_name(table, chosen)
    make = POLICIES[table.kind].get(name)
    return UnknownPolicy(name) if make is None else make(table)


def with_outside(
    outside: Mapping[str, Callable[[LeaseTable], Policy]], make: PolicyMaker
) -> PolicyMaker:
    """Make the policies of `outside` too."""
    return partial(_made, outside, make)  # and no closure: simulated worlds are copied


def _made(
    outside: Mapping[str, Callable[[LeaseTable], Policy]],
    make: PolicyMaker,
    table: LeaseTable,
    chosen: str,
) -> Policy:
    return outside[chosen](table) if chosen in outside else make(table, chosen)


class UnknownPolicy:
    """Stands for a policy that this manager does not have."""

    follows_load = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, situation: Situation) -> Plan:
        """Raise PolicyFailed."""
        raise PolicyFailed(
            f"this manager does not know {self.name}; where it is from outside, start the manager "
            f"with --policies {self.name}"
        )
