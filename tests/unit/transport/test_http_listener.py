"""A port that speaks HTTP: how many connections have a request answered in one pass."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, aclosing

import pytest
from aiohttp import web

from tenure.transport.bounded_port import log_refused
from tenure.transport.http_listener import HttpListener
from tests.patience import DEADLINE_SECONDS

CONNECTIONS = 20
REQUESTS = 5
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Passes:
    """Counts the passes of the event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._begin_next()

    def _begin_next(self) -> None:
        self.count += 1
        self._next = asyncio.get_running_loop().call_soon(self._begin_next)

    async def aclose(self) -> None:
        self._next.cancel()


@pytest.mark.asyncio
async def test_in_a_pass_one_request_begins_however_many_connections_ask() -> None:
    """Whoever has a thousand connections would otherwise keep the next from being taken: one is, a
    pass.
    """
    begun: Counter[int] = Counter()
    all_begun = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        begun[passes.count] += 1
        if begun.total() == CONNECTIONS * REQUESTS:
            all_begun.set()
        return web.Response()

    app = web.Application()
    app.router.add_get("/", answer)
    listener = HttpListener(app, log_refused, log_refused)
    async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
        port = await listener.listen("127.0.0.1", 0, None)
        stack.push_async_callback(listener.close)
        writers = []
        for _ in range(CONNECTIONS):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            stack.callback(writer.close)
        passes = await stack.enter_async_context(aclosing(Passes()))
        for writer in writers:
            writer.write(REQUEST * REQUESTS)
        await all_begun.wait()
    assert max(begun.values()) == 1
