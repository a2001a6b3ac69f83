"""A service of aiohttp in memory: its application, as an application of ASGI.

Requests are made as aiohttp's own server makes them, and the handlers and middlewares run as they
are. What they write becomes a message of ASGI in the very step in which they write it, so a watcher
of a process's output sees each message when it leaves.
"""

import asyncio
from base64 import b64encode
from contextlib import suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from yarl import URL

from tenure.client.refusals import HttpAnswer
from tenure.errors import NotSimulated
from tenure.member.asgi import Message, Receive, Scope, Send, deny, text_of
from tenure.testing.asgi_channel import ABNORMAL

READ_BYTES = 1 << 16
"""The bytes of a body before aiohttp asks its connection to wait."""
NO_CODE = 1005
"""A client may close without a code, and no side may send this one."""
FINAL, SHORT, MEDIUM = 0x80, 126, 1 << 16
"""The first bit of a WebSocket's frame; and the lengths from which on more bytes tell them."""
SWITCHING_PROTOCOLS = 101
OF_THE_BODY = ("Content-Type", "Content-Length")
HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": b64encode(bytes(16)).decode(),
}


class AiohttpApp:
    """An application of aiohttp, with its lifespan."""

    def __init__(self, app: web.Application) -> None:
        app.on_response_prepare.append(_on_prepare)
        self._runner = web.AppRunner(app, access_log=None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        server = self._runner.server
        assert server is not None, "the lifespan has begun"
        await serve_request(server, scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._runner.setup()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._runner.cleanup()
        await send({"type": "lifespan.shutdown.complete"})


async def _on_prepare(request: web.Request, response: web.StreamResponse) -> None:
    if isinstance(response, web.WebSocketResponse):
        connection: Any = request.protocol
        connection.socket = response


async def serve_request(server: web.Server, scope: Scope, receive: Receive, send: Send) -> None:
    """Have a server of aiohttp's answer a request, or be the other end of a WebSocket."""
    connection = MemoryConnection(server, scope, receive, send)
    coming = asyncio.ensure_future(connection.take_all())
    try:
        request = connection.request()
        try:
            response = await server.request_handler(request)
        except web.HTTPException as error:
            response = error
        await response.prepare(request)
        await response.write_eof()
    finally:
        coming.cancel()


class AiohttpTransport(asyncio.Transport):
    """A connection, as handlers see it."""

    def __init__(self, peer: object) -> None:
        super().__init__({"peername": peer})
        self._is_closing = False

    def is_closing(self) -> bool:
        """See asyncio."""
        return self._is_closing

    def close(self) -> None:
        """See asyncio."""
        self._is_closing = True

    abort = close

    def pause_reading(self) -> None:
        """See asyncio. What has come is in memory already."""

    resume_reading = pause_reading


class MemoryConnection(web.RequestHandler):
    """One request, and what is written to answer it."""

    def __init__(self, server: web.Server, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop)
        self.transport = AiohttpTransport(scope.get("client"))
        self._server = server
        self._scope = scope
        self._from_client = receive
        self._send = send
        self.is_websocket = scope["type"] == "websocket"
        self._body = StreamReader(self, READ_BYTES, loop=loop)
        self.socket: web.WebSocketResponse[Any] | None = None
        self._frames: Any = None
        """Takes the frames of the client, once the handler has accepted the WebSocket."""
        self._hears: Any = None
        """Called when anything comes, so that a heartbeat knows."""
        self._has_accepted = asyncio.Event()

    def request(self) -> web.Request:
        """The request, as a server makes it of what it has read."""
        scope = self._scope
        pairs = [(text_of(name).title(), text_of(value)) for name, value in scope["headers"]]
        headers: Any = web.StreamResponse().headers  # empty, and of the kind that requests have
        headers.extend(pairs)
        headers.setdefault("Host", "site")
        if self.is_websocket:
            headers.update(HANDSHAKE)
            if scope["subprotocols"]:
                headers["Sec-WebSocket-Protocol"] = ", ".join(scope["subprotocols"])
        query = scope["query_string"].decode()
        target = scope["raw_path"].decode() + (f"?{query}" if query else "")
        has_body = "Content-Length" in headers or "Transfer-Encoding" in headers
        message = RawRequestMessage(
            method=scope.get("method", "GET"),
            path=target,
            version=HttpVersion11,
            headers=headers,
            raw_headers=tuple((name.encode(), text.encode()) for name, text in headers.items()),
            should_close=False,
            compression=None,
            upgrade=self.is_websocket,
            chunked=False,
            url=URL(target, encoded=True),
        )
        body: Any = self._body if has_body else EMPTY_PAYLOAD
        task: Any = asyncio.current_task()
        made: Any = self._server.request_factory
        request: web.Request = made(message, body, self, LeavingWriter(self), task)
        return request

    # --- what the client sends ---

    async def take_all(self) -> None:
        """Hand on what comes, until the client has gone."""
        while not (message := await self._from_client())["type"].endswith(".disconnect"):
            if message["type"] == "http.request":
                self._body.feed_data(message.get("body", b""))
                if not message.get("more_body"):
                    self._body.feed_eof()
            elif message["type"] == "websocket.receive":
                await self._has_accepted.wait()
                text = message.get("text")
                kind = WSMsgType.BINARY if text is None else WSMsgType.TEXT
                self.feed(kind, message["bytes"] if text is None else text.encode())
        code = message.get("code", 1000)
        if self._frames is not None and code not in (ABNORMAL, NO_CODE):
            self.feed(WSMsgType.CLOSE, code.to_bytes(2, "big"))
        elif self._frames is not None:
            self._frames.feed_eof()
        if not self._body.is_eof():
            self._body.set_exception(ConnectionResetError("the client has gone"))
        self.transport.close()  # type: ignore[union-attr]

    def set_parser(self, parser: Any, data_received_cb: Any = None) -> None:  # noqa: ANN401
        """See aiohttp: a WebSocket was accepted, and `parser` takes what comes from here on."""
        self._frames, self._hears = parser, data_received_cb
        if self.socket is not None:
            self.socket._writer = LeavingFrames(self)  # type: ignore[assignment]  # noqa: SLF001
        self._has_accepted.set()

    def feed(self, kind: WSMsgType, data: bytes) -> None:
        """A frame of the client's."""
        length = len(data)
        if length < SHORT:
            size = bytes((length,))
        elif length < MEDIUM:
            size = bytes((SHORT,)) + length.to_bytes(2, "big")
        else:
            size = bytes((SHORT + 1,)) + length.to_bytes(8, "big")
        if self._hears is not None:
            self._hears()
        self._frames.feed_data(bytes((FINAL | kind.value,)) + size + data)

    # --- what leaves ---

    async def leave(self, message: Message) -> None:
        """Send it. Raises ClientConnectionResetError where the client has gone."""
        try:
            await self._send(message)
        except OSError as error:
            raise ClientConnectionResetError(str(error)) from None

    async def deny(self, answer: HttpAnswer) -> None:
        """A WebSocket is not accepted."""
        await deny(self._scope, self._send, answer)


class LeavingWriter(AbstractStreamWriter):
    """The writer of a response."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection
        self._denied: HttpAnswer | None = None
        """The answer with which a WebSocket is not accepted."""

    async def write_headers(self, status_line: str, headers: Any) -> None:  # noqa: ANN401
        """See aiohttp."""
        status = int(status_line.split()[1])
        if not self._connection.is_websocket:
            pairs = [(name.lower().encode(), text.encode()) for name, text in headers.items()]
            start = {"type": "http.response.start", "status": status, "headers": pairs}
            await self._connection.leave(start)
        elif status == SWITCHING_PROTOCOLS:
            protocol = headers.get("Sec-WebSocket-Protocol")
            accept: Message = {"type": "websocket.accept", "subprotocol": protocol, "headers": []}
            await self._connection.leave(accept)
        else:
            told = {name: text for name, text in headers.items() if name not in OF_THE_BODY}
            self._denied = HttpAnswer(status, told, "")

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """See aiohttp."""
        if not self._connection.is_websocket:
            part = {"type": "http.response.body", "body": bytes(chunk), "more_body": True}
            await self._connection.leave(part)

    async def write_eof(self, chunk: bytes = b"") -> None:
        """See aiohttp."""
        if not self._connection.is_websocket:
            await self._connection.leave({"type": "http.response.body", "body": bytes(chunk)})
        elif self._denied is not None:
            await self._connection.deny(self._denied._replace(text=chunk.decode()))

    async def drain(self) -> None:
        """See aiohttp. Whoever wrote has waited already."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """See aiohttp."""
        raise NotSimulated(f"compressing an answer by {encoding} is not simulated: send it plain")

    def enable_chunking(self) -> None:
        """See aiohttp. Messages have no chunks."""


class LeavingFrames:
    """The frames that a WebSocket writes: the part of aiohttp's writer that its response uses."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def send_frame(self, message: bytes, opcode: int, compress: int | None = None) -> None:
        """A frame. A ping is answered at once, as a client does that reads."""
        if opcode == WSMsgType.TEXT:
            await self._connection.leave({"type": "websocket.send", "text": message.decode()})
        elif opcode == WSMsgType.BINARY:
            await self._connection.leave({"type": "websocket.send", "bytes": bytes(message)})
        elif opcode == WSMsgType.PING:
            self._connection.feed(WSMsgType.PONG, message)

    async def close(self, code: int = WSCloseCode.OK, message: bytes = b"") -> None:
        """Close it; the client does so in turn."""
        with suppress(ConnectionError):
            closing = {"type": "websocket.close", "code": int(code), "reason": ""}
            await self._connection.leave(closing)
        self._connection.feed(WSMsgType.CLOSE, int(code).to_bytes(2, "big"))
