"""WebSocket clients so small that thousands fit into one process beside the measured manager.

aiohttp's client needs as long to read a frame as the manager needs to send one, so that a client
process with 2,000 of its sockets measures itself. These clients parse what a manager sends, which
is never fragmented, and send frames whose mask is zero, so that the bytes of a message go out
unchanged.
"""

import asyncio
import base64
import os
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, Self, TypeVar, cast
from urllib.parse import urlsplit

from tenure.cli.long_run import loop_factory
from tenure.wire.versions import SUBPROTOCOLS

FIN, MASKED = 0x80, 0x80
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
TWO_BYTES, EIGHT_BYTES = 126, 127
NO_MASK = bytes(4)
AT_ONCE = 100
OF_AN_ADDRESS = 5_000
T = TypeVar("T")
CARRIED: Counter[int] = Counter()
"""Bytes to and from each port, of all connections that there were."""
OPEN: "set[PackedSocket]" = set()
"""All that live in this process. A loop that ends before them cannot be closed without a word."""


class Socket(Protocol):
    """A socket of aiohttp, or one of these."""

    async def send_bytes(self, data: bytes) -> None:
        """Send a message."""
        ...

    async def receive_bytes(self) -> bytes:
        """The next message."""
        ...


class PackedSocket(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self.heard: Callable[[bytes], None] = self._keep
        """Told of each message; until it is set, `receive_bytes` has them."""
        self.lost: Callable[[Exception], None] = lambda _: None
        """Told why it ended, unless it was closed here."""
        self.ended = False
        self.is_gone: asyncio.Future[None]
        self._buffer = b""
        self._is_open = False
        self._port = 0
        self._kept: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None

    @classmethod
    async def connect(cls, url: str) -> Self:
        """Connect, offering all versions; for a manager that speaks the newest."""
        where = urlsplit(url)
        loop = asyncio.get_running_loop()
        port = port_of(url)
        # Loopback's other addresses: a manager takes only this many from each.
        local = (f"127.0.0.{1 + beyond}", 0) if (beyond := len(OPEN) // OF_AN_ADDRESS) else None
        _, self = await loop.create_connection(cls, where.hostname or "", port, local_addr=local)
        self._port = port
        key = base64.b64encode(os.urandom(16)).decode()
        asked = (
            f"GET {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {', '.join(SUBPROTOCOLS)}\r\n\r\n"
        )
        self._write(asked.encode())
        while not self._is_open:
            await self._wait()
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self.is_gone = asyncio.get_running_loop().create_future()
        OPEN.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        OPEN.discard(self)
        self.is_gone.set_result(None)
        if not self.ended:
            self.ended = True
            self.lost(exc or ConnectionError("the manager has closed the connection"))
        self._wake()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        CARRIED[self._port] += len(data)
        if self._buffer:
            data = self._buffer + data
        if not self._is_open:
            head, ends, data = data.partition(b"\r\n\r\n")
            if not ends:
                self._buffer = head
                return
            if b" 101 " not in head.partition(b"\r\n")[0]:
                raise ConnectionError(head.decode(errors="replace"))
            self._is_open = True
            self._wake()
        self._buffer = self._frames(data)

    def _frames(self, data: bytes) -> bytes:
        """Take the frames that are whole; what is left."""
        at = 0
        while len(data) - at >= 2:
            size, begins = data[at + 1], at + 2
            if size >= TWO_BYTES:
                begins += 2 if size == TWO_BYTES else 8
                if len(data) < begins:
                    break
                size = int.from_bytes(data[at + 2 : begins], "big")
            if len(data) < begins + size:
                break
            self._take(data[at] & 0x0F, data[begins : begins + size])
            at = begins + size
        return data[at:]

    def _take(self, code: int, payload: bytes) -> None:
        if code == BINARY:
            self.heard(payload)
        elif code == PING:
            self._send(PONG, payload)
        elif code == CLOSE:
            self.transport.abort()

    def _keep(self, payload: bytes) -> None:
        self._kept.append(payload)
        self._wake()

    async def _wait(self) -> None:
        if self.ended:
            raise ConnectionError("the connection has ended")
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive_bytes(self) -> bytes:
        """The next message."""
        while not self._kept:
            await self._wait()
        return self._kept.popleft()

    async def send_bytes(self, data: bytes) -> None:
        """Send a message; never waits, and is as aiohttp has it."""
        self._send(BINARY, data)

    def _send(self, code: int, data: bytes) -> None:
        size = len(data)
        if size < TWO_BYTES:
            head = bytes((FIN | code, MASKED | size))
        elif size < 1 << 16:
            head = bytes((FIN | code, MASKED | TWO_BYTES)) + size.to_bytes(2, "big")
        else:
            head = bytes((FIN | code, MASKED | EIGHT_BYTES)) + size.to_bytes(8, "big")
        self._write(b"".join((head, NO_MASK, data)))

    def _write(self, data: bytes) -> None:
        CARRIED[self._port] += len(data)
        self.transport.write(data)

    def close(self) -> None:
        """Go without a word."""
        self.ended = True
        self.transport.abort()


def port_of(url: str) -> int:
    """Return the port, by which `CARRIED` counts."""
    return urlsplit(url).port or 80


async def packed(url: str, count: int) -> list[PackedSocket]:
    """Open this many connections to one path, a hundred at a time."""
    made: list[PackedSocket] = []
    while len(made) < count:
        few = min(AT_ONCE, count - len(made))
        made += await asyncio.gather(*(PackedSocket.connect(url) for _ in range(few)))
    return made


def run_packed(main: Coroutine[Any, Any, T]) -> T:
    """Run it in the fastest event loop that is installed, and close all connections."""

    async def closing() -> T:
        try:
            return await main
        finally:
            ending = list(OPEN)
            for each in ending:
                each.close()
            await asyncio.gather(*(each.is_gone for each in ending))

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(closing())
