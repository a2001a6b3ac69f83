"""Sockets of entities that end at the gateway, so that they outlive the processes behind it.

The gateway is their edge, as any process of the pool is one of those that it has accepted. Frames
are numbered in both directions: when a worker ends, a key moves, or a link breaks, the gateway asks
the present owner for what follows, and repeats what was not answered. See `entities/edge.py`.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from random import SystemRandom
from typing import Any

from tenure.client.environment import environment_here
from tenure.entities.edge import Edge
from tenure.entities.edge_socket import EdgeSocket
from tenure.entities.far_caller import FarCaller
from tenure.entities.socket_offer import SocketOffer, TakenSocket, offer
from tenure.errors import ConfigurationError, NoOwner, NotOwner
from tenure.gateway.client_request import ClientRequest
from tenure.gateway.held_socket import HeldSocket
from tenure.gateway.leaving_socket import LeavingSocket
from tenure.gateway.passed_connection import PassedSocket
from tenure.gateway.targets import PoolTarget
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import FRAMES
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.transport.link import GatedAnswer, always
from tenure.transport.links import Links
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.wire.entity import packed, read_pushed

NONCE_BITS = 128
CALL_SECONDS = 120.0
"""How long a frame is tried, and the frames that follow are asked for: as long as a deploy takes
in which no worker has the key.
"""

UNFINISHED = UnfinishedMessages()
"""What the sockets of all pools keep of messages that are not whole."""


class GatewaySockets:
    """The sockets of one pool."""

    edge: Edge

    def __init__(self, target: PoolTarget) -> None:
        self._target = target
        environment = environment_here(target.credentials)
        environment.secret = target.secret
        self._links = Links(environment.channels(), self._serve, self._on_link_lost)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._random = SystemRandom()

    async def listen(self, where: str, address: str | None) -> None:
        """Let owners reach it there. Raises ConfigurationError if that is not possible."""
        try:
            url = await self._links.listen(where, address)
        except OSError as error:
            raise ConfigurationError(f"a gateway cannot listen on {where}: {error}") from None
        caller = FarCaller(lambda: self._target.finder, self._links, CALL_SECONDS, self._random)
        self.edge = Edge(caller, url, self._random, self._go)
        self._go(self.edge.keep_asking())

    async def offer(self, seconds: float) -> SocketOffer | None:
        """What a handshake is sent on with; None if the pool's secret is not known in time."""
        with suppress(NoOwner):  # without it the socket would end with the process behind it
            await self._target.routed(seconds)
        nonce = f"{self._random.getrandbits(NONCE_BITS):032x}"
        return offer(self._target.name, self._target.secret, nonce)

    def attach(self, request: ClientRequest, taken: TakenSocket) -> Coroutine[Any, Any, None]:
        """Be the other end of a client's socket until it closes, or leaves."""
        held = HeldSocket(request, UNFINISHED)
        socket = self.edge.socket(taken.key, held)
        return self._hold(request, held, socket, self.edge.attach(socket, taken.attachment))

    def go_on(self, request: ClientRequest, passed: PassedSocket) -> Coroutine[Any, Any, None]:
        """As `attach`, where another process has stopped."""
        held = HeldSocket(request, UNFINISHED)
        socket = EdgeSocket(passed.id, passed.key, held, SocketEnd.of(passed.end))
        return self._hold(request, held, socket, self.edge.go_on(socket))

    async def _hold(
        self,
        request: ClientRequest,
        held: HeldSocket,
        socket: EdgeSocket,
        until_over: Coroutine[Any, Any, None],
    ) -> None:
        request.leaves = LeavingSocket(self._target.name, self.edge, socket, held, request)
        try:
            await until_over
        finally:
            held.end()
            request.end_raw()

    async def _serve(self, call: EntityCall) -> GatedAnswer:
        if call.method != FRAMES:
            raise NotOwner("a gateway has no entities")
        return packed(self.edge.take(read_pushed(call.data))), always

    def _on_link_lost(self, _: str) -> None:
        self.edge.lost()

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def close(self) -> None:
        """Ask nobody any more, and listen to nobody."""
        for each in list(self._tasks):
            each.cancel()
        with suppress(asyncio.CancelledError):
            await self._links.close()
