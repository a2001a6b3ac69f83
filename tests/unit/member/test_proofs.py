"""A member's own listener, and who may relay to it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tenure import AiohttpRelay, Member, Relay
from tenure.client.refusals import HttpAnswer
from tenure.member.asgi import Receive, Scope, Send, respond
from tenure.member.listener import OwnListener
from tenure.protocol.lease.port_proof import PortProof
from tenure.transport import port_guard
from tenure.transport.port_guard import PortGuard
from tests.unit.manager.serving import serving
from tests.unit.member.test_relay import key_of

pytestmark = pytest.mark.asyncio
KEY = "/carts/{user}"
FORGED = "from a visitor"
OTHER = PortProof(secret=b"x" * 32, is_wanted=True)


@pytest.fixture(autouse=True)
def is_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_guard, "is_of_same_user", lambda *_: False)


class AsgiShop:
    """A member with an application of ASGI, and the port that its processes share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[bytes] = []

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen += [value for name, value in scope["headers"] if name == b"tenure-proof"]
        if scope["type"] == "http":
            await respond(send, HttpAnswer(200, {}, self.name))
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": self.name})
        await receive()

    @asynccontextmanager
    async def running(self, manager: str) -> AsyncIterator[tuple[Member, str]]:
        member = Member("carts", manager, drain=0)
        relay = Relay(self.app, member=member, key=KEY, deadline=1.0)
        shared = OwnListener(relay, "127.0.0.1:0")
        async with member.serving(relay):
            await shared.start()
            yield member, shared.url
            await shared.stop()


class AiohttpShop(AsgiShop):
    """The same with an application of aiohttp."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen += [value.encode() for value in request.headers.getall("tenure-proof", [])]
        if "Upgrade" not in request.headers:
            return web.Response(text=self.name)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(self.name)
        await socket.receive()
        return socket

    @asynccontextmanager
    async def running(self, manager: str) -> AsyncIterator[tuple[Member, str]]:
        member = Member("carts", manager, drain=0)
        app = web.Application(middlewares=[AiohttpRelay(member=member, key=KEY, deadline=1.0)])
        app.cleanup_ctx.append(member.cleanup_ctx)
        app.router.add_get("/carts/{user}", self.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server: Any = site._server
        yield member, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await runner.cleanup()


class Street:
    """Two shops, and a key that the first has."""

    def __init__(self, shops: list[AsgiShop], members: list[Member], urls: list[str]) -> None:
        self.shops, self.members, self.urls = shops, members, urls
        self.key = ""


@asynccontextmanager
async def street(kind: type[AsgiShop]) -> AsyncIterator[Street]:
    async with serving() as manager, AsyncExitStack() as stack:
        shops = [kind("first"), kind("second")]
        running = (shop.running(manager.service.url) for shop in shops)
        both = [await stack.enter_async_context(each) for each in running]
        made = Street(shops, [member for member, _ in both], [url for _, url in both])
        made.key = await key_of(made.members[0], made.members[1])
        yield made


@pytest_asyncio.fixture(params=[AsgiShop, AiohttpShop])
async def two(request: pytest.FixtureRequest) -> AsyncIterator[Street]:
    async with street(request.param) as made:
        yield made


async def test_a_member_relays_and_a_stranger_is_refused(
    two: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    challenges: list[str] = []
    challenge = PortGuard.challenge

    def counted(guard: PortGuard, at: str, nonce: str, ids: str) -> str | None:
        challenges.append(at)
        return challenge(guard, at, nonce, ids)

    monkeypatch.setattr(PortGuard, "challenge", counted)
    path = f"/carts/{two.key}"
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            headers = {"Tenure-Proof": FORGED}
            async with session.get(two.urls[1] + path, headers=headers) as got:
                assert (got.status, await got.text()) == (200, "first")
        assert len(challenges) == 1, "one proof is enough for a connection that is kept"
        async with session.ws_connect(two.urls[1] + path) as socket:
            assert await socket.receive_str() == "first"
        own = two.members[0].owner.address
        for headers in ({}, {"Tenure-Proof": "a b c d"}):
            async with session.get(own + path, headers=headers) as got:
                assert (got.status, got.headers["Tenure-Outcome"]) == (421, "not-begun")
                assert "proof" in await got.text()
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(own + path, headers=headers)
        async with session.get(own + "/.tenure/probe") as got:
            assert await got.text() == two.members[0].owner.name
    assert two.shops[0].seen == [], "an application gets no proof, forged or not"


async def test_requests_go_to_no_listener_that_does_not_prove_itself(two: Street) -> None:
    forwarding: Any = two.members[1]._forwarding
    forwarding._secret.told(OTHER)
    forwarding._secret._by_id = dict(list(forwarding._secret._by_id.items())[:1])
    path = f"/carts/{two.key}"
    async with aiohttp.ClientSession() as session:
        async with session.get(two.urls[1] + path) as got:
            assert (got.status, got.headers["Tenure-Outcome"]) == (503, "not-begun")
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(two.urls[1] + path)
