"""One request to an aiohttp server, as ASGI has it, so that `Relay` decides for both.

A request becomes a scope and messages, and the messages that are sent become the answer. Requests
that this member serves itself are not translated: the handler gets the request unchanged, and makes
its own response. Relay learns only what it must know: that an answer has begun, and which WebSocket
to close when the lease is lost.
"""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, runtime_checkable

from aiohttp import ClientError, WSMsgType, web

from tenure.client.refusals import refusal
from tenure.errors import LeaseLost
from tenure.member.aiohttp.socket import AnySocket, WatchedSocket, receive_frame, send_frame
from tenure.member.asgi import (
    KEY,
    MEMBER,
    MESSAGE_BYTES,
    OURS,
    PRIVATE,
    SERVED,
    Message,
    Receive,
    Scope,
    Send,
    text_of,
)
from tenure.member.listener import CLOSE_SECONDS

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

EXCHANGE = "tenure.exchange"
"""The key in the scope of the exchange, with the request and its handler."""
CURRENT: ContextVar["Exchange | None"] = ContextVar("tenure.exchange", default=None)
"""The exchange of the request that this task answers."""
IS_PRIVATE: ContextVar[bool] = ContextVar("tenure.private", default=False)
"""Whether the request came through the member's own listener."""
LOOKS_EVERY_SECONDS = 1.0
"""aiohttp tells a handler that its client has gone only when the handler writes. So a relay that
writes nothing checks at this interval.
"""
OUR_NAMES = frozenset(name.decode() for name in OURS)


