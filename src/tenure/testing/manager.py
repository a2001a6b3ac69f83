"""A manager without a socket or a file: the engine of the real one, in memory."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random

from tenure.base.noted import Noted
from tenure.errors import RemoteProtocolError
from tenure.journals.memory import MemoryJournal
from tenure.manager.engine import ManagerEngine
from tenure.observe.events import Observer
from tenure.protocol.lease.answers import Answer
from tenure.protocol.lease.leader.events import ClientLost, ClientSaid, Question
from tenure.protocol.lease.leader.manager import ManagerConfig
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.noted import LogKind
from tenure.runtime.clock import Clock, Timers
from tenure.transport.doors import Connection
from tenure.transport.in_process import MemoryNetwork
from tenure.wire.lease import decode_to_manager

logger = logging.getLogger("tenure.testing")


class MemoryManager:
    """One manager process, in the running event loop, and its clients' connections."""

    def __init__(
        self,
        config: ManagerConfig,
        journal: MemoryJournal[AnyRecord, State],
        network: MemoryNetwork,
        random: Random,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.url = config.url
        self.network = network
        self.leads = asyncio.Event()
        """Set while it leads."""
        observer = Observer("tenure.testing")
        observer.subscribe(self._on_noted)
        self.engine = ManagerEngine(
            config,
            journal,
            observer,
            self,
            clock=clock,
            timers=timers,
            random=random,
            plans_beside=False,
        )
        self.engine.failed.add_done_callback(self._on_failed)
        self._numbers: dict[Connection, int] = {}
        self._connections: dict[int, Connection] = {}
        self._last_number = 0

    def start(self) -> None:
        """Listen, and compete to lead."""
        self.network.listen(self.url, self)
        self.engine.start()

    async def stop(self) -> None:
        """Resign and go, as on SIGTERM."""
        await self.engine.stop()
        self.kill()

    def kill(self) -> None:
        """Be gone at once, as on kill -9. What the journal was asked, it may still do."""
        self.engine.kill()
        self.leads.clear()
        self.network.fall_silent(self.url)

    async def ask(self, question: Question) -> Answer:
        """Ask, or command, as over the JSON API."""
        return await self.engine.ask(question)

    def _on_noted(self, noted: Noted) -> None:
        if noted.kind is LogKind.LEADING:
            self.leads.set()
        elif noted.kind in (LogKind.DEPOSED, LogKind.RESIGNED, LogKind.STARTED_OVER):
            self.leads.clear()

    def _on_failed(self, failed: asyncio.Future[None]) -> None:
        if not failed.cancelled():
            logger.critical("%s failed", self.url, exc_info=failed.exception())
            self.kill()

    # --- the network ---

    def connected(self, connection: Connection) -> None:
        self._last_number += 1
        self._numbers[connection] = self._last_number
        self._connections[self._last_number] = connection

    def received(self, connection: Connection, data: bytes) -> None:
        try:
            message = decode_to_manager(data, connection.version)
        except RemoteProtocolError as error:
            connection.close(str(error))
            self.disconnected(connection)
        else:
            self.engine.post(ClientSaid(self._numbers[connection], message))

    def disconnected(self, connection: Connection) -> None:
        number = self._numbers.pop(connection, None)
        if number is not None:
            del self._connections[number]
            self.engine.post(ClientLost(number))

    def send(self, connections: Iterable[int], encoded: Callable[[int], bytes | None]) -> int:
        """See `Clients.send`. Memory is as wide as it has to be: nobody is cut off."""
        payloads: dict[int, bytes | None] = {}
        for number in connections:
            connection = self._connections.get(number)
            if connection is None:
                continue
            if connection.version not in payloads:
                payloads[connection.version] = encoded(connection.version)
            payload = payloads[connection.version]
            if payload is not None:
                connection.send(payload)
        return 0
