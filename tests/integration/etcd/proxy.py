"""A way to a server that can be broken: answers get lost or late, or nothing is ever said."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

from tests.patience import until

Mode = Literal["pass", "lose answers", "stall", "hold"]
"""`hold` is a network that is parted: what was sent meanwhile arrives when it is whole again."""

LOOK_SECONDS = 0.01


class Proxy:
    """Passes on to one member, as `mode` says at the moment."""

    def __init__(self, target: str) -> None:
        self.turn_to(target)
        self.mode: Mode = "pass"
        self.delay_seconds = 0.0
        """How late every answer is."""
        self.connections = 0
        self.requests = 0
        self.url = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def turn_to(self, target: str) -> None:
        """Pass new connections on to another server."""
        parts = urlsplit(target)
        self._host, self._port = parts.hostname, parts.port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:  # nobody listens there: act as if nobody listened here
            writer.transport.abort()
            return
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(
                self._pump(reader, back, is_answer=False), self._pump(there, writer, is_answer=True)
            )
        for each in (writer, back):
            each.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        while data := await reader.read(1 << 16):
            self.requests += not is_answer
            await until(lambda: self.mode != "hold")
            is_lost = self.mode == "stall" or (self.mode == "lose answers" and is_answer)
            if not is_lost:
                if is_answer and self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def proxy_to(target: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
