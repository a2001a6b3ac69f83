"""An answer of another member as it comes over a connection: only the parts that say where its body
ends are read (RFC 9112, 6 and 7); the rest is passed on as bytes.

Anything but HTTP/1.1 is an error, and breaks the connection: the other end is a member's own
listener.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

MOST_HEAD_BYTES = 262_144
"""More than any server sends as headers."""
MOST_UNREAD_BYTES = 262_144
"""How much of an answer may wait before its connection is read no further."""
CONTENT_LENGTH, TRANSFER_ENCODING = b"content-length", b"transfer-encoding"
WITHOUT_BODY = (204, 304)
INFORMATIONAL = 200
"""The status below which another answer follows."""
END_OF_LINE = b"\r\n"
END_OF_HEAD = b"\r\n\r\n"
HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")


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
    _left = 0
    """How many bytes of the body, or of a chunk, are still to come."""
    _is_until_close = False
    """Whether its end is that of the connection."""
    _is_chunked = False
    _is_after_chunk = False
    """Whether the line that ends a chunk comes next."""
    _is_in_trailers = False
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
        self._buffer = b""
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
        self.lost(None)
        self._release()

    # --- for the connection ---

    def feed(self, data: bytes) -> None:
        """Take more of the answer."""
        try:
            self._take(data)
        except ValueError as error:
            self._fail(ConnectionError(f"the owner's answer is not HTTP/1.1: {error}"))
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
        if self.sending is not None:
            self.sending.cancel()
        is_usable = self._has_ended and self._keeps and self.is_sent and not self._buffer
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        self._give_back(is_usable)

    def _take(self, data: bytes) -> None:
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        while not self.begun.done():
            end = data.find(END_OF_HEAD)
            if end < 0:
                if len(data) > MOST_HEAD_BYTES:
                    raise ValueError(f"its head has more than {MOST_HEAD_BYTES} bytes")
                self._buffer = data
                return
            self._begin(data[:end])
            data = data[end + len(END_OF_HEAD) :]
        if self._has_ended:
            self._buffer = data  # nothing, unless it says more than it should
        elif self._is_chunked:
            self._take_chunks(data)
        elif self._is_until_close:
            self._add(data)
        else:
            self._buffer = data[self._left :]
            self._add(data[: self._left])
            self._left -= min(self._left, len(data))
            self._has_ended = self._left == 0

    def _begin(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        status = first[9:12]
        if not (first.startswith(b"HTTP/1.") and len(status) == len("200") and status.isdigit()):
            raise ValueError(f"it begins with {first[:40]!r}")
        self.status = int(status)
        if self.status < INFORMATIONAL:
            return
        self.headers = headers = []
        length: bytes | None = None
        coding = b""
        self._keeps = first.startswith(b"HTTP/1.1")
        for line in lines:
            name, _, value = line.partition(b":")
            name, value = name.lower(), value.strip(b" \t")
            headers.append((name, value))
            if name == CONTENT_LENGTH:
                length = value
            elif name == TRANSFER_ENCODING:
                coding = value.lower()
            elif name == b"connection" and b"close" in value.lower():
                self._keeps = False
        if not self._may_have_body or self.status in WITHOUT_BODY:
            self._has_ended = True
        elif coding:
            self._is_chunked, self._is_until_close = coding == b"chunked", coding != b"chunked"
        elif length is None:
            self._is_until_close = True
        elif length.isdigit():
            self._left = int(length)
            self._has_ended = self._left == 0
        else:
            raise ValueError(f"its length is {length[:40]!r}")
        self._keeps = self._keeps and not self._is_until_close
        self.begun.set_result(None)

    def _add(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._unread += len(part)

    def _take_chunks(self, data: bytes) -> None:
        at = 0  # what follows is not cut off each time: chunks may be of one byte each
        while at < len(data) and not self._has_ended:
            if self._left:
                part = data[at : at + self._left]
                self._add(part)
                at += len(part)
                self._left -= len(part)
                self._is_after_chunk = self._left == 0
                continue
            end = data.find(END_OF_LINE, at)
            if end < 0:
                if len(data) - at > MOST_HEAD_BYTES:
                    raise ValueError("a line between its chunks does not end")
                break
            self._after_line(data[at:end])
            at = end + len(END_OF_LINE)
        self._buffer = data[at:]

    def _after_line(self, line: bytes) -> None:
        if self._is_in_trailers:  # which are dropped, as ASGI has none
            self._has_ended = not line
        elif self._is_after_chunk:
            if line:
                raise ValueError(f"a chunk is followed by {line[:40]!r}")
            self._is_after_chunk = False
        else:
            size = line.partition(b";")[0].strip(b" \t")
            if not (size and HEXADECIMAL.issuperset(size)):
                raise ValueError(f"a chunk's size is {line[:40]!r}")
            self._left = int(size, 16)
            self._is_in_trailers = self._left == 0