class Exchange:
    """A request and its answer."""

    def __init__(self, request: web.Request, handler: Handler) -> None:
        self.request = request
        self.is_private = IS_PRIVATE.get()
        self.socket: AnySocket | None = None
        """The accepted WebSocket, which the handler or the relay serves."""
        self._handler = handler
        self._scope: Scope = {}
        self._answer: web.StreamResponse | None = None
        self._has_answered = False
        """Whether the handler has."""
        self._start: Message = {}
        self._tell: Send | None = None
        """Tells Relay what the handler does while it runs."""
        self._is_taken = False
        """Whether the body was read here, even if only to be relayed."""
        self._has_connected = False
        self._is_gone = asyncio.Event()

    def scope(self) -> Scope:
        """The request, for Relay."""
        request, url = self.request, self.request.rel_url
        peer = request.get_extra_info("peername")
        found: Scope = {
            "type": "websocket" if wants_websocket(request) else "http",
            "method": request.method,
            "scheme": request.scheme,
            "path": url.path,
            "raw_path": url.raw_path.encode("utf-8", "surrogateescape"),
            "query_string": url.raw_query_string.encode("utf-8", "surrogateescape"),
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": (request.remote, peer[1]) if isinstance(peer, tuple) else None,
            "extensions": {"websocket.http.response": {}},
            EXCHANGE: self,
        }
        if self.is_private:
            found[PRIVATE] = True
        return found

    def answer(self) -> web.StreamResponse:
        """The answer that the server sends, or has sent already."""
        if self._answer is not None or self._has_answered:
            return self._answer  # type: ignore[return-value]  # aiohttp complains of None
        if self.socket is not None:
            return self.socket
        lost = refusal(LeaseLost("a WebSocket that its handler did not accept in time"))
        assert lost is not None
        return web.Response(status=lost.status, headers=lost.headers, text=lost.text)

    # --- served here ---

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the handler answer."""
        SERVED.set(scope)
        self._scope = scope
        if self._is_taken:
            self._give_back((await receive())["body"])
        request = self.request
        request = stripped(request)
        self._tell = send
        try:
            self._answer = await self._handler(request)
            self._has_answered = True
        finally:
            self._tell = None

    def _give_back(self, body: bytes) -> None:
        if body:
            with warnings.catch_warnings():
                # aiohttp has no other way to let the handler read the same body again.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.request.content.unread_data(body)

    async def on_prepare(self, response: web.StreamResponse) -> None:
        """The handler begins its answer. Raises NotOwner if the lease was lost before that."""
        if self._tell is None:
            return
        if not isinstance(response, web.WebSocketResponse):
            await self._tell({"type": "http.response.start"})
            return
        await self._tell({"type": "websocket.accept"})
        self.socket = response
        owner, key, receive = self._scope[MEMBER].owner, self._scope[KEY], response.receive

        async def counted(timeout: float | None = None) -> Any:  # noqa: ANN401, ASYNC109  # as it is
            message = await receive(timeout)
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                owner.record_load(key, 1)
            return message

        response.receive = counted  # type: ignore[method-assign]

    # --- what Relay receives ---

    async def receive(self) -> Message:
        """The next message of the client."""
        if wants_websocket(self.request):
            return await self._receive_frame()
        content = self.request.content
        if not (self._is_taken and content.at_eof()):
            self._is_taken = True
            with suppress(ConnectionError, ClientError, web.RequestPayloadError):
                part = await content.readany()
                return {"type": "http.request", "body": part, "more_body": not content.at_eof()}
            return {"type": "http.disconnect"}
        while not (self._is_gone.is_set() or self._has_gone()):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOKS_EVERY_SECONDS):
                    await self._is_gone.wait()
        return {"type": "http.disconnect"}

    def _has_gone(self) -> bool:
        transport = self.request.transport
        return transport is None or transport.is_closing()

    async def _receive_frame(self) -> Message:
        if not self._has_connected:
            self._has_connected = True
            return {"type": "websocket.connect"}
        assert self.socket is not None
        return await receive_frame(self.socket)

    # --- what Relay sends ---

    async def send(self, message: Message) -> None:
        """Answer, as Relay says."""
        kind = message["type"]
        if kind == "websocket.close":
            await self.close(message["code"])
        elif self._tell is not None:
            pass  # the handler does it itself
        elif kind == "websocket.accept":
            await self._accept(message["subprotocol"])
        elif kind == "websocket.send":
            assert self.socket is not None
            with suppress(ConnectionError):  # the next received message reports it
                await send_frame(self.socket, message)
        elif kind.endswith(".start"):
            self._start = message
        else:
            await self._send_body(message.get("body", b""), more=message.get("more_body", False))

    async def close(self, code: int) -> None:
        """Close its WebSocket, if there is one; the connection too if its client reads nothing."""
        if self.socket is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.socket.close(code=code)
        except TimeoutError:
            if self.request.transport is not None:
                self.request.transport.abort()

    async def _accept(self, protocol: str | None) -> None:
        socket: AnySocket = WatchedSocket(
            protocols=[protocol] if protocol else (),
            max_msg_size=MESSAGE_BYTES,
            compress=False,
        )
        await socket.prepare(self.request)
        self.socket = socket

    async def _send_body(self, part: bytes, *, more: bool) -> None:
        status = self._start["status"]
        headers = [(text_of(name), text_of(value)) for name, value in self._start["headers"]]
        if self._answer is None and not more:
            self._answer = web.Response(status=status, headers=headers, body=part)
            return
        try:
            if self._answer is None:
                self._answer = web.StreamResponse(status=status, headers=headers)
                await self._answer.prepare(self.request)
            if part:
                await self._answer.write(part)
            if not more:
                await self._answer.write_eof()
        except ConnectionError:
            self._is_gone.set()


def wants_websocket(request: web.Request) -> bool:
    """Whether a request opens a WebSocket."""
    return request.method == "GET" and request.headers.get("Upgrade", "").lower() == "websocket"


def stripped(request: web.Request) -> web.Request:
    """The request without the headers that only members may send."""
    if not any(name in request.headers for name in OUR_NAMES):
        return request
    # A copy cannot have bytes that are not UTF-8. Only a forger of our header meets this.
    kept = [
        (name, value.encode("utf-8", "replace").decode())
        for name, value in request.headers.items()
        if name.lower() not in OUR_NAMES
    ]
    return request.clone(headers=kept)


@runtime_checkable
class RelaysSockets(Protocol):
    """The middleware that relays WebSockets: an `AiohttpRelay`."""

    async def close_sockets(self) -> None:
        """Ask the clients to connect again, as the server is about to end."""
        ...


def watch_answers(app: web.Application) -> None:
    """Tell the relays of an application when its answers begin. Call it before the application is
    frozen.
    """
    app.on_response_prepare.append(_on_prepare)
    app.on_shutdown.append(_on_shutdown)


async def _on_prepare(request: web.Request, response: web.StreamResponse) -> None:
    del request
    exchange = CURRENT.get()
    if exchange is not None:
        await exchange.on_prepare(response)


async def _on_shutdown(app: web.Application) -> None:
    for each in app.middlewares:
        if isinstance(each, RelaysSockets):
            await each.close_sockets()
