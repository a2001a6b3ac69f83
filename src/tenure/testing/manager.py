"""A manager without a socket or a file: the machine of the real one, in memory."""

import asyncio
import logging
from random import Random
from typing import assert_never

from tenure.base.noted import Noted
from tenure.errors import RemoteProtocolError, TenureError
from tenure.journals.memory import MemoryJournal
from tenure.journals.perform import perform
from tenure.protocol.lease.leader.events import (
    Answer,
    AnswerQuestion,
    ClientLost,
    ClientSaid,
    GiveUp,
    MakePlan,
    ManagerAction,
    ManagerEvent,
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
from tenure.protocol.log.journal import (
    Append,
    Beat,
    Campaign,
    Compact,
    Load,
    ReadSeat,
    Resign,
)
from tenure.protocol.log.noted import LogKind
from tenure.runtime.clock import Clock, Timers
from tenure.runtime.driver import Driver
from tenure.transport.in_process import Connection, MemoryNetwork
from tenure.wire.codec import decode_to_manager, encode

logger = logging.getLogger("tenure.testing")


class MemoryManager:
    """One manager process, in the running event loop."""

    def __init__(
        self,
        config: ManagerConfig,
        journal: MemoryJournal,
        network: MemoryNetwork,
        random: Random,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.machine = Manager(config, random)
        self.journal = journal
        self.network = network
        self.leads = asyncio.Event()
        """Set while it leads."""
        self.failure: Exception | None = None
        self._driver: Driver[ManagerEvent, ManagerAction] = Driver(
            self.machine, clock, self._perform, timers=timers, fail=self._fail
        )
        self._numbers: dict[Connection, int] = {}
        self._connections: dict[int, Connection] = {}
        self._last_number = 0
        self._tickets: dict[int, asyncio.Future[Answer]] = {}
        self._last_ticket = 0
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.machine.config.url

    def start(self) -> None:
        """Listen, and compete to lead."""
        self.network.listen(self.url, self)
        self._driver.start()

    async def stop(self) -> None:
        """Resign and go, as on SIGTERM."""
        self._driver.post(StopRequested())
        while self._under_way:
            await asyncio.wait(self._under_way)
        self.kill()

    def kill(self) -> None:
        """Be gone at once, as on kill -9. What the journal was asked, it may still do."""
        self._driver.stop()
        self.leads.clear()
        self.network.fall_silent(self.url)

    async def ask(self, question: Question) -> Answer:
        """Ask, or command, as over the JSON API."""
        self._last_ticket += 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._tickets[self._last_ticket] = answer
        self._driver.post(QuestionAsked(self._last_ticket, question))
        return await answer

    # --- the network ---

    def connected(self, connection: Connection) -> None:
        """See `Listener.connected`."""
        self._last_number += 1
        self._numbers[connection] = self._last_number
        self._connections[self._last_number] = connection

    def received(self, connection: Connection, data: bytes) -> None:
        """See `Listener.received`."""
        try:
            message = decode_to_manager(data, connection.version)
        except RemoteProtocolError as error:
            connection.close(str(error))
            self.disconnected(connection)
        else:
            self._driver.post(ClientSaid(self._numbers[connection], message))

    def disconnected(self, connection: Connection) -> None:
        """See `Listener.disconnected`."""
        number = self._numbers.pop(connection, None)
        if number is not None:
            del self._connections[number]
            self._driver.post(ClientLost(number))

    # --- actions ---

    def _perform(self, action: ManagerAction) -> None:
        match action:
            case TellClient(connection=number, message=message):
                self._send((number,), message)
            case TellClients(connections=numbers, message=message):
                self._send(numbers, message)
            case AnswerQuestion(ticket=ticket, answer=answer):
                self._tickets.pop(ticket).set_result(answer)
            case MakePlan(work=work):
                made = PlanMade(work, work.carry_out())
                asyncio.get_running_loop().call_soon(self._driver.post, made)
            case Noted():
                self._note(action)
            case GiveUp(why=why):
                self._fail(TenureError(why))
            case (
                ReadSeat() | Campaign() | Beat() | Resign() | Load() | Append() | Compact()
            ) as asked:
                task = asyncio.get_running_loop().create_task(self._ask_journal(asked))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            case _:
                assert_never(action)

    def _send(self, numbers: tuple[int, ...], message: FromManager) -> None:
        encoded: dict[int, bytes] = {}
        for number in numbers:
            connection = self._connections.get(number)
            if connection is not None:
                version = connection.version
                if version not in encoded:
                    encoded[version] = encode(message, version)
                connection.send(encoded[version])

    async def _ask_journal(self, action: JournalAction) -> None:
        event = await perform(self.journal, action)
        if event is not None:
            self._driver.post(event)

    def _note(self, noted: Noted) -> None:
        logger.debug("%s: %s", self.url, noted.text)
        if noted.kind is LogKind.LEADING:
            self.leads.set()
        elif noted.kind in (LogKind.DEPOSED, LogKind.RESIGNED):
            self.leads.clear()

    def _fail(self, error: Exception) -> None:
        logger.critical("%s failed", self.url, exc_info=error)
        self.failure = error
        self.kill()
