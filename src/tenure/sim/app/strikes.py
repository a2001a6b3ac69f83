"""The faults of processes that run users' programs: all those of owners and lookups.

A program that is asked to leave does so on its own, as at SIGTERM, and is killed if that takes too
long. Two faults that only a simulated owner can have are left out: starting under another's name,
and going on without its first thread.
"""

from collections.abc import Callable

from tenure.sim.app.processes import AppProcess
from tenure.sim.app.site import AppSite
from tenure.sim.kernel.faults import Fault, FaultTable
from tenure.sim.lease.faults import HAND_OFF_FAULTS
from tenure.sim.lease.strikes import FAULTS as LEASE_FAULTS
from tenure.sim.lease.strikes import LeaseStrikes

LEFT_OUT = (
    *("two of one name", "first thread ended", "callback hangs", "load"),
    "journal put back",  # nothing is promised until this is noticed
)
KILLED_AFTER_TERMS = 3.0
"""The time from being asked to leave until being killed: the grace that supervisors give."""


class AppStrikes(LeaseStrikes):
    """The faults of managers and programs."""

    site: AppSite

    def _programs(self) -> list[AppProcess]:
        return [each for each in self.site.processes() if isinstance(each, AppProcess)]

    def crash_of_an_owner(self) -> None:
        """Kill a program; another takes its place."""
        self.crash(self._programs())

    crash_of_a_lookup = crash_of_an_owner

    def leaving(self) -> None:
        """Ask one program to end, or all of them, as a deployment does."""
        there = [each for each in self._programs() if each.alive and not each.is_frozen]
        together = self.random.choice((1, 1, 2, len(there)))
        for process in self.random.sample(there, min(together, len(there))):
            self.site.tell(process.slot, "is asked to leave")
            process.ask_to_leave()
            self.site.at(
                self.site.now + self.span(KILLED_AFTER_TERMS, KILLED_AFTER_TERMS),
                self._kill,
                process,
            )

    def _kill(self, process: AppProcess) -> None:
        if process.alive:
            self.site.bring_down(process)

    def steering(self) -> None:
        """Steer, once there is a pool."""
        if self.site.pools:
            super().steering()

    def connection_lost(self) -> None:
        """Break a living program's connections to the managers."""
        process = self.any_of(self._programs())
        if process is not None:
            for client in process.clients:
                if client.alive:
                    self.network.lose_connections(client)

    def lookup_away(self) -> None:
        """Cut a lookup off for longer than changes are kept: it must not take what it missed for
        nothing.
        """
        process = self.any_of(self._programs())
        if process is not None:
            kept_ns = self.site.timing.keep_changes_ns
            process.freeze(round(kept_ns * (0.9 + 0.6 * self.random.random())))


def _here(fault: Fault) -> Fault:
    """The same fault, striking programs."""
    strike = fault.strike
    return fault if strike is None else fault._replace(strike=_by_name(strike.__name__))


def _by_name(name: str) -> Callable[[AppStrikes], None]:
    return lambda strikes: getattr(strikes, name)()


FAULTS = FaultTable(
    tuple(_here(fault) for fault in LEASE_FAULTS.faults if fault.name not in LEFT_OUT),
    {
        name: tuple(_here(fault) for fault in faults if fault.name not in LEFT_OUT)
        for name, faults in LEASE_FAULTS.aliases.items()
        if name not in ("all", "none", "hand-off")
    },
    HAND_OFF_FAULTS,  # programs hand over by links, and links break
)
