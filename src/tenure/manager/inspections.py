"""Inspections: questions about entities on their way to an owner, and its answers.

They go over the connection on which the owner asks for its leases. The machine hears nothing of
them, so they need neither the journal nor a proof of leadership.
"""

import asyncio
import secrets
from typing import TypeAlias
from weakref import WeakValueDictionary

from tenure.protocol.entity.inspection import InspectionAnswer, InspectionQuestion
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.inspecting import Inspect, Inspected
from tenure.transport.peers import Peers
from tenure.wire.lease import decode_to_owner, encode
from tenure.wire.versions import NEWEST

AT_ONCE = 16
"""How many answers may be on their way: each may have two mebibytes."""
AT_ONCE_OF_A_POOL = 4
"""How many of them may be of one pool, whose owners may be silent on purpose."""
ANSWER_SECONDS = 8.0
"""Longer than an owner waits for a store that hangs, and shorter than a command waits for us."""
Ticket: TypeAlias = tuple[Connection, str, int]
"""Only the connection that was asked answers, and only for the pool that it was asked about."""


class Inspections:
    """The questions of one manager."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._of_pool: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """The slots of each pool about which somebody asks."""
        self._waiting: dict[Ticket, asyncio.Future[InspectionAnswer]] = {}

    async def ask(
        self, connection: Connection, pool: str, question: InspectionQuestion
    ) -> InspectionAnswer:
        """The owner's answer. Raises TimeoutError if none comes, and RemoteProtocolError for a
        question that the owner could not read: it would end the connection that its leases need.
        """
        asked = Inspect(pool=pool, ticket=secrets.randbits(63), question=question)
        decode_to_owner(encode(asked, NEWEST), NEWEST)
        ticket = connection, pool, asked.ticket
        of_pool = self._of_pool.setdefault(pool, asyncio.Semaphore(AT_ONCE_OF_A_POOL))
        async with asyncio.timeout(ANSWER_SECONDS), of_pool, self._slots:
            answer: asyncio.Future[InspectionAnswer] = asyncio.get_running_loop().create_future()
            self._waiting[ticket] = answer
            try:
                self._peers.send((connection,), lambda version: encode(asked, version))
                return await answer
            finally:
                del self._waiting[ticket]

    def answered(self, connection: Connection, said: Inspected) -> None:
        """An owner has answered. What nobody asked, or waits for any longer, is dropped."""
        waiting = self._waiting.get((connection, said.pool, said.ticket))
        if waiting is not None and not waiting.done():
            waiting.set_result(said.answer)
