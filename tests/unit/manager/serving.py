"""A manager in this process, on a free port, that grants at once; and clients for it."""

import asyncio
import io
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from yarl import URL

from tenure.base.noted import Noted
from tenure.journals import Journal, MemoryJournal
from tenure.manager.config import ManagerSettings
from tenure.manager.service import ManagerService
from tenure.observe.events import Observer
from tenure.protocol.lease.messages import ToManager
from tenure.protocol.lease.records import AnyRecord, State
from tenure.wire.lease import encode
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.patience import DEADLINE_SECONDS
from tests.sessions import client_session


class Serving(NamedTuple):
    service: ManagerService
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        url = URL(self.service.url + path, encoded=True)
        async with self.session.get(url, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def delete(self, path: str) -> tuple[int, Any]:
        async with self.session.delete(URL(self.service.url + path, encoded=True)) as response:
            return response.status, json.loads(await response.read())

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        url = self.service.url + path
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        said = {"Content-Type": "application/json", **headers}
        async with self.session.post(url, data=io.BytesIO(data), headers=said) as response:
            return response.status, json.loads(await response.read())

    async def connect(
        self, path: str, protocols: Sequence[str] = SUBPROTOCOLS
    ) -> aiohttp.ClientWebSocketResponse:
        return await self.session.ws_connect(self.service.url + path, protocols=protocols)

    def counted(self, what: str) -> int:
        return self.service.observer.counters[what]


@asynccontextmanager
async def serving(
    journal: Journal[AnyRecord, State] | None = None,
    add_pages: Callable[[web.Application], None] | None = None,
    *,
    patience: Any = DEADLINE_SECONDS,  # noqa: ANN401  # seconds; callers pass settings as they are
    **said: object,
) -> AsyncIterator[Serving]:
    told = {"port": 0, "journal": "memory", "first_start": True, **said}
    is_alone = journal is None
    if is_alone and told["first_start"]:  # nothing was promised before it: it need not listen
        journal = MemoryJournal(LEASE_RECORDS, State(waited_out=True))
    settings = ManagerSettings(**told)  # type: ignore[arg-type]
    observer = Observer("tenure.test")
    events = Events(observer)
    async with (
        asyncio.timeout(patience),
        ManagerService(settings, observer, journal, add_pages) as service,
        client_session() as session,
    ):
        if is_alone:
            await events.wait_for("leading")
        yield Serving(service, session)


class Events:
    """The events that an observer was told; tests can wait for them."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._happened = asyncio.Event()
        observer.subscribe(self._on_event)

    def _on_event(self, _: Noted) -> None:
        self._happened.set()

    async def wait_for(self, what: str, times: int = 1) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while self._observer.counters[what] < times:
                self._happened.clear()
                await self._happened.wait()


def _upgrading(url: str, path: str) -> socket.socket:
    parts = urlsplit(url)
    raw = socket.create_connection((parts.hostname, parts.port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.sendall(
        f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {SUBPROTOCOLS[0]}\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    return raw


async def go_before_the_answer(url: str, path: str, times: int = 100) -> None:
    """Clients that are killed right after they asked for a WebSocket."""
    for i in range(times):
        raw = _upgrading(url, path)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for _ in range(i % 8):
            await asyncio.sleep(0)
        raw.close()
    async with RawSocket.connect(url, path):  # whatever came before has been dealt with
        pass


class RawSocket:
    """A client that can send frames that no library would, and that reads only when told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, path: str) -> AsyncIterator[Self]:
        raw = _upgrading(url, path)
        reader, writer = await asyncio.open_connection(sock=raw, limit=4096)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        try:
            yield cls(reader, writer)
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def close_frame(self) -> tuple[int, str]:
        """The code and reason of a close frame that is all that comes."""
        first, size = await self.reader.readexactly(2)
        assert first == 0x88, hex(first)
        payload = await self.reader.readexactly(size)
        return int.from_bytes(payload[:2], "big"), payload[2:].decode()


def masked(message: ToManager) -> bytes:
    """A message as a client's frame, with a mask that changes nothing."""
    payload = encode(message, NEWEST)
    assert len(payload) < 126
    return bytes((0x82, 0x80 | len(payload), 0, 0, 0, 0)) + payload
