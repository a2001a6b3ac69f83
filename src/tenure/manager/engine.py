"""The manager machine at work: its driver, its journal, its clients.

Everything happens in one event loop. What the machine asks of the journal is begun in the order in
which it asks, and not waited for: a beat must not wait behind an append, and the machine itself
sees to it that one append is under way at a time.

Three things end it. The journal contradicts itself or what was seen of it; the machine contradicts
itself, which is a bug; and whoever runs it says so. In the first two `failed` tells why, and the
process is to end: a manager that goes on without its journal, or after a broken invariant, may give
a key to two owners, and one that is gone is replaced by a standby.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from random import SystemRandom

from tenure.base.instants import FAR_FUTURE, in_seconds
from tenure.base.keys import PoolKind
from tenure.base.noted import Noted
from tenure.errors import JournalWentBack, LocalProtocolError
from tenure.journals import Journal, perform
from tenure.manager.answers import Role
from tenure.manager.noted import ServiceKind
from tenure.manager.peers import Peers, send_to_each
from tenure.observe.events import Observer
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.lease.leader.events import (
    Answer,
    AnswerQuestion,
    Connection,
    GiveUp,
    MakePlan,
    ManagerAction,
    ManagerEvent,
    NotLeading,
    PlanMade,
    Question,
    QuestionAsked,
    StopRequested,
    TellClient,
    TellClients,
)
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.messages import FromManager
from tenure.protocol.lease.records import JournalAction
from tenure.protocol.log.noted import LogKind
from tenure.runtime.clock import Clock, boot_clock
from tenure.runtime.driver import Driver
from tenure.wire.codec import encode

ANSWER_SECONDS = 5.0
"""How long a question may take: several commits on a slow disk. One that was asked of a leader that
is then deposed is not answered at all."""
RESIGN_SECONDS = 5.0
"""How long a stopping manager tries to tell its journal. A standby takes over anyway, later."""


class ManagerEngine:
    """A manager machine that runs."""

    def __init__(
        self,
        config: ManagerConfig,
        journal: Journal,
        observer: Observer,
        clock: Clock = boot_clock,
    ) -> None:
        self.machine = Manager(config, SystemRandom())
        self.journal = journal
        self.observer = observer
        self.clock = clock
        self.peers = Peers()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises what makes it impossible to go on."""
        self._driver = Driver[ManagerEvent, ManagerAction](
            self.machine, clock, self._perform, fail=self._fail
        )
        self._planner = ThreadPoolExecutor(1, "tenure-planner")
        """Policies are asked in a thread of their own. It has the interpreter's lock for 5 ms at a
        time, and the loop goes on beside it."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._last_ticket = 0

    def start(self) -> None:
        """Begin."""
        self._driver.start()

    def post(self, event: ManagerEvent) -> None:
        """Something happened."""
        self._driver.post(event)

    async def stop(self) -> None:
        """Resign, so that a standby need not wait, and finish what the journal was asked."""
        self.post(StopRequested())
        if self._under_way and not self.failed.done():
            await asyncio.wait(self._under_way, timeout=RESIGN_SECONDS)
        self._driver.stop()
        self._planner.shutdown(wait=False, cancel_futures=True)
        for task in self._under_way:
            task.cancel()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(NotLeading(None))

    # --- questions ---

    async def ask(self, question: Question) -> Answer:
        """Ask the machine. Raises TimeoutError where it cannot say, because it may lead no more."""
        self._last_ticket = ticket = self._last_ticket + 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        try:
            self.post(QuestionAsked(ticket, question))
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        finally:
            del self._answers[ticket]

    @property
    def role(self) -> Role:
        """What this manager is at the moment."""
        phase = self.machine.leadership.phase
        if phase == "leading":
            return "leading" if self.machine.leader else "taking over"
        return "stopped" if phase == "resigned" else "standing by"

    @property
    def is_proven(self) -> bool:
        """Whether it leads, and nobody can have taken over by waiting."""
        return self.machine.leader is not None and self.machine.leadership.is_proven(self.clock())

    @property
    def leader(self) -> str | None:
        """The URL of whoever leads, as far as known."""
        known = self.machine.leadership.leader
        return None if known == self.machine.config.url and self.role != "leading" else known

    @property
    def leadership(self) -> int:
        """The number of the present leadership, as far as known."""
        return self.machine.leadership.seat.leadership

    @property
    def lsn(self) -> int:
        """The LSN up to which the journal is written or, standing by, was read."""
        leader = self.machine.leader
        return leader.context.ledger.committed if leader else self.machine.follower.lsn

    @property
    def beat(self) -> int:
        """The last beat of the leadership that was seen."""
        return self.machine.leadership.seat.beat

    @property
    def grants_in_seconds(self) -> float:
        """How long until ranges can be granted; 0 where they can, or where it does not lead."""
        leader = self.machine.leader
        if leader is None or leader.grants_at >= FAR_FUTURE:
            return 0.0
        return max(in_seconds(leader.grants_at - self.clock()), 0.0)

    @property
    def is_restored(self) -> bool:
        """Whether it waits because its journal goes on from an old copy, not because it is new."""
        leader = self.machine.leader
        return leader is not None and leader.context.history.has_granted

    def pool_kind(self, pool: str) -> PoolKind | None:
        """The kind of a pool, where this manager leads and there is one."""
        leader = self.machine.leader
        found = leader.pools.get(pool) if leader else None
        return found.table.kind if found else None

    # --- actions ---

    def _perform(self, action: ManagerAction) -> None:
        match action:
            case TellClient(connection=connection, message=message):
                self._send((connection,), message)
            case TellClients(connections=connections, message=message):
                self._send(connections, message)
            case AnswerQuestion(ticket=ticket, answer=answer):
                waiting = self._answers.get(ticket)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
            case MakePlan(work=work):
                self._ask_policy(work)
            case Noted():
                self.observer.note(action)
            case GiveUp(why=why):
                self.observer.note(Noted(LogKind.GAVE_UP, detail=why))
                self._fail(JournalWentBack(why))
            case _:
                self._ask_journal(action)

    def _send(self, connections: Iterable[Connection], message: FromManager) -> None:
        for version, peers in self.peers.by_version(connections).items():
            try:
                payload = encode(message, version)
            except LocalProtocolError as error:
                self.observer.note(Noted(ServiceKind.NOT_ENCODED, detail=str(error)))
                continue
            for _ in range(send_to_each(peers, payload)):
                self.observer.note(Noted(ServiceKind.SLOW_PEER))

    def _ask_policy(self, work: Planning) -> None:
        def on_done(made: asyncio.Future[Planned | PlanningFailed]) -> None:
            if not made.cancelled():
                self.post(PlanMade(work, made.result()))

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._planner, work.carry_out).add_done_callback(on_done)

    def _ask_journal(self, action: JournalAction) -> None:
        task = asyncio.create_task(self._carry_out(action))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _carry_out(self, action: JournalAction) -> None:
        try:
            event = await perform(self.journal, action)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no going on without an answer
            self._fail(error)
            return
        if event is not None:
            self.post(event)

    def _fail(self, error: Exception) -> None:
        self._driver.stop()
        if not self.failed.done():
            self.failed.set_exception(error)
