"""The faults of processes that run users' programs, in which owners and lookups live.

A program that is asked to leave does so on its own, as at SIGTERM, and is killed if that takes too
long.
"""

from tenure.sim.app.processes import AppProcess
from tenure.sim.app.site import AppSite
from tenure.sim.kernel.faults import (
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.strikes import PAUSE_PAST_THE_TERM, SHORT_PAUSE, SUSPEND, WALL_CLOCKS
from tenure.sim.lease.faults import HAND_OFF_FAULTS, JOURNAL_FAULTS, SHORTER_PRESET
from tenure.sim.lease.strikes import (
    BURST_OF_JOINS,
    CRASH_OF_A_MANAGER,
    CUTS,
    HOST_SUSPENDED,
    JOURNALS_CHANGED,
    LEADERS_END,
    LeaseStrikes,
)

KILLED_AFTER_TERMS = 3.0
"""The time from being asked to leave until being killed: the grace that supervisors give."""


class AppStrikes(LeaseStrikes):
    """The faults of managers and programs."""

    site: AppSite

    def _programs(self) -> list[AppProcess]:
        return [each for each in self.site.processes() if isinstance(each, AppProcess)]

    def crash_of_a_program(self) -> None:
        """Kill a program; another takes its place."""
        self.crash(self._programs())

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


CRASHES = (
    Fault("crash of an owner", terms_apart, AppStrikes.crash_of_a_program),
    CRASH_OF_A_MANAGER,
    Fault("crash of a lookup", terms_apart, AppStrikes.crash_of_a_program),
)
PAUSES = (SHORT_PAUSE, PAUSE_PAST_THE_TERM)
FAULTS = FaultTable(
    (
        *CRASHES,
        *PAUSES,
        SUSPEND,
        *CUTS,
        Fault("leaving", terms_apart, AppStrikes.leaving),
        BURST_OF_JOINS,
        *LEADERS_END,
        WALL_CLOCKS,
        Fault("connection lost", terms_apart, AppStrikes.connection_lost),
        Fault("steering", terms_apart, AppStrikes.steering),
        *JOURNALS_CHANGED,
        HOST_SUSPENDED,
        Fault("lookup away", terms_apart, AppStrikes.lookup_away),
        SHORTER_PRESET,
        *MESSAGE_FAULTS,
        *JOURNAL_FAULTS,
        *HAND_OFF_FAULTS,
        *POINT_FAULTS,
        LATE_TIMER,
        SKEW,
    ),
    {
        "crash": CRASHES,
        "pause": PAUSES,
        "cut": CUTS,
        "message": MESSAGE_FAULTS,
        "journal": (*JOURNAL_FAULTS, *JOURNALS_CHANGED),
        "point": POINT_FAULTS,
    },
    HAND_OFF_FAULTS,  # programs hand over by links, and links break
)
