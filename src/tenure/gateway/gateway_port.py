"""The gateway's port: bounded as every port of ours, with requests read by `ClientConnection`."""

import asyncio
import socket as sockets
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from tenure.gateway.client_connection import ClientConnection, GivenConnection
from tenure.gateway.client_request import ClientRequest, Continuation
from tenure.gateway.passed_connection import MOST_AT_ONCE, TOGETHER_BYTES
from tenure.gateway.passing import Passing
from tenure.transport.bounded_port import BACKLOG, BoundedPort, Refused
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.newcomers import IDLE_SECONDS

LIMITS = ConnectionLimits(buffer_bytes=None)
LOOKS_SECONDS = 5.0
"""How often connections without a request are looked at."""
PASSES_AGAIN_SECONDS = 0.05
"""How often connections are looked at which could not be passed to a successor."""
WRITTEN_SECONDS = 1.0
"""How long a client may take to read what was written to it, before it is passed."""
Serve = Callable[[ClientRequest], Coroutine[Any, Any, None]]
GoOn = Callable[[ClientRequest, Continuation], Coroutine[Any, Any, None]]


class GatewayPort:
    """One port. See `ClientDoor`."""

    def __init__(
        self,
        serve: Serve,
        refused: Refused,
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits,
        go_on: GoOn | None = None,
    ) -> None:
        self.serve = serve
        self._go_on = go_on
        self._tls = tls
        self.scheme = "http" if tls is None else "https"
        self._port: BoundedPort[ClientConnection] = BoundedPort(
            self._connection, ClientConnection.unfinished, refused, refused, limits
        )
        self.spoke = self._port.spoke
        self._looking: asyncio.Task[None] | None = None
        self._has_changed = asyncio.Event()
        self.is_leaving = False

    def __len__(self) -> int:
        return len(self._port)

    def _connection(self) -> ClientConnection:
        return ClientConnection(self, asyncio.get_running_loop().time)

    def open(self, listening: sockets.socket) -> None:
        """Take connections from a socket that is bound; it is closed with the port."""
        listening.listen(BACKLOG)
        self._port.open(listening, self._tls)
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        # One look at all: a timer for each would be set again with every request.
        while True:
            await asyncio.sleep(LOOKS_SECONDS)
            self._close_idle(asyncio.get_running_loop().time() - IDLE_SECONDS)

    def _close_idle(self, since: float) -> None:
        for each in self._port.protocols():
            if each.idle_since is not None and each.idle_since <= since:
                each.close()

    async def take_no_more(self) -> None:
        """Take no more connections."""
        await self._port.close()
        if self._looking is not None:
            self._looking.cancel()

    async def close(self, drain: float) -> None:
        """Take no more, answer what has begun, for `drain` seconds at most, and end the rest."""
        await self.take_no_more()
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + drain
        for each in self._port.protocols():
            each.end_soon()
        while len(self._port) and (left := ends_at - loop.time()) > 0:
            await self._changed(left)
        for each in self._port.protocols():
            each.break_off()

    async def _changed(self, seconds: float) -> None:
        self._has_changed.clear()
        waiting = asyncio.get_running_loop().create_task(self._has_changed.wait())
        await asyncio.wait({waiting}, timeout=seconds)
        waiting.cancel()

    # --- to and from another gateway ---

    async def pass_on(self, passing: Passing) -> None:
        """Pass the connections on that can be passed at this moment."""
        # Not those that come meanwhile: where clients connect all the time, that would never end.
        here = self._port.protocols()
        while here and not passing.is_broken:
            await self._pass_some(here[:MOST_AT_ONCE], passing)
            del here[:MOST_AT_ONCE]

    async def _pass_some(self, some: list[ClientConnection], passing: Passing) -> None:
        given_up = await asyncio.gather(*(each.give_up(WRITTEN_SECONDS) for each in some))
        for given in _divided([each for each in given_up if each is not None]):
            for left in await passing.pass_on(given):
                self.adopt(left)

    async def pass_rest(self, passing: Passing, drain: float) -> None:
        """Pass the others on as soon as nothing is under way on them, for `drain` seconds at
        most.
        """
        await self.take_no_more()
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + drain
        self.is_leaving = True
        try:
            while len(self._port) and (left := ends_at - loop.time()) > 0:
                await self.pass_on(passing)
                if passing.is_broken:
                    return
                await self._changed(min(left, PASSES_AGAIN_SECONDS))
        finally:
            self.is_leaving = False

    def adopt(self, given: GivenConnection) -> ClientConnection:
        """Go on with a connection that another process, or this one, has given up."""
        given_up = Continuation(given.passed, given.behind)
        protocol = ClientConnection(self, asyncio.get_running_loop().time, given_up)
        try:
            self._port.adopt(protocol, given.socket)
        except OSError:  # the client has gone
            given.close()
        return protocol

    # --- for connections ---

    def rests(self) -> None:
        self._has_changed.set()

    def switched(self, connection: ClientConnection) -> None:
        """See `ClientDoor`. Its silence is no fault from now on."""
        self._port.spoke(connection, is_socket=True)

    def gone(self, connection: ClientConnection) -> None:
        self._port.gone(connection)
        self._has_changed.set()

    def go_on(self, request: ClientRequest, given: Continuation) -> Coroutine[Any, Any, None]:
        assert self._go_on is not None, "only such are passed on that this port has taken"
        return self._go_on(request, given)


def _divided(given: list[GivenConnection]) -> Iterator[list[GivenConnection]]:
    """These, in parts of bounded size."""
    part: list[GivenConnection] = []
    for each in given:
        part.append(each)
        if sum(one.passed.size for one in part) > TOGETHER_BYTES:
            yield part
            part = []
    if part:
        yield part
