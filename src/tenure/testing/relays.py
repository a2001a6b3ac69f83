"""Relays in memory: the environment of a Member without sockets.

`Relay` speaks to other members through a session of aiohttp's. Here it is given an object that has
the part of that session which relays use, and that opens channels instead of connections.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from http.client import HTTPMessage
from typing import TYPE_CHECKING, Any, Self, cast

from aiohttp import ClientConnectionError, ClientSession, WSMessage, WSMsgType
from aiohttp.client_exceptions import ClientConnectorError, WSServerHandshakeError
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from tenure.base.origin import Origin, parse
from tenure.member.asgi import App, RawHeaders
from tenure.member.forwarding import Forwarding, NotConnected
from tenure.member.listener import MemberListener
from tenure.testing.asgi_channel import ABNORMAL, MemoryServer, Watch, decoded, encoded
from tenure.transport.channels import Channel, ChannelLost, Serve
from tenure.transport.credentials import Credentials
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PortGuard

if TYPE_CHECKING:
    from tenure.member.aiohttp.listener import AiohttpDoor

Connect = Callable[[str], Awaitable[Channel]]
Listen = Callable[[Serve, str], None]
RELAYED_HERE: ContextVar[Callable[[], None]] = ContextVar("relayed", default=lambda: None)
"""Called in the context of a request whose answer came from another member."""
STOP_SECONDS = 5.0


class MemoryListener:
    """The listener of a member, in memory."""

    def __init__(
        self,
        app: App,
        url: str,
        listen: Callable[[Serve, str], object],
        fall_silent: Callable[[str], None],
        watch: Watch,
    ) -> None:
        self.url = url
        self._listen = listen
        self._fall_silent = fall_silent
        self._server = MemoryServer(app, watch)

    async def start(self) -> None:
        self._listen(self._server.serve, self.url)

    async def stop(self) -> None:
        self._fall_silent(self.url)
        await self._server.shut(STOP_SECONDS)


class MemoryMembers:
    """A `MemberEnvironment` in memory."""

    def __init__(self, listener: Callable[[App], MemberListener], connect: Connect) -> None:
        self._make = listener
        self._connect = connect

    def listener(
        self, app: App, listen: str, credentials: Credentials, guard: PortGuard
    ) -> MemberListener:
        """See `MemberEnvironment`. Where it listens, and how, does not matter: whatever asks in
        memory is of the same user.
        """
        return self._make(app)

    def aiohttp_listener(
        self, door: "AiohttpDoor", listen: str, credentials: Credentials, guard: PortGuard
    ) -> MemberListener:
        from tenure.testing.aiohttp_app import serve_request  # noqa: PLC0415  # loads a server

        return self.listener(partial(serve_request, door.server()), listen, credentials, guard)

    def session(self) -> ClientSession:
        return cast("ClientSession", MemorySession(self._connect))

    def forwarding(self, credentials: Credentials, secret: PoolSecret) -> Forwarding:
        return MemoryForwarding(self._connect)


def scope_of(
    kind: str, method: str, url: URL, headers: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """The scope of a request to `url`."""
    scope: dict[str, Any] = {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "ws" if kind == "websocket" else "http",
        "path": url.path,
        "raw_path": url.raw_path.encode(),
        "query_string": url.raw_query_string.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "client": ("user", 0),
        "server": ("site", 80),
    }
    more: dict[str, Any] = {"subprotocols": []} if kind == "websocket" else {"method": method}
    return scope | more


class MemoryForwarding:
    """See `Forwarding`: each request has a channel of its own."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    async def proof(self, address: str, session: ClientSession) -> dict[str, str]:
        """See `Forwarding`. The same user needs none."""
        return {}

    async def ask(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: RawHeaders,
        body: bytes | AsyncIterable[bytes],
    ) -> "MemoryAnswer":
        url = URL(f"{origin.scheme}://{origin.authority}{target}", encoded=True)
        scope = scope_of("http", method, url, ()) | {"headers": list(headers)}
        try:
            channel = await self._connect(f"{origin.scheme}://{origin.authority}")
        except ChannelLost as error:
            raise NotConnected(str(error)) from None
        try:
            await _sent(channel, scope)
            if isinstance(body, bytes):
                await _sent(channel, {"type": "http.request", "body": body})
            else:
                async for chunk in body:
                    message = {"type": "http.request", "body": chunk, "more_body": True}
                    await _sent(channel, message)
                await _sent(channel, {"type": "http.request", "body": b""})
            start = await _received(channel)
        except BaseException:
            await channel.close()
            raise
        RELAYED_HERE.get()()
        return MemoryAnswer(channel, start)

    def close(self) -> None:
        """Channels end with what is answered over them."""


