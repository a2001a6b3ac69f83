"""A world of leases in which users' programs run, and somebody who uses them.

It is the world of `sim/lease`, with programs instead of simulated owners and lookups: the same
managers, journal, operator and faults, and the same checkers, which see what the programs' owners
believe. The pools are those that the programs name.
"""

import gc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.timing import DEFAULT, Timing
from tenure.sim.app.clients import LibraryLookup, LibraryOwner
from tenure.sim.app.links import ProgramLinks
from tenure.sim.app.processes import AppProcess, Main, UserProcess
from tenure.sim.app.site import AppSite
from tenure.sim.app.strikes import FAULTS, AppStrikes
from tenure.sim.journal import waited_out
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.process import SimProcess
from tenure.sim.lease.processes import LookupProcess, ManagerProcess, OwnerProcess
from tenure.sim.lease.trial import Trial
from tenure.sim.lease.world import LeaseWorld

USERS = "users"
"""The slot of who uses the programs: nothing goes wrong with it."""


class AppTrial(Trial, frozen=True, kw_only=True):
    """What one seed runs."""

    processes: int = 3
    timing: Timing = DEFAULT
    spare_owners: int = 1
    journal: str | None = "durable"
    """Without a journal a manager begins by waiting out the longest hold, and so do programs."""
    faults: tuple[str, ...] = FAULTS.kinds


class AppWorld(LeaseWorld, AppSite):
    """Everything there is in one run."""

    trial: AppTrial

    def __init__(self, trial: AppTrial, main: Main) -> None:
        self.main = main
        """What the programs run."""
        self.failure: Exception | None = None
        self.past: list[AppProcess] = []
        """Every program that ever ran."""
        super().__init__(trial)
        self.table = FAULTS
        self.links = ProgramLinks(self)
        self.strikes = AppStrikes(
            self, self.clocks, self.operator, self.traffic, self.spare_slots()
        )
        self.pools, self.kinds = (), {}  # programs name them
        self.journal = waited_out(self.random, self._on_commit)

    # --- ending ---

    def fail(self, error: Exception) -> None:
        """See `AppSite`."""
        self.failure = self.failure or error

    def raise_failure(self) -> None:
        """See `AppSite`."""
        if self.failure is not None:
            raise self.failure

    def abandon(self) -> None:
        """The run is over: no program runs any longer."""
        for process in self.past:
            process.alive = False
        # What is left of them in circles ends now too, and what it says at its end concerns nobody.
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
        """Everybody but the spare programs."""
        return (*self.manager_slots, *(f"p{i}" for i in range(self.trial.processes)))

    def spare_slots(self) -> list[str]:
        """The programs that come in bursts, and go."""
        first = self.trial.processes
        return [f"p{i}" for i in range(first, first + self.trial.spare_owners)]

    def make(self, slot: str) -> SimProcess:
        """A new life at a slot."""
        if slot[0] == "m":
            return super().make(slot)
        return self.make_program(slot, self.main, self.clock_at(slot))

    def make_program(self, slot: str, main: Main, clock: SimClock) -> AppProcess:
        """A process that runs `main`."""
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        process = AppProcess(self, slot, clock, on_host, main)
        self.past.append(process)
        return process

    def use(self, main: Main) -> AppProcess:
        """Whoever uses the programs: a process with a perfect clock, with which nothing goes
        wrong.
        """
        on_host = self.hosts.begin(self.hosts.place_of(USERS), self.now)
        process = UserProcess(self, USERS, SimClock(0), on_host, main)
        self.past.append(process)
        process.start()
        return process

    def programs(self) -> list[AppProcess]:
        """Those that live."""
        found = (each for each in self.slots.values() if isinstance(each, AppProcess))
        return [process for process in found if process.alive]

    def begin_client(self, client: SimProcess) -> None:
        """See `AppSite`."""
        assert isinstance(client, LibraryOwner | LibraryLookup)
        self._clients[client.uid] = client
        pool = client.engine.config.pool
        if pool not in self.pools:
            self.pools += (pool,)
            self.checkers.holders[pool] = RangeMap(None)
        if isinstance(client, LibraryOwner):
            self.kinds[pool] = client.engine.config.kind or "hashed"

    def on_step(self, process: SimProcess) -> None:
        """A program has no machine that contradicts itself."""
        if not isinstance(process, AppProcess):
            super().on_step(process)

    def on_killed(self, process: SimProcess) -> None:
        """Its connections are gone, and what its owners believed ends with it."""
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

    def owners(self) -> list[OwnerProcess]:
        """The owners of all programs."""
        return [owner for process in self.programs() for owner in process.owners()]

    def lookups(self) -> list[LookupProcess]:
        """None that the checkers could look into: programs are judged by what they answer."""
        return []

    def clients(self) -> list[SimProcess]:
        """The owners and lookups of all programs."""
        return [each for process in self.programs() for each in process.clients if each.alive]

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """Managers, and programs twice: as owners, and as lookups."""
        return self.managers(), self.programs(), self.programs()

    def peers(self, process: SimProcess) -> Sequence[SimProcess]:
        """Clients have connections to managers."""
        return self.clients() if isinstance(process, ManagerProcess) else self.managers()

    def owner_at(self, address: str) -> OwnerProcess | None:
        """The owner that serves at an address, if that very process is still there."""
        for owner in self.owners():
            if owner.machine.view().config.address == address:
                return owner
        return None

    # --- healing ---

    def when_well(self, left_ns: int) -> None:
        """Drills are for simulated owners."""
        super().when_well(0)

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw what."""
        return {}


def run_in(world: AppWorld, tell: Callable[[int], None] = lambda _: None) -> None:
    """Run the world, and leave nothing of its programs."""
    try:
        world.run(tell)
    finally:
        world.abandon()
