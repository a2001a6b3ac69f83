"""Strangers at a member's own listener: they take no place that its pool needs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tenure.base.challenges import Challenge
from tenure.client.refusals import HttpAnswer
from tenure.member.aiohttp.listener import AiohttpDoor, AiohttpListener
from tenure.member.asgi import Receive, Scope, Send, respond
from tenure.member.listener import MemberListener, OwnListener
from tenure.protocol.lease.port_proof import PortProof
from tenure.transport import port_guard
from tenure.transport.connection_limits import LEAST_STRANGERS, ConnectionLimits
from tenure.transport.credentials import NOTHING
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import HEADER, PATH, PortGuard
from tenure.transport.proving import answered, asked_for
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
LIMITS = ConnectionLimits(connections=LEAST_STRANGERS + 8)
NONCE = "0" * 32


def asgi(guard: PortGuard) -> MemberListener:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        assert scope["type"] == "http"
        await respond(send, HttpAnswer(200, {}, "here"))

    return OwnListener(app, "127.0.0.1:0", NOTHING, LIMITS, guard)


def aiohttp(guard: PortGuard) -> MemberListener:
    async def here(_: web.Request) -> web.Response:
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/", here)
    app.freeze()
    return AiohttpListener(AiohttpDoor(app, str), "127.0.0.1:0", NOTHING, LIMITS, guard)


class Caller:
    """A connection to the listener, over which one request after another is sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def ask(self, path: str = "/", header: str = "") -> tuple[int, bytes]:
        """Send a request; the status and the body of the answer."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length:")[2].split()[0])
        return int(head.split()[1]), await self._reader.readexactly(size)


@asynccontextmanager
async def calling(url: str) -> AsyncIterator[Caller]:
    parts = urlsplit(url)
    caller = Caller(*await asyncio.open_connection(parts.hostname, parts.port))
    try:
        yield caller
    finally:
        caller.writer.close()


@pytest.mark.parametrize("listening", [asgi, aiohttp])
async def test_strangers_give_way_to_each_other_and_to_the_processes_of_the_pool(
    listening: Callable[[PortGuard], MemberListener], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a place for its own probe, a member loses its leases."""
    monkeypatch.setattr(port_guard, "is_of_same_user", lambda *_: False)
    secret = PoolSecret()
    secret.told(PortProof(secret=b"x" * 32, is_wanted=True))
    guard = PortGuard(secret)
    listener = listening(guard)
    guard.answers_to(listener.url)
    async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
        await listener.start()
        stack.push_async_callback(listener.stop)
        member = await stack.enter_async_context(calling(listener.url))
        _, said = await member.ask(f"{PATH}?{asked_for(listener.url, NONCE, secret.ids)}")
        proof = answered(said, Challenge(listener.url, NONCE, ""), secret)
        assert await member.ask("/", f"{HEADER}: {proof}\r\n") == (200, b"here")
        for _ in range(LIMITS.most):
            stranger = await stack.enter_async_context(calling(listener.url))
            assert (await stranger.ask())[0] == 421
        assert await member.ask() == (200, b"here")
