"""An attempt: one connection of an attacker, and what it shows there."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from tenure.protocol.lease.messages import ToManager
from tenure.transport.websocket_frames import frame
from tenure.wire.lease import HeardByOwner, decode_to_owner, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS

READ_BYTES = 1 << 16
TWO_BYTES_OF_LENGTH, EIGHT_BYTES_OF_LENGTH = 126, 127
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOLS[0]}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


class Shown(NamedTuple):
    """What an attacker shows, and whose managers know it."""

    token: str = ""
    manager: str = ""
    pool: str = ""


NOTHING = Shown()


class Attempt:
    """What an attacker has for one attempt: whom it attacks, from where, and with which token."""

    def __init__(
        self,
        url: str,
        number: int,
        peer: str,
        shows: Shown = NOTHING,
        reach: Callable[[], None] = lambda: None,
    ) -> None:
        where = urlsplit(url)
        self.url = url
        self.reach = reach
        """Say that what it was after was achieved: nobody may ever."""
        self.host = where.netloc
        self.to = where.hostname, where.port
        self._peer = peer
        self.number = number
        self.token, self.manager, self.pool = shows
        self.random = Random(number)
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def open(self) -> None:
        """Connect. Raises OSError where that is refused."""
        host, port = self.to
        from_here = self._peer, 0
        self.reader, self.writer = await asyncio.open_connection(host, port, local_addr=from_here)

    def abort(self) -> None:
        """Let go of the connection, if there is one."""
        if hasattr(self, "writer"):
            self.writer.transport.abort()

    def head(self, method: str, path: str, *more: str) -> bytes:
        """The head of a request, that shows the token."""
        shown = (f"Authorization: Bearer {self.token}\r\n",) if self.token else ()
        lines = (f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n", *shown, *more, "\r\n")
        return "".join(lines).encode()

    async def upgrade(self, path: str, *more: str) -> None:
        """Begin a WebSocket. Raises ConnectionError where that is refused."""
        await self.open()
        self.writer.write(self.head("GET", path, UPGRADE, *more))
        said = await self.reader.readuntil(b"\r\n\r\n")
        if not said.startswith(b"HTTP/1.1 101"):
            raise ConnectionRefusedError(said.split(b"\r\n", 1)[0].decode(errors="replace"))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def say(self, message: ToManager) -> None:
        """Send a message to a manager."""
        await self.send(masked(encode(message, NEWEST)))

    async def hear(self) -> HeardByOwner:
        """The next message of a manager."""
        return decode_to_owner(await self.hear_bytes(), NEWEST)

    async def hear_bytes(self) -> bytes:
        """The next message."""
        size = (await self.reader.readexactly(2))[1]
        if size >= TWO_BYTES_OF_LENGTH:
            longer = 2 if size == TWO_BYTES_OF_LENGTH else 8
            size = int.from_bytes(await self.reader.readexactly(longer))
        return await self.reader.readexactly(size)

    async def hear_answer(self) -> tuple[str, bytes]:
        """The next answer to a request: its head, in small letters, and its body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        _, is_told, size = head.partition("content-length:")
        return head, await self.reader.readexactly(int(size.split()[0]) if is_told else 0)

    async def read_on(self) -> None:
        """Read until the other side ends it."""
        while await self.reader.read(READ_BYTES):
            pass

    async def send_on(self, data: bytes) -> None:
        """Send this again and again, until the other side ends it."""
        reading = asyncio.ensure_future(self.read_on())
        try:
            while not reading.done():
                await self.send(data)
                await asyncio.sleep(0)
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await reading

    def read_nothing(self) -> None:
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]


Attack: TypeAlias = Callable[[Attempt], Awaitable[None]]


class Family(NamedTuple):
    """One kind of attack, and how many connections make it at once."""

    by: Attack
    at: str
    """What it attacks: "manager", "service", "node", "entities", "volume", "hand_off", "files",
    "feeds", "shop", "member", "cache", "guarded".
    """
    connections: int
    shows: str = ""
    """The token that it shows: its role, and its pool if it is of one."""


def masked(payload: bytes) -> bytes:
    """A client's frame, with a mask that changes nothing."""
    whole = frame(payload)
    first, second, rest = whole[0], whole[1], whole[2:]
    extra = {TWO_BYTES_OF_LENGTH: 2, EIGHT_BYTES_OF_LENGTH: 8}.get(second, 0)
    return bytes((first, second | 0x80)) + rest[:extra] + bytes(4) + rest[extra:]
