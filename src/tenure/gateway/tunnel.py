"""A WebSocket of an application, byte by byte: what either side sends goes to the other as it is,
until one of them closes, or another process goes on with both connections.
"""

import asyncio
from contextlib import suppress

from tenure.gateway.client_request import ClientRequest, Continuation, Stays
from tenure.gateway.passed_connection import PassedConnection, PassedTunnel
from tenure.member.forwarded_answer import ForwardedAnswer


class Tunnel:
    """One of them. See `Leaves`."""

    def __init__(self, behind: str, request: ClientRequest, answer: ForwardedAnswer) -> None:
        self._behind = behind
        self._request = request
        self._answer = answer
        self._pumps: tuple[asyncio.Task[None], ...] = ()
        self._untold = b""
        """What the client has sent and was not written to the server."""
        self._is_over = asyncio.Event()
        self._given: Continuation | None = None

    async def run(self) -> None:
        """Pass on what either side sends, until it is over here."""
        self._request.leaves = self
        self._begin()
        try:
            await self._is_over.wait()
        finally:
            await self._stop()
            self._request.end_raw()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._pumps = loop.create_task(self._to_client()), loop.create_task(self._to_server())

    async def _stop(self) -> None:
        for each in self._pumps:
            each.cancel()
        await asyncio.wait(self._pumps)

    async def _to_client(self) -> None:
        with suppress(ConnectionError):  # the client learns it by the end of its connection
            async for part in self._answer:
                await self._request.send_raw(part)
        self._is_over.set()

    async def _to_server(self) -> None:
        while True:
            if self._untold:
                await self._answer.send(self._untold)
                self._untold = b""
            message = await self._request.receive()
            if message["type"] != "http.request":
                break
            self._untold = message["body"]
        self._answer.close()

    # --- to another process ---

    @property
    def is_settled(self) -> bool:
        return self._answer.may_leave and not self._is_over.is_set()

    async def give_up(self, seconds: float) -> Continuation | None:
        self._answer.read_on(goes_on=False)
        await self._stop()
        if self._is_over.is_set():
            return None
        handle = await self._answer.handle(seconds)
        if handle is None:
            self._answer.read_on(goes_on=True)
            self._begin()  # if the server has gone, this ends when the client has all of it
            raise Stays
        tunnel = PassedTunnel(self._behind, self._answer.unread(), self._request.head.target)
        unread = self._untold + self._request.unread()
        self._given = Continuation(PassedConnection(True, unread, None, tunnel), handle)  # noqa: FBT003
        self._is_over.set()
        return self._given

    def gone(self) -> None:
        if self._given is not None and self._given.behind is not None:
            self._given.behind.close()
