"""A world of leases in which users' programs run, and somebody who uses them.

Its managers, their journal and operator, its faults and checkers are those of every world of
leases; the checkers see what the programs' owners believe. The pools are those that the programs
name.
"""

import gc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.timing import DEFAULT, Timing
from tenure.sim.app.clients import LibraryLookup, LibraryOwner
from tenure.sim.app.links import ProgramLinks
from tenure.sim.app.processes import AppProcess, Main, UserProcess
from tenure.sim.app.site import AppSite
from tenure.sim.app.strikes import FAULTS, AppStrikes
from tenure.sim.journal import waited_out
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.process import SimProcess
from tenure.sim.lease.managed_world import ManagedWorld
from tenure.sim.lease.processes import OwnerParty
from tenure.sim.lease.strikes import LeaseStrikes
from tenure.sim.lease.trial import ManagedTrial

USERS = "users"
"""The slot of who uses the programs: nothing goes wrong with it."""


class AppTrial(ManagedTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed."""

    processes: int = 3
    timing: Timing = DEFAULT
    spare_owners: int = 1
    journal: str | None = "durable"
    """The journal. Without one, a manager first waits out the longest hold, and programs wait with
    it.
    """
    faults: tuple[str, ...] = FAULTS.kinds


class AppWorld(ManagedWorld, AppSite):
    """Everything in one run."""

    faults_there_are: ClassVar[FaultTable] = FAULTS
    trial: AppTrial

    def __init__(self, trial: AppTrial, main: Main) -> None:
        self.main = main
        """The code that the programs run."""
        self.failure: Exception | None = None
        self.past: list[AppProcess] = []
        """Every program that ever ran."""
        super().__init__(trial)
        self.links = ProgramLinks(self)
        self.pools, self.kinds = (), {}  # programs name the pools
        self.journal = waited_out(self.random, self._on_commit)

    def make_strikes(self) -> LeaseStrikes:
        """The faults that strike at times of their own."""
        return AppStrikes(self, self.clocks, self.operator, self.spare_slots())

    # --- ending ---

    def fail(self, error: Exception) -> None:
        self.failure = self.failure or error

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def abandon(self) -> None:
        """The run is over: no program runs any more."""
        for process in self.past:
            process.alive = False
        # What is left of them in cycles ends now, too, and nobody needs the errors that it raises
        # then.
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            for process in self.past:
                process.loop.abandon()
            self.past.clear()
            self.slots.clear()
            gc.collect()
        finally:
            sys.unraisablehook = hook

    # --- processes ---

    def first_slots(self) -> Iterable[str]:
        """Every slot except those of the spare programs."""
        return (*self.manager_slots, *(f"p{i}" for i in range(self.trial.processes)))

    def spare_slots(self) -> list[str]:
        """The slots of programs that come in bursts, and leave again."""
        first = self.trial.processes
        return [f"p{i}" for i in range(first, first + self.trial.spare_owners)]

    def make(self, slot: str) -> SimProcess:
        """A new life at a slot."""
        if slot[0] == "m":
            return self.make_manager(slot)
        return self.make_program(slot, self.main, self.clock_at(slot))

    def make_program(self, slot: str, main: Main, clock: SimClock) -> AppProcess:
        """A process that runs `main`."""
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        process = AppProcess(self, slot, clock, on_host, main)
        self.past.append(process)
        return process

    def use(self, main: Main) -> AppProcess:
        """The user of the programs: a process with a perfect clock, which no fault strikes."""
        on_host = self.hosts.begin(self.hosts.place_of(USERS), self.now)
        process = UserProcess(self, USERS, SimClock(0), on_host, main)
        self.past.append(process)
        process.start()
        return process

    def programs(self) -> list[AppProcess]:
        """The programs that are alive."""
        found = (each for each in self.slots.values() if isinstance(each, AppProcess))
        return [process for process in found if process.alive]

    def begin_client(self, client: SimProcess) -> None:
        assert isinstance(client, LibraryOwner | LibraryLookup)
        self._clients[client.uid] = client
        pool = client.engine.config.pool
        if pool not in self.pools:
            self.pools += (pool,)
            self.checkers.holders[pool] = RangeMap(None)
        if isinstance(client, LibraryOwner):
            self.kinds[pool] = client.engine.config.kind or "hashed"

    def on_step(self, process: SimProcess) -> None:
        """Check nothing: a program has no machine that could contradict itself."""
        if not isinstance(process, AppProcess):
            super().on_step(process)

    def on_killed(self, process: SimProcess) -> None:
        """The process's connections are gone, and its owners no longer believe anything."""
        if not isinstance(process, AppProcess):
            super().on_killed(process)
            return
        for client in process.clients:
            if client.alive:
                client.alive = False
                self.network.on_killed(client)
            if isinstance(client, LibraryOwner):
                client.end_belief()
        self.links.break_off(process)
        self.hosts.reap(process.on_host)

    def owners(self) -> list[OwnerParty]:
        """The owners of all programs."""
        return [owner for process in self.programs() for owner in process.owners()]

    def clients(self) -> list[SimProcess]:
        """The owners and lookups of all programs."""
        return [each for process in self.programs() for each in process.clients if each.alive]

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """Managers, then programs twice: as owners and as lookups."""
        return self.managers(), self.programs(), self.programs()

    def owner_at(self, address: str) -> OwnerParty | None:
        """The owner that serves at an address, if that very process is still there."""
        for owner in self.owners():
            if owner.machine.view().config.address == address:
                return owner
        return None

    # --- what came of it ---

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw each outcome."""
        return {}


def run_in(world: AppWorld, tell: Callable[[int], None] = lambda _: None) -> None:
    """Run the world, and leave nothing of its programs behind."""
    try:
        world.run(tell)
    finally:
        world.abandon()
