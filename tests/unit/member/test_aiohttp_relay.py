"""AiohttpRelay, on aiohttp's own servers; the members and the manager are real."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from struct import pack
from typing import Any

import pytest
from aiohttp import (
    ClientSession,
    ClientWebSocketResponse,
    WSCloseCode,
    WSMsgType,
    WSServerHandshakeError,
    web,
)
from yarl import URL

from tenure import AiohttpRelay, Busy, LeaseLost, Member, NotOwner, UsageError, owned
from tenure.member import relay as relay_module
from tenure.member.aiohttp import exchange, websocket_relay
from tenure.member.aiohttp.socket import UNFINISHED
from tenure.routing.template import PathKey, Templates
from tenure.transport import unfinished_messages
from tests.patience import DEADLINE_SECONDS, until
from tests.sessions import client_session
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


class Shop:
    """One process: a server with a shared port, as it were, and a member."""

    def __init__(self, name: str, manager: str) -> None:
        self.name = name
        self.manager = manager
        self.error: BaseException | None = None
        self.begins_first = False
        self.deaf = False
        self.bodies: list[bytes] = []
        self.got: list[Any] = []
        self.closed: list[int | None] = []
        self.url = ""
        self.member: Member
        self.runner: web.AppRunner

    async def start(self, key: PathKey, **options: Any) -> None:  # noqa: ANN401
        self.member = Member("carts", self.manager, drain=0)
        relay = AiohttpRelay(member=self.member, key=key, **options)
        app = web.Application(middlewares=[relay])
        app.cleanup_ctx.append(self.member.cleanup_ctx)
        app.router.add_get("/carts/{user}/talk", self.talk)
        app.router.add_get("/carts/{user}/silent", self.silent)
        app.router.add_get("/carts/{user}/flood", self.flood)
        app.router.add_get("/carts/{user}/name", self.echo_name)
        app.router.add_get("/carts/{user}/lease", self.lease)
        app.router.add_route("*", "/{rest:.*}", self.answer)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = "http://{}:{}".format(*self.runner.addresses[0][:2])
        await self.member.owner.ready()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        if self.begins_first:
            begun = web.StreamResponse()
            await begun.prepare(request)
            await begun.write(b"half")
        if self.error is not None:
            raise self.error
        return web.Response(
            text=self.name, headers={"Ours": str("Tenure-Relayed" in request.headers)}
        )

    async def lease(self, request: web.Request) -> web.Response:
        lease = await owned("user")(request)
        return web.json_response(lease.number)

    async def silent(self, request: web.Request) -> web.StreamResponse:
        """Begins an answer, and says nothing more until its client has gone."""
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begun")
        await until(lambda: request.transport is None)
        self.closed.append(None)
        return response

    async def flood(self, request: web.Request) -> web.StreamResponse:
        socket: web.WebSocketResponse[Any] = web.WebSocketResponse()
        await socket.prepare(request)
        try:
            while True:
                await socket.send_bytes(b"x" * 65_536)
                self.got.append(None)
        finally:
            self.closed.append(None)

    async def echo_name(self, request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Name"], headers={"Name": request.headers["Name"]})

    async def talk(self, request: web.Request) -> web.StreamResponse:
        socket: web.WebSocketResponse[Any] = web.WebSocketResponse()
        await socket.prepare(request)
        while self.deaf:
            await asyncio.Event().wait()
        async for message in socket:
            self.got.append(message.data)
            await socket.send_str(message.data)
        self.closed.append(socket.close_code)
        return socket


class Street:
    """Shops of one pool."""

    def __init__(self, stack: AsyncExitStack, manager: str, session: ClientSession) -> None:
        self._stack = stack
        self._manager = manager
        self.session = session

    async def shop(self, name: str, key: PathKey = "/carts/{user}", **options: Any) -> Shop:  # noqa: ANN401
        shop = Shop(name, self._manager)
        await shop.start(key, **options)
        self._stack.push_async_callback(shop.runner.cleanup)
        return shop


@asynccontextmanager
async def street() -> AsyncIterator[Street]:
    async with (
        serving() as manager,
        client_session() as session,
        AsyncExitStack() as stack,
    ):
        yield Street(stack, manager.service.url, session)


def unfinished_are(count: int) -> bool:
    return len(UNFINISHED) == count


async def key_of(owner: Shop, asked: Shop) -> str:
    """A key that `owner` has, as `asked` knows."""
    address = owner.member.owner.address

    def found() -> str | None:
        for key in map(str, range(100)):
            if owner.member.check(key) and asked.member.find(key) == address:
                return key
        return None

    return await until(found) or ""


async def test_what_is_ours_is_served_here_and_the_rest_by_its_owner() -> None:
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        for body in (b"", b"tea", b"x" * 200_000):
            async with it.session.put(f"{second.url}/carts/{key}/x?y=1", data=body) as got:
                assert (got.status, await got.text(), got.headers["Ours"]) == (
                    200,
                    "first",
                    "False",
                )
        assert first.bodies == [b"", b"tea", b"x" * 200_000]
        assert second.bodies == []
        assert sum(first.member.owner._engine.board.current.given) == 3


async def test_what_becomes_ours_while_it_waits_is_served_here_with_its_body() -> None:
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        await first.member._listener.stop()
        asking = asyncio.ensure_future(it.session.post(f"{second.url}/carts/{key}", data=b"tea"))
        await asyncio.sleep(0.05)
        await first.member.owner.close(drain=0)
        async with await asking as got:
            assert (got.status, await got.text()) == (200, "second")
        assert second.bodies == [b"tea"]


async def test_with_relay_false_what_is_anothers_is_refused_and_its_owner_named() -> None:
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second", relay=False)
        key = await key_of(first, second)
        async with it.session.post(f"{second.url}/carts/{key}") as got:
            assert got.status == 421
            assert got.headers["Tenure-Owner"] == first.member.owner.address
        with pytest.raises(WSServerHandshakeError) as denied:
            await it.session.ws_connect(f"{second.url}/carts/{key}/talk")
        assert denied.value.status == 421


async def test_errors_of_handlers_become_true_answers() -> None:
    async with street() as it:
        shop = await it.shop("only")
        for error, status, outcome in (
            (NotOwner("x"), 421, "not-begun"),
            (LeaseLost("x"), 503, "unknown"),
            (Busy("x"), 503, "not-begun"),
        ):
            shop.error = error
            async with it.session.post(f"{shop.url}/carts/ann") as got:
                assert (got.status, got.headers["Tenure-Outcome"]) == (status, outcome)
        shop.error = web.HTTPConflict()
        async with it.session.post(f"{shop.url}/carts/ann") as got:
            assert got.status == 409


async def test_an_answer_that_has_begun_is_not_followed_by_another() -> None:
    async with street() as it:
        shop = await it.shop("only")
        shop.error, shop.begins_first = LeaseLost("x"), True
        async with it.session.post(f"{shop.url}/carts/ann") as got:
            assert got.status == 200
            with pytest.raises(Exception, match="payload"):
                await got.read()


async def test_readiness_follows_the_lease_and_other_paths_are_served_anywhere() -> None:
    async with street() as it:
        shop = await it.shop("only", ready="/ready")
        for path in ("/ready", "/", "/carts"):
            async with it.session.get(shop.url + path) as got:
                assert got.status == 200
        await shop.member.owner.close(drain=0)
        async with it.session.get(f"{shop.url}/ready") as got:
            assert got.status == 503


async def test_owned_gives_the_lease_of_the_key_that_the_template_names() -> None:
    async with street() as it:
        shop = await it.shop("only", key="/carts/{user:int}")
        async with it.session.get(f"{shop.url}/carts/42/lease") as got:
            assert await got.json() == shop.member.check(42).number  # type: ignore[union-attr]
        async with it.session.get(f"{shop.url}/carts/{2**64}/lease") as got:
            assert got.status == 400
        for wrong in ("", 3):
            with pytest.raises(Exception, match="parameter"):
                owned(wrong)  # type: ignore[arg-type]


async def test_owned_without_the_middleware_says_what_to_add() -> None:
    async with street() as it:
        shop = await it.shop("only")
        request: Any = type("Request", (), {"match_info": {"user": "ann"}})()
        with pytest.raises(UsageError, match="AiohttpRelay"):
            await owned("user")(request)
        with pytest.raises(UsageError, match=r"without \{cart\}"):
            await owned("cart", member=shop.member)(request)


@pytest.mark.parametrize("forged", ["x", "http://127.0.0.1:1 6.6.6.6 80 https", "a b c d"])
async def test_a_forged_header_of_ours_is_taken_out(forged: str) -> None:
    async with street() as it:
        shop = await it.shop("only")
        headers = {"Tenure-Relayed": forged, "Name": "ü"}
        async with it.session.post(f"{shop.url}/carts/ann", headers=headers) as got:
            assert (got.status, got.headers["Ours"]) == (200, "False")


async def test_headers_in_utf_8_arrive_as_they_were_sent() -> None:
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        for name in ("Jürgen", "🍵", "a" * 4_000):
            url = f"{second.url}/carts/{key}/name"
            async with it.session.get(url, headers={"Name": name}) as got:
                assert (got.headers["Name"], await got.text()) == (name, name)


async def test_a_relayed_stream_ends_when_its_client_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.member.aiohttp.exchange.LOOKS_EVERY_SECONDS", 0.02)
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        async with it.session.get(f"{second.url}/carts/{key}/silent") as got:
            assert await got.content.readany() == b"begun"
            got.close()
        await until(lambda: first.closed)


@pytest.mark.parametrize("spelled", ["a%2Fb", "a%252Fb", "%C3%A4nn", "a%20b", "a;b"])
async def test_a_key_is_what_clients_that_route_take_it_for(spelled: str) -> None:
    key = Templates("/carts/{user}").find_raw(f"/carts/{spelled}")
    assert key is not None
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        await key_of(second, first)
        owner = first if first.member.check(key) else second
        for shop in (first, second):
            url = URL(f"{shop.url}/carts/{spelled}/lease", encoded=True)
            async with it.session.get(url) as got:
                assert await got.json() == owner.member.check(key).number  # type: ignore[union-attr]


async def test_a_key_that_is_not_utf_8_is_refused() -> None:
    async with street() as it:
        shop = await it.shop("only")
        for spelled in ("%ff", "%c3%28"):
            async with it.session.get(URL(f"{shop.url}/carts/{spelled}", encoded=True)) as got:
                assert got.status == 400
        assert shop.bodies == []


# --- WebSockets ---


async def code_of(socket: ClientWebSocketResponse[Any]) -> int:
    """The code with which the server closes it."""
    message = await socket.receive()
    assert message.type is WSMsgType.CLOSE
    return int(message.data)


async def test_websockets_are_closed_with_1012_when_the_lease_is_lost_relayed_or_not() -> None:
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        sockets = []
        for url in (first.url, second.url):
            socket = await it.session.ws_connect(f"{url}/carts/{key}/talk")
            await socket.send_str("hello")
            assert (await socket.receive_str()) == "hello"
            sockets.append(socket)
        before = sum(first.member.owner._engine.board.current.given)
        assert before == 4, "two connections, and a message on each"
        await first.member.owner.close(drain=0)
        for socket in sockets:
            assert await code_of(socket) == 1012
        await until(lambda: len(first.closed) == 2)


@pytest.mark.parametrize("pieces", [1, 5])
async def test_a_message_that_is_too_large_is_not_kept_but_ends_its_websocket(
    monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    """It is the relay of a stranger that would keep it, and any size was taken."""
    monkeypatch.setattr(exchange, "MESSAGE_BYTES", 1000)
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        socket = await it.session.ws_connect(f"{second.url}/carts/{key}/talk")
        await socket.send_str("x" * 999)
        assert await socket.receive_str() == "x" * 999
        writer = socket._writer
        for piece in range(pieces):
            opcode = WSMsgType.CONTINUATION if piece else WSMsgType.BINARY
            is_last = piece == pieces - 1
            frame = bytes([(is_last << 7) | opcode, 0xFE]) + pack(">H", 1001 // pieces)
            writer.transport.write(frame + bytes(4 + 1001 // pieces))
        assert await code_of(socket) == WSCloseCode.MESSAGE_TOO_BIG
        await until(lambda: len(first.closed) == 1)
        assert first.got == ["x" * 999]


async def test_unfinished_messages_of_one_client_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The relay would keep all but the last byte of a message for each of its connections."""
    monkeypatch.setattr(unfinished_messages, "KEPT_BYTES", 1 << 20)
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        sockets = [await it.session.ws_connect(f"{second.url}/carts/{key}/talk") for _ in range(8)]
        size, most = 1 << 18, 3
        for at, socket in enumerate(sockets):
            head = bytes([(1 << 7) | WSMsgType.TEXT, 0xFF]) + pack(">Q", size)
            socket._writer.transport.write(head + bytes(4 + size - 1))
            if at >= most:
                assert (await sockets[at - most].receive()).type is WSMsgType.CLOSED
            await until(partial(unfinished_are, min(at + 1, most)))
        for socket in sockets[-most:]:
            socket._writer.transport.write(bytes(1))
            assert await socket.receive_str() == "\0" * size
        assert len(first.got) == most
    assert len(UNFINISHED) == 0


