"""A world of programs, and in each of them users, who count what they see."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from lab.worlds.entity.checkers import Told
from lab.worlds.entity.faults import LINK_BREAKS, EntityStrikes
from lab.worlds.entity.store import SimDatabase, SimStore
from lab.worlds.run import Outcome, outcome_of
from tenure.base.instants import SECOND_NS
from tenure.client.environment import SURROUNDING
from tenure.sim.app.clients import AppEnvironment
from tenure.sim.app.processes import AppProcess, Main
from tenure.sim.app.site import AppSite, ClientHost
from tenure.sim.app.world import AppTrial, AppWorld
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.cores import Progress
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.hosts import HostProcess
from tenure.transport.channels import ChannelLost

FIRST_WALL = 1_600_000_000
"""Seconds: the wall clocks of all hosts are kept by a time server, until it is wrong."""


class ProgramUsers(Protocol):
    """The users of one process."""

    async def run(self) -> None:
        """Use the process until this is cancelled."""
        ...


def wall_of(process: ClientHost) -> float:
    """The time that the wall clock of a process's host shows."""
    return FIRST_WALL + (process.site.now - process.clock.wall_behind) / SECOND_NS


class UsedEnvironment(AppEnvironment):
    """An environment in which wall clocks agree."""

    def wall(self) -> float:
        return wall_of(self._process)


class UsedProcess(AppProcess):
    """One life of one program."""

    def __init__(
        self, site: AppSite, slot: str, clock: SimClock, on_host: HostProcess, main: Main
    ) -> None:
        super().__init__(site, slot, clock, on_host, main)
        self.told = Told(1 << 62, f"{slot}.{self.uid}")
        self.users: Any = None
        """The state of `ProgramUsers`, once what they use is entered."""
        self.loop.context.run(SURROUNDING.set, lambda: UsedEnvironment(self))

    async def serve(self, users: ProgramUsers, left: asyncio.Event) -> None:
        """Run users until the process is asked to leave."""
        self.told.since = self.site.now
        self.users = users
        using = asyncio.ensure_future(users.run())
        leaving = asyncio.ensure_future(left.wait())
        done, _ = await asyncio.wait((using, leaving), return_when=asyncio.FIRST_COMPLETED)
        if using in done:
            using.result()
        using.cancel()


class UsedWorld(AppWorld):
    """Everything in one run."""

    faults_there_are: ClassVar[FaultTable]
    process_type: ClassVar[type[UsedProcess]]
    database: SimDatabase | None = None
    is_quiet = False
    """Whether users wait."""

    def __init__(self, trial: AppTrial, program: Main) -> None:
        super().__init__(trial, program)
        self.links.on_message = self._break_some
        self.term = self.timing.term_ns / SECOND_NS
        self.counts: Counter[str] = Counter()

    def make_strikes(self) -> EntityStrikes:
        """The faults that strike at times of their own."""
        return EntityStrikes(self, self.clocks, self.operator, self.spare_slots())

    def _break_some(self, _: bytes) -> None:
        if self.faults.strikes(LINK_BREAKS):
            raise ChannelLost("it broke in the middle")

    def opener(self, process: Any) -> Any:
        """Make what opens the store in a process."""

        async def make(pool: str, kind: Any) -> SimStore:
            assert self.database is not None
            store = SimStore(process, self.database, pool, kind)
            await store.open()
            return store

        return make

    def fail(self, error: Exception) -> None:
        """See `AppSite`. If code of this world raises, it has found a broken promise."""
        super().fail(error if isinstance(error, Violation) else Violation("calls", repr(error)))

    def count(self, what: str) -> None:
        """Count what users saw."""
        self.counts[what] += 1

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw each outcome."""
        return self.counts

    def make_program(self, slot: str, main: Main, clock: SimClock) -> AppProcess:
        """A process that runs `main`."""
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        process = self.process_type(self, slot, clock, on_host, main)
        self.past.append(process)
        return process

    def there(self) -> list[Any]:
        """The programs of `process_type` that are alive and not about to end."""
        found = [each for each in self.programs() if isinstance(each, self.process_type)]
        return [each for each in found if not each.is_leaving]

    def heal(self) -> None:
        """Heal. What users then ask takes minutes, in which no journal may be restored that was
        copied while faults struck: managers give nothing for a term afterwards.
        """
        super().heal()
        if self.now < self.restored_by:
            self.run_until(self.restored_by + self.timing.term_ns)  # managers notice meanwhile
            super().heal()

    def not_well(self) -> str | None:
        """What is still missing before every key has an owner."""
        for each in self.there():
            if each.users is None:
                return f"what is in {each.slot} is not entered"
        return super().not_well()


def run_used(make: Callable[[], UsedWorld], tell: Progress) -> Outcome:
    """Run such a world, without the logs of what fails in it on purpose. Coroutines that end
    together with the world do so outside their contexts, which OpenTelemetry would log.
    """
    loggers = [logging.getLogger(name) for name in ("tenure", "opentelemetry.context")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    world = make()
    try:
        return outcome_of(world.trial.seed, world, tell)
    finally:
        world.abandon()
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
