"""The policies from outside that a manager may run: those that it was started with, by name.

Whoever names a module for a manager to import has it run that code. So a command of an operator
only chooses among the names with which the manager was started (`policies`): `module:Class`, or an
entry point of the group `tenure.policies`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import entry_points

from tenure.base.names import shown
from tenure.errors import ConfigurationError
from tenure.manager.policy_process import PolicyProcess
from tenure.protocol.balance.outside import Outside
from tenure.protocol.balance.policy import Policy
from tenure.protocol.lease.leader.policies import POLICIES
from tenure.protocol.lease.table import LeaseTable

GROUP = "tenure.policies"
TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
LONGEST = 200
"""The most characters of a name: the journal keeps it."""


class OutsidePolicies:
    """The policies of one manager, each in a process of its own for each pool that has it."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self.makers = {name: partial(self._make, target) for name, target in targets.items()}
        self._processes: dict[tuple[str, str], PolicyProcess] = {}

    def _make(self, target: str, table: LeaseTable) -> Policy:
        of = table.pool, target
        if of not in self._processes:
            self._processes[of] = PolicyProcess(target)
        return Outside(self._processes[of])

    def close(self) -> None:
        """End all processes."""
        for each in self._processes.values():
            each.close()


def targets_of(names: Iterable[str]) -> dict[str, str]:
    """What each of these names stands for, as `module:Class`. Nothing is imported.

    Raises ConfigurationError for a name that is neither that nor an entry point.
    """
    there = {each.name: each.value for each in entry_points(group=GROUP)}
    return {name: _target(name, there) for name in names}


def _target(name: str, there: dict[str, str]) -> str:
    if any(name in ours for ours in POLICIES.values()):
        raise ConfigurationError(f"the policy {name} is tenure's own: it need not be allowed")
    target = there.get(name, name)
    if len(name) <= LONGEST and TARGET.fullmatch(target):
        return target
    installed = ", ".join(sorted(there)) or "none"
    raise ConfigurationError(
        f"policies has {shown(name)}, which is neither module:Class nor an entry point of the "
        f"group {GROUP}; installed are: {installed}"
    )
