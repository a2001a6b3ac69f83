"""Features of aiohttp's client alone: WebSockets, files, its own timeouts; and many requests."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tenure import NoOwner, OutcomeUnknown, route
from tenure.errors import Overloaded
from tests.patience import until
from tests.unit.routing.scripted import Table, scripted

pytestmark = pytest.mark.asyncio

BASE, KEY, PATH = "http://carts", "/carts/{user}", "/carts/ann"


def session(table: Table, **options: float) -> aiohttp.ClientSession:
    routing = route(table, key=KEY, **options)  # type: ignore[arg-type]
    return aiohttp.ClientSession(BASE, middlewares=[routing])


@asynccontextmanager
async def echoing(*, refuses: bool = False) -> AsyncIterator[str]:
    async def echo(request: web.Request) -> web.StreamResponse:
        if refuses:
            raise web.HTTPMisdirectedRequest
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    app = web.Application()
    app.router.add_get(KEY, echo)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


async def test_a_websocket_goes_to_the_owner_after_a_refusal_too() -> None:
    async with echoing(refuses=True) as wrong, echoing() as owner:
        table = Table(wrong)
        table.then = owner
        async with session(table) as client, client.ws_connect(PATH) as socket:
            await socket.send_str("hello")
            assert await socket.receive_str() == "hello"


@pytest.mark.parametrize("kind", ["file", "memory", "json", "form"])
async def test_bodies_that_can_be_sent_again_are(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"tea" * 1000)
    with scripted() as server, path.open("rb") as file:
        server.play("refuses", "refuses")
        bodies: dict[str, object] = {
            "file": file,
            "memory": io.BytesIO(b"tea" * 1000),
            "json": b'{"article": "tea"}',
            "form": {"article": "tea"},
        }
        async with (
            session(Table(server.url)) as client,
            client.post(PATH, data=bodies[kind]) as response,
        ):
            assert response.status == 200
    assert len({each.body for each in server.asked}) == 1
    assert len(server.asked) == 3
    assert server.asked[0].body


async def test_the_sessions_own_timeout_is_the_callers() -> None:
    with scripted() as server:
        server.play("stands_still")
        async with session(Table(server.url)) as client:
            limit = aiohttp.ClientTimeout(total=0.5)
            with pytest.raises(TimeoutError):
                await client.put(PATH, timeout=limit)
        server.play("stands_still")
        async with session(Table(server.url)) as client:
            limit = aiohttp.ClientTimeout(sock_read=0.5)
            with pytest.raises(TimeoutError):
                await client.put(PATH, timeout=limit)
    assert len(server.asked) <= 1, "it is not sent again"


async def test_a_caller_that_is_cancelled_leaves_nothing_behind() -> None:
    table = Table(None)
    with scripted() as server:
        server.play("stands_still")
        table.address = server.url
        async with session(table) as client:
            asking = asyncio.ensure_future(client.put(PATH).__aenter__())
            await until(lambda: len(table.watching) == 1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
    assert table.watching == []


async def test_over_the_cap_nothing_is_sent() -> None:
    with scripted() as server:
        server.play(*["stands_still"] * 3)
        async with session(Table(server.url), outstanding=3, deadline=1) as client:
            first = [asyncio.ensure_future(client.post(PATH).__aenter__()) for _ in range(3)]
            while len(server.asked) < 3:  # noqa: ASYNC110  # they come in another thread
                await asyncio.sleep(0)
            with pytest.raises(Overloaded):
                await client.post(PATH)
            for each in first:
                with pytest.raises(OutcomeUnknown):
                    await each
            assert len(server.asked) == 3
            async with client.post(PATH) as response:
                assert response.status == 200


async def test_many_at_once_have_deadlines_of_their_own() -> None:
    async with session(Table(None), deadline=0.1) as client:
        several = [client.get(PATH).__aenter__() for _ in range(100)]
        raised = await asyncio.gather(*several, return_exceptions=True)
    assert {type(each) for each in raised} == {NoOwner}
