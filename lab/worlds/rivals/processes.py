"""Managers of two journals, and owners between them."""

from abc import abstractmethod
from typing import Any

from lab.worlds.lease.processes import OwnerProcess, OwnerSite
from tenure.base.noted import Noted
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.rivals import LOOKS_KEPT, look_ns
from tenure.protocol.lease.owner.noted import OwnerKind
from tenure.protocol.lease.records import Changed
from tenure.protocol.log.journal import Append
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.processes import ManagerProcess


class RivalsSite(OwnerSite):
    """The world, as its processes see it."""

    @abstractmethod
    def look_around(self, manager: "RivalManager", action: manager_events.LookAround) -> None:
        """A manager asks the others whether they lead."""

    @abstractmethod
    def two_leaders_told(self, owner: OwnerProcess) -> None:
        """An owner says that two journals have living leaders."""


class RivalManager(ManagerProcess):
    """A manager of one of the two journals."""

    site: RivalsSite

    def __init__(self, contents: LeaseContents, *args: Any) -> None:
        super().__init__(*args)
        self.contents = contents
        self.journal = contents.journal
        self.looked_at: int | None = None
        """When the last look was sent that was answered."""

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        if isinstance(action, manager_events.LookAround):
            self.site.look_around(self, action)
            return
        if isinstance(action, Append):
            self._check_has_looked(action)
        super().perform(action)

    def post(self, event: Any) -> None:
        """Take note of an answered look as soon as the machine is given it."""
        if isinstance(event, manager_events.OthersSeen):
            self.looked_at = max(self.looked_at or 0, event.asked_at)
        super().post(event)

    def _check_has_looked(self, action: Append[Any]) -> None:
        """P25: a leader that was stopped looks before it grants."""
        grants = any(
            isinstance(each, Changed) and any(entry.owner for entry in each.entries)
            for each in action.records
        )
        config = self.machine.config
        if not grants or not config.others:
            return
        counts_until = (self.looked_at or 0) + LOOKS_KEPT * look_ns(config.timing)
        if self.looked_at is None or self.clock.local(self.decided_at) >= counts_until:
            raise Violation("P25: granted without a look", f"{self.slot} at {self.decided_at}")


class RivalOwner(OwnerProcess):
    """An owner that may list managers of both."""

    site: RivalsSite

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        if isinstance(action, Noted) and action.kind is OwnerKind.TWO_LEADERS:
            self.site.two_leaders_told(self)
        super().perform(action)