class MemoryAnswer:
    def __init__(self, channel: Channel, start: dict[str, Any]) -> None:
        self._channel = channel
        self.status: int = start["status"]
        self.headers = [(name.lower(), value) for name, value in start.get("headers", ())]
        self._closing: asyncio.Future[None] | None = None

    def whole(self) -> bytes | None:
        return None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            message = await _received(self._channel)
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                return

    def close(self) -> None:
        self._closing = self._closing or asyncio.ensure_future(self._channel.close())


class MemorySession:
    """The part of a `ClientSession` that members use."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._forwarding = MemoryForwarding(connect)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Channels end with what is answered over them."""

    @asynccontextmanager
    async def get(self, url: str, **_: object) -> AsyncIterator["MemoryText"]:
        origin = parse(url, "address")
        answer = await self._forwarding.ask(origin, "GET", origin.prefix, [], b"")
        yield MemoryText(b"".join([chunk async for chunk in answer]))
        answer.close()

    async def ws_connect(
        self,
        url: URL,
        *,
        headers: Sequence[tuple[str, str]],
        protocols: Sequence[str] = (),
        **_: object,
    ) -> "MemoryWebSocket":
        """Open a WebSocket."""
        scope = scope_of("websocket", "GET", url, headers)
        scope["subprotocols"] = list(protocols)
        scope["extensions"] = {"websocket.http.response": {}}
        try:
            channel = await self._connect(f"{url.scheme}://{url.host}:{url.port}")
        except ChannelLost as error:
            key = ConnectionKey(url.host or "", url.port, False, True, None, None, None)  # noqa: FBT003
            raise ClientConnectorError(key, OSError(str(error))) from None
        await _sent(channel, scope)
        try:
            await _sent(channel, {"type": "websocket.connect"})
            answer = await _received(channel)
        except BaseException:
            await channel.close()
            raise
        if answer["type"] != "websocket.accept":
            await channel.close()
            raise _refused(answer)
        RELAYED_HERE.get()()
        return MemoryWebSocket(channel, answer.get("subprotocol"))


class MemoryText:
    """The part of a `ClientResponse` that members use."""

    def __init__(self, body: bytes) -> None:
        self.content = asyncio.StreamReader()
        self.content.feed_data(body)
        self.content.feed_eof()


class MemoryWebSocket:
    """The part of a `ClientWebSocketResponse` that relays use."""

    def __init__(self, channel: Channel, protocol: str | None) -> None:
        self._channel = channel
        self.protocol = protocol
        self.close_code: int | None = None

    async def receive(self) -> WSMessage:
        """The next frame, or that there is none any more."""
        try:
            message = decoded(await self._channel.receive())
        except ChannelLost:
            self.close_code = self.close_code or ABNORMAL
            return WSMessage(WSMsgType.CLOSED, None, None)
        if message["type"] == "websocket.close":
            self.close_code = message.get("code", 1000)
            return WSMessage(WSMsgType.CLOSE, self.close_code, None)
        if message.get("text") is not None:
            return WSMessage(WSMsgType.TEXT, message["text"], None)
        return WSMessage(WSMsgType.BINARY, message["bytes"], None)

    async def send_str(self, text: str) -> None:
        """Send a frame of text."""
        await _sent(self._channel, {"type": "websocket.receive", "text": text})

    async def send_bytes(self, data: bytes) -> None:
        """Send a frame of bytes."""
        await _sent(self._channel, {"type": "websocket.receive", "bytes": data})

    async def close(self, *, code: int = 1000) -> None:
        self.close_code = self.close_code or code
        with suppress(ClientConnectionError):
            await _sent(self._channel, {"type": "websocket.disconnect", "code": code})
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()


def _refused(answer: dict[str, Any]) -> WSServerHandshakeError:
    pairs = [(name.decode(), value.decode()) for name, value in answer.get("headers", ())]
    info: Any = None  # what was asked: relays do not look at it
    status, headers = answer.get("status", 403), cast("Any", _headers(pairs))
    return WSServerHandshakeError(info, (), status=status, message="refused", headers=headers)


def _headers(pairs: Sequence[tuple[str, str]]) -> HTTPMessage:
    headers = HTTPMessage()
    for name, value in pairs:
        headers[name] = value
    return headers


async def _sent(channel: Channel, message: dict[str, Any]) -> None:
    try:
        await channel.send(encoded(message))
    except ChannelLost as error:
        raise ClientConnectionError(str(error)) from None


async def _received(channel: Channel) -> dict[str, Any]:
    try:
        return decoded(await channel.receive())
    except ChannelLost as error:
        raise ClientConnectionError(str(error)) from None
