"""The world of entities: programs with `Entities` in them, and their users."""

import asyncio
from random import Random
from typing import Any, ClassVar

from lab.worlds.entity.checkers import EntityCheckers
from lab.worlds.entity.entries import Shown
from lab.worlds.entity.faults import FAULTS
from lab.worlds.entity.ledger import RELEASES
from lab.worlds.entity.site import EntitySite, LedgerProcess
from lab.worlds.entity.store import SimDatabase
from lab.worlds.entity.trial import EntityTrial
from lab.worlds.entity.used_world import UsedProcess, UsedWorld, wall_of
from lab.worlds.entity.users import LedgerUsers
from tenure.base.instants import SECOND_NS
from tenure.base.ranges import KeyRange
from tenure.entities.entities import Entities
from tenure.entities.settings import Reads
from tenure.protocol.lease.records import AnyRecord
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.faults import FaultTable

POOL = "ledgers"
TURN, WAIT = 20.0, 15.0


async def program(process: Any) -> None:
    """The program of each process."""
    site: EntityWorld = process.site
    left = asyncio.Event()
    process.leave = left.set

    async def on_loss(lost: tuple[KeyRange, ...]) -> None:
        site.tell(process.slot, "is told of losses", lost)
        process.hears_of(lost)

    entities: Entities[Any] = Entities(
        RELEASES[process.uid % len(RELEASES)],
        POOL,
        store="sqlite:simulated" if site.database else None,
        turn=TURN,
        wait=WAIT,
        idle=site.timing.term_ns / SECOND_NS,
        drain=site.timing.term_ns / SECOND_NS,
        reads=site.reads_of(process),
        on_loss=on_loss,
        enter_timeout=10 * site.term,
        watchdog=site.term,
    )
    # Terms last a minute here. Asking for what is the same for so long shows nothing.
    entities._settings.longest_pause = site.term / 20  # noqa: SLF001
    entities._settings.read_term = site.term / 4  # noqa: SLF001
    entities._settings.tell = site.term / 4  # noqa: SLF001
    if site.database is not None:
        entities._settings.make_store = site.opener(process)  # noqa: SLF001  # for a URL
    process.entities = entities
    async with entities:
        await process.serve(LedgerUsers(process), left)


class EntityWorld(UsedWorld, EntitySite):
    """Everything there is in one run."""

    faults_there_are: ClassVar[FaultTable] = FAULTS
    process_type: ClassVar[type[UsedProcess]] = LedgerProcess
    trial: EntityTrial
    journals_there_were: tuple[int, ...] = ()

    def __init__(self, trial: EntityTrial) -> None:
        super().__init__(trial, program)
        self.keys = [f"key-{i}" for i in range(trial.keys)]
        is_durable = self.random.random() < 0.5 if trial.stored is None else trial.stored
        self.database = SimDatabase() if is_durable else None
        # Drawn apart, so that worlds of before there were readers are what they were.
        drawn = Random(trial.seed).choice(("owner", "everywhere", "everywhere", "mixed"))
        self.reads = trial.reads or drawn
        self.calls_apart = trial.calls_apart or self.random.choice((0.1, 0.5, 2.0))
        self.judge = EntityCheckers(self.keys, is_durable=is_durable, now=lambda: self.now)

    def _on_commit(self, journal: LeaseContents, record: AnyRecord) -> None:
        super()._on_commit(journal, record)
        if journal.journal not in self.journals_there_were:
            self.journals_there_were += (journal.journal,)

    def reads_of(self, process: LedgerProcess) -> Reads:
        """Where a process reads entities."""
        if self.reads == "mixed":
            return "everywhere" if process.uid // 2 % 2 else "owner"
        return "everywhere" if self.reads == "everywhere" else "owner"

    def when_well(self, left_ns: int) -> None:
        """Let users ask no longer: everything comes to an end, and every reader sees all."""
        super().when_well(left_ns)
        self.is_quiet = True
        seconds = max(each.entities.station.caller.seconds for each in self.there())
        self.run_until(self.now + round((seconds + 30.0) * SECOND_NS))
        there = self.there()
        for process in there:
            copies = process.entities.station.copies
            self.counts["hits"] += 0 if copies is None else copies.hits
        found: dict[tuple[str, str], Any] = {}
        for process in there:
            assert process.users is not None
            for key in self.keys:
                found[process.slot, key] = process.loop.create_task(process.users.look(key))
        glances = [
            process.loop.create_task(process.users.glance(key, waits=False))
            for process in there
            for key in self.keys
        ]
        self.run_until(self.now + round(30.0 * SECOND_NS))
        if any(not each.done() or each.result() is None for each in glances):
            raise Violation("C7", "a reading has no answer when all is well")
        for (slot, key), look in found.items():
            shown: Shown | None = look.result() if look.done() else None
            if shown is None:
                raise Violation("L1", f"{slot} has no answer of {key} when all is well")
            self.judge.check_alarms(key, shown, min(map(wall_of, there)))
            self._check_clients(key, shown)
        self.judge.check_told([each.told for each in there])
        self.is_quiet = False

    def _check_clients(self, key: str, shown: Shown) -> None:
        for process in self.there():
            for client in process.users.clients if process.users else ():
                has = client.last.place if client.last else 0
                is_open = client.key == key and not client.is_over and not client.code
                if is_open and has < shown.last.place:
                    raise Violation(
                        "sockets",
                        f"a client in {process.slot} has {client.last} of {key}, which is at "
                        f"{shown.last}",
                    )
