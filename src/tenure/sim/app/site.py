"""A world in which programs run, as everything in it sees it."""

from abc import abstractmethod

from tenure.sim.app.links import ProgramLinks
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.hosts import HostProcess
from tenure.sim.kernel.loop_process import LoopProcess
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.lease.processes import LeaseSite


class AppSite(LeaseSite):
    """A world of leases in which programs run."""

    links: ProgramLinks
    manager_slots: tuple[str, ...]

    @abstractmethod
    def begin_client(self, client: SimProcess) -> None:
        """An owner or a lookup of the library begins."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """End the run with this error, as soon as no code of a program is on the stack."""

    @abstractmethod
    def raise_failure(self) -> None:
        """Raise the error that was passed to `fail`, if any."""


class ClientHost(LoopProcess):
    """A process in which clients of the library live."""

    site: AppSite

    def __init__(self, site: AppSite, slot: str, clock: SimClock, on_host: HostProcess) -> None:
        super().__init__(site, slot, clock)
        self.on_host = on_host
        self.random = random_for(site.random)

    @abstractmethod
    def begin_client(self, client: SimProcess) -> None:
        """An owner or a lookup begins in this process."""

    @abstractmethod
    def ask_to_leave(self) -> None:
        """Ask the process to end, as SIGTERM does."""