async def test_an_owner_that_sends_a_message_that_is_too_large_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket_relay, "MESSAGE_BYTES", 60_000)
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key = await key_of(first, second)
        socket = await it.session.ws_connect(f"{second.url}/carts/{key}/flood")
        assert await code_of(socket) == WSCloseCode.MESSAGE_TOO_BIG
        await until(lambda: len(first.closed) == 1)


async def test_a_handler_that_does_not_listen_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "ENDS_WITHIN_SECONDS", 0.05)
    async with street() as it:
        shop = await it.shop("only")
        shop.deaf = True
        socket = await it.session.ws_connect(f"{shop.url}/carts/ann/talk")
        await shop.member.owner.close(drain=0)
        assert await code_of(socket) == 1012


async def never_reading(asked: Shop, key: str, owner: Shop) -> asyncio.StreamWriter:
    """A client that is sent more than it reads, once nothing more of it goes out."""
    host, port = asked.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(
        f"GET /carts/{key}/flood HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert (await reader.readline()).split()[1] == b"101"
    sent = 0
    while not sent or sent < len(owner.got):
        sent = len(owner.got)
        await asyncio.sleep(0.2)
    return writer


@pytest.mark.parametrize("is_relayed", [False, True])
async def test_a_client_that_never_reads_keeps_no_handler_when_the_lease_is_lost(
    monkeypatch: pytest.MonkeyPatch,
    is_relayed: bool,
) -> None:
    monkeypatch.setattr(relay_module, "ENDS_WITHIN_SECONDS", 0.05)
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        key, asked = await key_of(first, second), second if is_relayed else first
        writer = await never_reading(asked, key, first)
        assert not first.closed
        await first.member.owner.close(drain=0)
        await until(lambda: first.closed)
        writer.close()


async def test_a_client_that_never_reads_does_not_keep_the_server_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenure.member.aiohttp.exchange.CLOSE_SECONDS", 0.05)
    async with street() as it:
        shop = await it.shop("only")
        writer = await never_reading(shop, "ann", shop)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await shop.runner.cleanup()
        assert shop.closed
        writer.close()


async def test_sockets_of_the_shared_port_are_closed_before_the_server_waits_for_them() -> None:
    async with street() as it:
        shop = await it.shop("only")
        socket = await it.session.ws_connect(f"{shop.url}/carts/ann/talk")
        ending = asyncio.ensure_future(shop.runner.cleanup())
        assert await code_of(socket) == 1012
        await ending
        assert not shop.member.is_entered


async def test_a_member_that_nobody_enters_says_how() -> None:
    member = Member("carts", "http://127.0.0.1:1")
    app = web.Application(middlewares=[AiohttpRelay(member=member, key="/carts/{user}")])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = "http://{}:{}".format(*runner.addresses[0][:2])
    async with ClientSession(url) as session, session.get("/carts/ann") as got:
        assert (got.status, got.headers["Tenure-Outcome"]) == (503, "not-begun")
    await runner.cleanup()


async def test_the_listener_refuses_until_the_application_is_ready() -> None:
    """Its middlewares are in place only then, and without them it would serve any key."""
    async with serving() as manager, ClientSession() as session:
        member = Member("carts", manager.service.url, drain=0)
        shop = Shop("only", manager.service.url)
        app = web.Application(middlewares=[AiohttpRelay(member=member, key="/carts/{user}")])
        app.router.add_route("*", "/{rest:.*}", shop.answer)
        statuses: list[int] = []

        async def later(_: web.Application) -> AsyncIterator[None]:
            async with session.get(f"{member.owner.address}/carts/ann") as got:
                statuses.append(got.status)
            yield

        app.cleanup_ctx.extend([member.cleanup_ctx, later])
        runner = web.AppRunner(app)
        await runner.setup()
        assert (statuses, shop.bodies) == ([421], [])
        await runner.cleanup()
