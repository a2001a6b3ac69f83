"""Entities in a service of aiohttp: a room whose WebSockets its handlers attach."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tenure import Entities, Entity, Socket, UsageError
from tests.sessions import client_session
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio
WebSocket: TypeAlias = "aiohttp.ClientWebSocketResponse[Any]"


class Lines(msgspec.Struct):
    last: list[str] = []


class Room(Entity[Lines]):
    async def on_connect(self, socket: Socket[str]) -> None:
        socket.send("welcome")  # a handshake alone does not say that the room knows of it yet

    async def on_message(self, socket: Socket[str], text: str | bytes) -> None:
        if text == "bye":
            socket.close(4001)
            return
        if isinstance(text, bytes):
            socket.send(text[::-1])
            return
        self.state.last = [*self.state.last, f"{socket.attachment}: {text}"]
        self.broadcast(self.state.last[-1])

    async def lines(self) -> list[str]:
        return self.state.last


class Service:
    def __init__(self, url: str, rooms: Entities[Room], runner: web.AppRunner) -> None:
        self.url = url
        self.rooms = rooms
        self.runner = runner


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    async with serving(preset="default") as manager:  # its terms outlast a stall
        rooms = Entities(Room, pool="rooms", managers=manager.service.url)

        async def talk(request: web.Request) -> web.StreamResponse:
            key, name = request.match_info["room"], request.query["name"]
            answer: web.StreamResponse = await rooms[key].attach(request, attachment=name)
            return answer

        app = web.Application()
        app.cleanup_ctx.append(rooms.cleanup_ctx)
        app.router.add_get("/rooms/{room}", talk)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            async with asyncio.timeout(60):
                url = "http://{}:{}".format(*runner.addresses[0][:2])
                yield Service(url, rooms, runner)
        finally:
            await runner.cleanup()


async def entered(session: aiohttp.ClientSession, name: str) -> WebSocket:
    socket = await session.ws_connect(f"/rooms/attic?name={name}")
    assert await socket.receive_str() == "welcome"
    return socket


async def test_handlers_attach_their_requests() -> None:
    async with service() as it, client_session(it.url) as session:
        ann = await entered(session, "ann")
        bob = await entered(session, "bob")
        await ann.send_str("hello")
        assert [await ann.receive_str(), await bob.receive_str()] == ["ann: hello"] * 2
        await bob.send_bytes(b"abc")
        assert await bob.receive_bytes() == b"cba"
        await bob.send_str("bye")
        closing = await bob.receive()
        assert (closing.type, closing.data) == (aiohttp.WSMsgType.CLOSE, 4001)
        await ann.close()
        assert await it.rooms["attic"].lines() == ["ann: hello"]


async def test_sockets_are_closed_when_the_server_begins_to_shut_down() -> None:
    async with service() as it, client_session(it.url) as session:
        ann = await entered(session, "ann")
        await ann.send_str("hello")
        await ann.receive_str()
        ending = asyncio.ensure_future(it.runner.cleanup())
        closing = await ann.receive()
        assert (closing.type, closing.data) == (aiohttp.WSMsgType.CLOSE, 1012)
        await ending


async def test_a_request_that_opens_no_websocket_is_refused() -> None:
    async with service() as it, client_session(it.url) as session:
        async with session.get("/rooms/attic?name=ann") as answer:
            assert answer.status == 400
        with pytest.raises(UsageError, match="a WebSocket of Starlette or FastAPI"):
            await it.rooms["attic"].attach("ws://attic")
