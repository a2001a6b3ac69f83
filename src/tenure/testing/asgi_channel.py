"""ASGI over a channel: an application served in memory, and the client's side of a connection.

A channel stands for a TCP connection with one request, or one WebSocket, on it. Its first message
is the scope; all others are the messages of ASGI, as they are. Everything is really serialised, so
neither side can change what the other has.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from tenure.errors import TenureError
from tenure.member.asgi import SERVICE_RESTART, App, Message, Scope
from tenure.member.next_message import NextMessage
from tenure.transport.channels import Channel, ChannelLost

logger = logging.getLogger("tenure.testing")
ABNORMAL = 1006
INTERNAL = 1011


class LeavingWatch(Protocol):
    """A watcher of what leaves an application."""

    def leaves(self, message: Message) -> None:
        """The application sends this message."""
        ...

    def failed(self, error: Exception) -> None:
        """The application raised this error, and a server would log it."""
        ...


Watch = Callable[[Scope], LeavingWatch]


def encoded(message: Scope | Message) -> bytes:
    """A scope or message of ASGI as bytes."""
    return msgspec.msgpack.encode(message)


def decoded(data: bytes) -> dict[str, Any]:
    """The same again; what was a tuple in it is one."""
    message: dict[str, Any] = msgspec.msgpack.decode(data)
    if "headers" in message:
        message["headers"] = [(name, value) for name, value in message["headers"]]
    for end in ("client", "server"):
        if message.get(end) is not None:
            message[end] = tuple(message[end])
    return message


class ServedExchange:
    """One request or WebSocket, in the process that serves it."""

    def __init__(self, channel: Channel, scope: Scope, watched: LeavingWatch) -> None:
        self._channel = channel
        self._watched = watched
        self.scope = scope
        self.is_websocket = scope["type"] == "websocket"
        self.has_begun = self.is_over = False
        self._shut = asyncio.Event()
        self._next = NextMessage(self._receive, self._shut)

    async def run(self, app: App) -> None:
        """Have `app` serve it, to the end."""
        try:
            await app(self.scope, self.receive, self.send)
        except ChannelLost:
            return
        except Exception as error:
            logger.exception("the application failed on %s", self.scope["path"])
            self._watched.failed(error)
            await self._end(500, INTERNAL)
        else:
            await self._end(500, 1000)

    async def _end(self, status: int, code: int) -> None:
        """End the exchange as a server does if the application has not said how it ends."""
        if self.is_over:
            return
        if self.is_websocket:
            await self.send({"type": "websocket.close", "code": code, "reason": ""})
        elif not self.has_begun:
            await self.send({"type": "http.response.start", "status": status, "headers": []})
            await self.send({"type": "http.response.body", "body": b""})

    def end(self) -> None:
        """The application is over."""
        self._next.end()

    def shut(self) -> None:
        """The server ends: WebSockets are closed."""
        self._shut.set()

    async def receive(self) -> Message:
        """See ASGI."""
        if not self.is_websocket:
            return await self._receive()
        message = await self._next.get()
        if message is not None:
            return message
        await self.send({"type": "websocket.close", "code": SERVICE_RESTART, "reason": ""})
        return self._gone(SERVICE_RESTART)

    async def _receive(self) -> Message:
        try:
            return decoded(await self._channel.receive())
        except ChannelLost:
            return self._gone(ABNORMAL)

    def _gone(self, code: int) -> Message:
        if self.is_websocket:
            return {"type": "websocket.disconnect", "code": code, "reason": ""}
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """See ASGI. A WebSocket whose client has gone raises OSError, as uvicorn's does."""
        if self.is_over:
            return
        self.has_begun = True
        self._watched.leaves(message)
        self.is_over = message["type"] == "websocket.close" or (
            message["type"].endswith("http.response.body") and not message.get("more_body")
        )
        try:
            await self._channel.send(encoded(message))
        except ChannelLost as error:
            if message["type"] == "websocket.send":
                raise OSError("the client has gone") from error


class MemoryServer:
    """Serves an application to all that open a channel."""

    def __init__(self, app: App, watch: Watch) -> None:
        self._app = app
        self._watch = watch
        self._open: dict[ServedExchange, None] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    async def serve(self, channel: Channel) -> None:
        """One connection; see `Channels.listen`."""
        try:
            scope = decoded(await channel.receive())
        except ChannelLost:
            return
        served = ServedExchange(channel, scope, self._watch(scope))
        self._open[served] = None
        self._idle.clear()
        try:
            await served.run(self._app)
        finally:
            served.end()
            del self._open[served]
            if not self._open:
                self._idle.set()

    async def shut(self, patience: float) -> None:
        """Close WebSockets, and wait until what was begun is done."""
        for served in list(self._open):
            if served.is_websocket:
                served.shut()
        try:
            async with asyncio.timeout(patience):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("the server ends with %d requests open", len(self._open))


class LifespanFailed(Exception):
    """An application did not start, or end, as it should."""


class Lifespan:
    """The lifespan of an application, as a server runs it."""

    def __init__(self, app: App, name: str) -> None:
        self._app = app
        self._name = name
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message | BaseException | None] = asyncio.Queue()
        self._is_on = True
        self.state: dict[str, Any] = {}

    async def start(self) -> None:
        """Let the application start. Raises LifespanFailed, or what tenure raised in it."""
        self._task = asyncio.ensure_future(self._run())
        await self._step("startup")

    async def stop(self) -> None:
        """Let it shut down."""
        if self._is_on:
            await self._step("shutdown")
            await self._task

    async def _step(self, step: str) -> None:
        self._to_app.put_nowait({"type": f"lifespan.{step}"})
        answer = await self._from_app.get()
        if isinstance(answer, dict) and answer["type"] == f"lifespan.{step}.complete":
            return
        self._is_on = False
        if isinstance(answer, dict):
            error = await self._from_app.get()  # a framework says that it failed, and raises why
            if isinstance(error, TenureError):
                raise error
            raise LifespanFailed(
                f"the lifespan of {self._name} failed in its {step}: {answer.get('message', '')}"
            )
        # By ASGI, an application that raises on the lifespan's scope does not know lifespans.
        if answer is not None:
            logger.info("%s has no lifespan: %r", self._name, answer)

    async def _run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }

        async def send(message: Message) -> None:
            self._from_app.put_nowait(message)

        try:
            await self._app(scope, self._to_app.get, send)
        except Exception as error:  # noqa: BLE001  # it is said where the step waits
            self._from_app.put_nowait(error)
        else:
            self._from_app.put_nowait(None)
