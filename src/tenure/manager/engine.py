"""The manager machine at work: its driver, its journal, its clients.

Everything happens in one event loop. The engine begins the machine's calls to the journal in their
order, and does not wait for them: a beat must not wait behind an append, and the machine itself
sees to it that one append is under way at a time.

Three things end it. The journal contradicts itself or what was seen of it; the machine contradicts
itself, or raises when nobody asked for anything, which is a bug; or its caller stops it. In the
first two cases `failed` says why, and the process must end: a manager that goes on without its
journal, or after a broken invariant, may give a key to two owners, while a standby replaces one
that is gone. No request of others ends the engine, or they could end one manager after the other. A
bug in the answer to a question costs the answer: see `Leader.on_asked`. A bug in a command costs
the leadership: see `Manager.handle` and `LeaderBroke`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from random import Random, SystemRandom
from typing import Protocol

from tenure.base.instants import Instant, in_seconds
from tenure.base.noted import Noted
from tenure.errors import JournalWentBack, LocalProtocolError
from tenure.journals import Journal, perform
from tenure.manager.metrics import ManagerMetrics
from tenure.manager.noted import ServiceKind
from tenure.manager.planning_thread import PlanningThread
from tenure.observe.events import Observer
from tenure.protocol.balance.planning import Planning
from tenure.protocol.lease.answers import Answer, Connection, NotLeading
from tenure.protocol.lease.leader.events import (
    AnswerQuestion,
    GiveUp,
    LookAround,
    MakePlan,
    ManagerAction,
    ManagerEvent,
    OtherSeen,
    OthersSeen,
    PlanMade,
    Question,
    QuestionAsked,
    StopRequested,
    TellClient,
    TellClients,
    TellNodes,
)
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig, told_of_failure
from tenure.protocol.lease.leader.view import ManagerView
from tenure.protocol.lease.messages import FromManager, SyncResponse
from tenure.protocol.lease.records import AnyRecord, JournalAction, State
from tenure.protocol.lease.steering_events import ReadPlan, Steer
from tenure.protocol.log.noted import LogKind
from tenure.protocol.topology.messages import ToNode
from tenure.runtime.clock import Clock, Timers, boot_clock
from tenure.runtime.driver import Driver
from tenure.runtime.loops import call_in
from tenure.wire.lease import WholeTables, encode
from tenure.wire.topology import encode_topology

ANSWER_SECONDS = 5.0
"""How long a question may take: several commits on a slow disk. One that was asked of a leader that
is then deposed is not answered at all."""
PLAN_ANSWER_SECONDS = 9.5
"""How long one may take for which a policy is asked: one from outside has eight seconds. Commands
of `tenure` wait ten."""
RESIGN_SECONDS = 5.0
"""How long a stopping manager tries to tell its journal. A standby takes over anyway, later."""


class Clients(Protocol):
    """The connections of a manager, by number."""

    def send(
        self, connections: Iterable[Connection], encoded: Callable[[int], bytes | None]
    ) -> int:
        """Send a message to those of `connections` that are there, without waiting for any.

        `encoded` has its bytes for a version of the protocol; None where there are none. It is
        asked once for each. How many were cut off, because they lag too far behind.
        """


class ManagerEngine:
    """A manager machine that runs, in the running event loop.

    With `plans_beside`, policies run in a thread of their own, and those from outside are asked in
    one for each pool. It has the interpreter's lock for 5 ms at a time, and the loop goes on
    beside it.
    """

    def __init__(
        self,
        config: ManagerConfig,
        journal: Journal[AnyRecord, State],
        observer: Observer,
        clients: Clients,
        *,
        clock: Clock = boot_clock,
        timers: Timers | None = None,
        random: Random | None = None,
        plans_beside: bool = True,
    ) -> None:
        self._machine = Manager(config, random or SystemRandom())
        self.journal = journal
        self.observer = observer
        self.clients = clients
        self.clock = clock
        self.metrics = ManagerMetrics(clock)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises what makes it impossible to go on."""
        self._driver = Driver[ManagerEvent, ManagerAction](
            self._machine,
            clock,
            self._perform,
            timers=timers,
            fail=self._fail,
            instead=told_of_failure,
        )
        self.post = self._driver.post
        """Something happened."""
        self._loop = asyncio.get_running_loop()
        self._plans_beside = plans_beside
        self._planners: dict[str, PlanningThread] = {}
        """The threads that ask policies, by line."""
        self.look: Callable[[], Awaitable[tuple[OtherSeen, ...]]] | None = None
        """Asks the other managers; None where there are none to ask."""
        self._looking: set[asyncio.Task[None]] = set()
        self._under_way: set[asyncio.Task[None]] = set()
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._tables = WholeTables()
        self._last_ticket = 0

    def start(self) -> None:
        """Run the machine, which asks its journal who leads."""
        self._driver.start()

    async def stop(self) -> None:
        """Resign, so that a standby need not wait, and finish what the journal was asked."""
        self.post(StopRequested())
        if self._under_way and not self.failed.done():
            await asyncio.wait(self._under_way, timeout=RESIGN_SECONDS)
        for task in self._under_way:
            task.cancel()
        self.kill()

    def kill(self) -> None:
        """Go at once. What the journal was asked, it may still do."""
        self._driver.stop()
        for task in self._looking:
            task.cancel()
        for planner in self._planners.values():
            planner.stop()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(NotLeading(None))

    # --- questions ---

    async def ask(self, question: Question) -> Answer:
        """Ask the machine. Raises TimeoutError if it cannot answer since it may no longer lead."""
        self._last_ticket = ticket = self._last_ticket + 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        asks_policy = isinstance(question, Steer | ReadPlan)
        try:
            self.post(QuestionAsked(ticket, question))
            async with asyncio.timeout(PLAN_ANSWER_SECONDS if asks_policy else ANSWER_SECONDS):
                return await answer
        finally:
            del self._answers[ticket]

    @property
    def view(self) -> ManagerView:
        """How the machine is now."""
        return self._machine.view(self.clock())

    # --- actions ---

    def _perform(self, action: ManagerAction) -> None:
        match action:
            case TellClient(connection=connection, message=message):
                self._send((connection,), message)
            case TellClients(connections=connections, message=message):
                self._send(connections, message)
                self.metrics.pushes.pushed(message)
            case TellNodes(connections=connections, message=message):
                self._send(connections, message)
            case AnswerQuestion(ticket=ticket, answer=answer):
                waiting = self._answers.get(ticket)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
            case MakePlan(work=work):
                self._ask_policy(work)
            case LookAround(asked_at=asked_at):
                self._begin(self._look_around(asked_at), self._looking)
            case Noted():
                self.observer.note(action)
            case GiveUp(why=why):
                self.observer.note(Noted(LogKind.GAVE_UP, detail=why))
                self._fail(JournalWentBack(why))
            case _:
                self._ask_journal(action)

    def _send(self, connections: Iterable[Connection], message: FromManager | ToNode) -> None:
        if isinstance(message, SyncResponse) and message.snapshot:
            message = self._tables.prepared(message)

        def encoded(version: int) -> bytes | None:
            try:
                if isinstance(message, ToNode):
                    return encode_topology(message, version)
                return encode(message, version)
            except LocalProtocolError as error:
                self.observer.note(Noted(ServiceKind.NOT_ENCODED, detail=str(error)))
                return None

        for _ in range(self.clients.send(connections, encoded)):
            self.observer.note(Noted(ServiceKind.SLOW_PEER))

    def _ask_policy(self, work: Planning) -> None:
        if not self._plans_beside:
            self._loop.call_soon(self.post, PlanMade(work, work.carry_out()))
            return
        if work.line not in self._planners:
            self._planners[work.line] = PlanningThread(self._post_from_thread)
        self._planners[work.line].ask(work)

    def _post_from_thread(self, made: PlanMade) -> None:
        call_in(self._loop, self.post, made)

    def _ask_journal(self, action: JournalAction) -> None:
        self._begin(self._carry_out(action), self._under_way)

    def _begin(self, work: Coroutine[None, None, None], under_way: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(work)
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    async def _look_around(self, asked_at: Instant) -> None:
        seen = await self.look() if self.look is not None else ()
        self.post(OthersSeen(asked_at, seen))

    async def _carry_out(self, action: JournalAction) -> None:
        began = self.clock()
        try:
            event = await perform(self.journal, action)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no going on without an answer
            self._fail(error)
            return
        self.metrics.journal.observe(action, in_seconds(self.clock() - began))
        self.metrics.pushes.committed(event)
        if event is not None:
            self.post(event)

    def _fail(self, error: Exception) -> None:
        self._driver.stop()
        if not self.failed.done():
            self.failed.set_exception(error)
