"""Clients of a cache server that do only what a benchmark needs, and a bare echo for comparison."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from tenure.protocol.volume.messages import (
    Acknowledge,
    Fetch,
    Fetched,
    Invalidate,
    Reconnect,
    Reconnected,
    Renew,
    ToVolumeServer,
)
from tenure.wire.versions import NEWEST
from tenure.wire.volume import decode_to_cache, encode_volume


class Holder:
    """A reader, by hand."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, client: int) -> None:
        self.socket = socket
        self.client = client
        self.sequence = 1
        self.reader: dict[str, Any] = {}

    async def say(self, message: ToVolumeServer) -> None:
        await self.socket.send_bytes(encode_volume(message, NEWEST))

    async def hear(self) -> Any:  # noqa: ANN401  # whatever comes
        return decode_to_cache(await self.socket.receive_bytes(), NEWEST)

    async def come_on_record(self) -> None:
        """Have a number."""
        await self.say(Reconnect(client=self.client, sequence=1, history=0))
        answer = await self.hear()
        assert isinstance(answer, Reconnected)
        self.reader = {"client": self.client, "epoch": answer.epoch, "reader": answer.reader}

    async def fetch(self, key: bytes) -> None:
        """Hold an object lease."""
        self.sequence += 1
        await self.say(Fetch(**self.reader, sequence=self.sequence, key=key))
        answer = await self.hear()
        assert isinstance(answer, Fetched), answer
        assert answer.lease_ns

    def renewal(self) -> bytes:
        """The bytes of another."""
        self.sequence += 1
        renew = Renew(**self.reader, sequence=self.sequence, history=0)
        return encode_volume(renew, NEWEST)

    async def acknowledge_one(self) -> None:
        """Let go of what is written next."""
        said = await self.hear()
        assert isinstance(said, Invalidate), said
        items = tuple(item.item for item in said.items)
        await self.say(Acknowledge(**self.reader, items=items))


@asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    """An echo over WebSocket, in a thread of its own as a cache server is; its URL."""

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        async for said in socket:
            await socket.send_bytes(said.data)
        return socket

    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    here, stop = asyncio.get_running_loop(), threading.Event()

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/", echo)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        here.call_soon_threadsafe(url.set_result, f"http://127.0.0.1:{port}/")
        await asyncio.to_thread(stop.wait)
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="echo", daemon=True)
    thread.start()
    try:
        yield await url
    finally:
        stop.set()
        await asyncio.to_thread(thread.join)


def processor_seconds(name: str) -> float:
    """Return the processor time that the thread has used whose name begins so."""
    thread = next(each for each in threading.enumerate() if each.name.startswith(name))
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
