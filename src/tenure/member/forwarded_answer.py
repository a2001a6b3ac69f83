"""An answer of another process as it comes over a connection. httptools takes it apart; headers and
the body are passed on as bytes (docs/decisions/0032-httptools-reads-http.md).

Anything but HTTP/1.1 is an error, and breaks the connection.
"""

import asyncio
import socket as sockets
from collections import deque
from collections.abc import AsyncIterator, Callable

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from tenure.transport.handles import handle_when_written

MOST_HEAD_BYTES = 262_144
"""More than any server sends as headers, or between two parts of a body."""
MOST_UNREAD_BYTES = 262_144
"""How much of an answer may wait before its connection is read no further."""
CONTENT_LENGTH, TRANSFER_ENCODING = b"content-length", b"transfer-encoding"
CONNECTION = b"connection"
WITHOUT_BODY = (204, 304)
LEAST_STATUS = 100
INFORMATIONAL = 200
"""The status below which another answer follows."""
SWITCHING = 101
"""The status after which the connection speaks another protocol, and nothing is parsed."""
END_OF_HEAD = b"\r\n\r\n"


ALWAYS = asyncio.Event()
ALWAYS.set()


class ForwardedAnswer:
    """See `Forwarded`. Takes an answer apart as it comes."""

    status = 0
    is_sent = False
    """Whether the request is."""
    sending: "asyncio.Task[None] | None" = None
    _has_ended = False
    _is_over = False
    _keeps = True
    """Whether the connection goes on after it."""
    _is_until_close = False
    """Whether its end is that of the connection."""
    _has_excess = False
    """Whether more came than belongs to it."""
    _framing = 0
    """How many bytes have come since the last of the body."""
    _failure: ConnectionError | None = None
    _waiting: "asyncio.Future[None] | None" = None
    _is_paused = False
    _is_read = False

    def __init__(
        self, transport: asyncio.Transport, release: Callable[[bool], None], *, has_body: bool
    ) -> None:
        self._transport = transport
        self._give_back = release
        self._may_have_body = has_body
        self.headers: list[tuple[bytes, bytes]] = []
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the head has come."""
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self.may_write = ALWAYS
        self._parts: deque[bytes] = deque()
        self._unread = 0

    # --- for the relay ---

    def whole(self) -> bytes | None:
        """See `Forwarded`."""
        if not self._has_ended or self._is_read:
            return None
        self._is_read = True
        return b"".join(self._parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._is_read = True
        while True:
            while self._parts:
                part = self._parts.popleft()
                self._unread -= len(part)
                if self._is_paused and self._unread < MOST_UNREAD_BYTES // 2:
                    self._is_paused = False
                    self._transport.resume_reading()
                yield part
            if self._failure is not None:
                raise self._failure
            if self._has_ended:
                return
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def close(self) -> None:
        """See `Forwarded`."""
        if not self._is_over:
            self.lost(None)
            self._release()

    # --- once it has switched to another protocol ---

    @classmethod
    def switched(
        cls, transport: asyncio.Transport, release: Callable[[bool], None], unread: bytes
    ) -> "ForwardedAnswer":
        """One of 101, of which another process has taken the head. It has left `unread`."""
        made = cls(transport, release, has_body=True)
        made.status, made.is_sent = SWITCHING, True
        made._parser = None
        made._switch(unread)
        made.begun.set_result(None)
        return made

    async def send(self, data: bytes) -> None:
        """Send the other end more."""
        await self.may_write.wait()
        self._transport.write(data)

    @property
    def may_leave(self) -> bool:
        """Whether another process could go on with the connection at this moment."""
        is_open = not (self._has_ended or self._failure or self._transport.is_closing())
        return is_open and self._transport.get_extra_info("sslcontext") is None

    def read_on(self, *, goes_on: bool) -> None:
        """Read more of the other end, or no more for now."""
        self._is_paused = not goes_on
        if self._transport.is_closing():
            return
        if goes_on:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    async def handle(self, seconds: float) -> sockets.socket | None:
        """Another handle of its connection, as `handle_when_written` gives it."""
        return await handle_when_written(self._transport, self.may_write.wait, seconds)

    def unread(self) -> bytes:
        """What has come and nobody has taken."""
        return b"".join(self._parts)

    # --- for the connection ---

    def feed(self, data: bytes) -> None:
        """Take more of the answer."""
        try:
            self._take(data)
        except (HttpParserError, ValueError) as error:
            if not self._has_ended:
                self._fail(ConnectionError(f"the owner's answer is not HTTP/1.1: {error}"))
            self._has_excess = True
            self._release()
        else:
            if self._has_ended:
                self._release()
            elif self._unread > MOST_UNREAD_BYTES and not self._is_paused:
                self._is_paused = True
                self._transport.pause_reading()
        self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection has ended."""
        if self._is_until_close and error is None:
            self._has_ended = True  # the end of the connection is the end of the body
        elif not self._has_ended:
            self._fail(ConnectionResetError(f"the connection broke: {error or 'it was closed'}"))
        self._wake()

    def _fail(self, error: ConnectionError) -> None:
        self._failure = self._failure or error
        if not self.begun.done():
            self.begun.set_exception(error)
            self.begun.exception()  # the caller may have given up

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _release(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._parser = None  # each refers to the other, and nobody else ends that
        if self.sending is not None:
            self.sending.cancel()
        is_usable = self._has_ended and self._keeps and self.is_sent and not self._has_excess
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        self._give_back(is_usable)

    def _take(self, data: bytes) -> None:
        parser = self._parser
        if self.status == SWITCHING or parser is None:
            self.on_body(data)
            return
        unread, self._framing = self._unread, self._framing + len(data)
        try:
            parser.feed_data(data)
        except HttpParserUpgrade as upgraded:
            self._switch(data[upgraded.args[0] :])
            return
        if self._unread > unread:
            self._framing = 0
        elif self._framing > MOST_HEAD_BYTES and not self._has_ended:
            part = "a line between its chunks" if self.begun.done() else "its head"
            raise ValueError(f"{part} does not end within {MOST_HEAD_BYTES} bytes")

    def _switch(self, rest: bytes) -> None:
        self._has_ended = False
        self._is_until_close = True
        self._keeps = False
        if rest:
            self.on_body(rest)

    # --- for the parser ---

    def on_message_begin(self) -> None:
        self._has_excess = self._has_ended
        self.headers = self.headers if self._has_ended else []

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools. Trailers are dropped, as ASGI has none."""
        if self.status < INFORMATIONAL:
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None, "it is calling"
        status, version = parser.get_status_code(), parser.get_http_version()
        if status < LEAST_STATUS or version not in ("1.1", "1.0"):
            raise ValueError(f"HTTP/{version} with status {status}")
        if self._has_ended or (status < INFORMATIONAL and status != SWITCHING):
            return
        self.status = status
        if self._may_have_body and status not in WITHOUT_BODY:
            self._keeps = parser.should_keep_alive()
            self._is_until_close = not (self._keeps or self._has_length())
        elif status != SWITCHING:
            # The parser does not know that the answer to HEAD has no body, whatever its head says.
            self._has_ended = True
            self._keeps = parser.get_http_version() == "1.1" and not self._says_close()
        self.begun.set_result(None)

    def _has_length(self) -> bool:
        return any(
            name == CONTENT_LENGTH or (name == TRANSFER_ENCODING and b"chunked" in value.lower())
            for name, value in self.headers
        )

    def _says_close(self) -> bool:
        return any(b"close" in value.lower() for name, value in self.headers if name == CONNECTION)

    def on_body(self, part: bytes) -> None:
        if self._has_ended:
            self._has_excess = True
        else:
            self._parts.append(part)
            self._unread += len(part)

    def on_message_complete(self) -> None:
        if self.begun.done():
            self._has_ended = True
