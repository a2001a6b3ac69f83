"""Requests at a member's own listener begin one after the other, and its probe waits for none."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from tenure.client.refusals import HttpAnswer
from tenure.member.aiohttp.listener import AiohttpDoor, AiohttpListener
from tenure.member.asgi import PROBE, Receive, Scope, Send, respond
from tenure.member.listener import MemberListener, OwnListener
from tenure.transport.credentials import NOTHING
from tests.patience import DEADLINE_SECONDS
from tests.unit.member.test_strangers import calling

REQUESTS = 100


class Begins:
    """In which passes of the loop requests begin."""

    def __init__(self) -> None:
        self.passes = 0
        self.of: list[int] = []
        self._next_pass()

    def _next_pass(self) -> None:
        self.passes += 1
        self._at = asyncio.get_running_loop().call_soon(self._next_pass)

    def add(self) -> None:
        self.of.append(self.passes)

    def stop(self) -> None:
        self._at.cancel()


def asgi(begins: Begins) -> MemberListener:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["path"] != PROBE:
            begins.add()
        await respond(send, HttpAnswer(200, {}, "here"))

    return OwnListener(app, "127.0.0.1:0", NOTHING)


def aiohttp(begins: Begins) -> MemberListener:
    async def here(_: web.Request) -> web.Response:
        begins.add()
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/", here)
    app.freeze()
    return AiohttpListener(AiohttpDoor(app, lambda: "here"), "127.0.0.1:0", NOTHING)


@pytest.mark.asyncio
@pytest.mark.parametrize("listening", [asgi, aiohttp])
async def test_requests_that_come_at_once_begin_in_turn_and_the_probe_is_answered_meanwhile(
    listening: Callable[[Begins], MemberListener],
) -> None:
    """Without an answer to its probe, a member loses its leases."""
    begins = Begins()
    listener = listening(begins)
    async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
        stack.callback(begins.stop)
        await listener.start()
        stack.push_async_callback(listener.stop)
        callers = [await stack.enter_async_context(calling(listener.url)) for _ in range(REQUESTS)]
        probe = await stack.enter_async_context(calling(listener.url))
        asked = [asyncio.ensure_future(each.ask()) for each in callers]
        assert await probe.ask(PROBE) == (200, b"here")
        assert len(begins.of) < REQUESTS / 2
        assert await asyncio.gather(*asked) == [(200, b"here")] * REQUESTS
        assert len(set(begins.of)) == REQUESTS
