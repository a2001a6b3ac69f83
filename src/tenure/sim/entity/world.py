"""The world of entities: programs with `Entities` in them, and who uses them."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from tenure.base.instants import SECOND_NS
from tenure.base.ranges import KeyRange
from tenure.entities.entities import Entities
from tenure.sim.app.processes import AppProcess, Main
from tenure.sim.app.world import AppWorld
from tenure.sim.entity.checkers import EntityCheckers, Told
from tenure.sim.entity.entries import Shown
from tenure.sim.entity.faults import FAULTS, LINK_BREAKS, EntityStrikes
from tenure.sim.entity.ledger import OpsLedger
from tenure.sim.entity.site import EntitySite, LedgerProcess, wall_of
from tenure.sim.entity.store import SimDatabase, SimStore
from tenure.sim.entity.trial import EntityTrial
from tenure.sim.entity.users import LedgerUsers
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import FaultTable
from tenure.transport.channels import ChannelLost

POOL = "ledgers"
TURN, WAIT = 20.0, 15.0
QUIET_STEPS = 60


async def program(process: Any) -> None:
    """What each process runs."""
    site: EntityWorld = process.site
    left = asyncio.Event()
    process.leave = left.set

    async def on_loss(lost: tuple[KeyRange, ...]) -> None:
        site.tell(process.slot, "is told of losses", lost)
        process.told.ranges.append((site.now, lost))

    entities = Entities(
        OpsLedger,
        POOL,
        store="sqlite:simulated" if site.database else None,
        turn=TURN,
        wait=WAIT,
        idle=site.timing.term_ns / SECOND_NS,
        drain=site.timing.term_ns / SECOND_NS,
        on_loss=on_loss,
        enter_timeout=10 * site.term,
    )
    if site.database is not None:
        entities._settings._make_store = site.opener(process)  # noqa: SLF001  # for a URL
    process.entities = entities
    process.told = Told(1 << 62)
    async with entities:
        process.told.since = site.now
        process.users = LedgerUsers(process)
        using = asyncio.ensure_future(process.users.run())
        leaving = asyncio.ensure_future(left.wait())
        done, _ = await asyncio.wait((using, leaving), return_when=asyncio.FIRST_COMPLETED)
        if using in done:
            using.result()
        using.cancel()


class EntityWorld(AppWorld, EntitySite):
    """Everything there is in one run."""

    faults_there_are: ClassVar[FaultTable] = FAULTS
    trial: EntityTrial

    def __init__(self, trial: EntityTrial) -> None:
        super().__init__(trial, program)
        self.table = FAULTS
        self.strikes = EntityStrikes(
            self, self.clocks, self.operator, self.traffic, self.spare_slots()
        )
        self.links.on_message = self._break_some
        self.keys = [f"key-{i}" for i in range(trial.keys)]
        is_durable = self.random.random() < 0.5 if trial.stored is None else trial.stored
        self.database = SimDatabase() if is_durable else None
        self.term = self.timing.term_ns / SECOND_NS
        self.calls_apart = trial.calls_apart or self.random.choice((0.1, 0.5, 2.0))
        self.judge = EntityCheckers(self.keys, is_durable=is_durable, now=lambda: self.now)
        self.counts: Counter[str] = Counter()

    def _break_some(self, _: bytes) -> None:
        if self.faults.strikes(LINK_BREAKS):
            raise ChannelLost("it broke in the middle")

    def opener(self, process: LedgerProcess) -> Any:
        """What opens the store in a process."""

        async def make(pool: str, kind: Any) -> SimStore:
            assert self.database is not None
            store = SimStore(process, self.database, pool, kind)
            await store.open()
            return store

        return make

    def fail(self, error: Exception) -> None:
        """See `AppSite`. Code of this world that raises has found something that must not be."""
        super().fail(error if isinstance(error, Violation) else Violation("calls", repr(error)))

    def count(self, what: str) -> None:
        """Count what users saw."""
        self.counts[what] += 1

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw what."""
        return self.counts

    def make_program(self, slot: str, main: Main, clock: SimClock) -> AppProcess:
        """A process that runs `main`."""
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        process = LedgerProcess(self, slot, clock, on_host, main)
        self.past.append(process)
        return process

    def ledgers(self) -> list[LedgerProcess]:
        """The programs that live, and are not about to end."""
        found = [each for each in self.programs() if isinstance(each, LedgerProcess)]
        return [each for each in found if not each.is_leaving]

    def not_well(self) -> str | None:
        """What is missing for every key to have an owner."""
        for each in self.ledgers():
            if each.users is None:
                return f"the entities of {each.slot} are not entered"
        return super().not_well()

    def when_well(self, left_ns: int) -> None:
        """Nobody asks any more: everything comes to an end, and whoever looks sees all."""
        super().when_well(left_ns)
        self.is_quiet = True
        seconds = max(each.entities.station.caller.seconds for each in self.ledgers())
        self.run_until(self.now + round((seconds + 30.0) * SECOND_NS))
        there = self.ledgers()
        found: dict[tuple[str, str], Any] = {}
        for process in there:
            assert process.users is not None
            for key in self.keys:
                found[process.slot, key] = process.loop.create_task(process.users.look(key))
        self.run_until(self.now + round(30.0 * SECOND_NS))
        for (slot, key), look in found.items():
            shown: Shown | None = look.result() if look.done() else None
            if shown is None:
                raise Violation("L1", f"{slot} has no answer of {key} when all is well")
            self.judge.check_alarms(key, shown, min(map(wall_of, there)))
            self._check_clients(key, shown)
        self.judge.check_told([each.told for each in there if each.told])
        self.is_quiet = False

    def _check_clients(self, key: str, shown: Shown) -> None:
        for process in self.ledgers():
            for client in process.users.clients if process.users else ():
                has = client.last.place if client.last else 0
                is_open = client.key == key and not client.is_over and not client.code
                if is_open and has < shown.last.place:
                    raise Violation(
                        "sockets",
                        f"a client in {process.slot} has {client.last} of {key}, which is at "
                        f"{shown.last}",
                    )
