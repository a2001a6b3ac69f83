"""Relay, around applications in this process; the members and the manager are real."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import pytest_asyncio

from tenure import (
    Busy,
    ConfigurationError,
    LeaseLost,
    Member,
    NotOwner,
    Relay,
    TenureError,
    UsageError,
)
from tenure.client.refusals import HttpAnswer
from tenure.member import relay as relay_module
from tenure.member.asgi import App, Message, Receive, Scope, Send, respond
from tenure.routing.template import Templates
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio

KEY = "/carts/{user}"


class Shop:
    """An application that names its member, or raises; once, or for as long as it has an error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.begins_first = False
        self.raises_once = False
        self.served = 0
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.served += 1
        message = await receive()
        self.bodies.append(message.get("body", b""))
        if self.begins_first:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        error = self.error
        if self.raises_once:
            self.error = None
        if error is not None:
            raise error
        await respond(send, HttpAnswer(200, {"served-by": self.name}, scope["path"]))


def asking(app: App) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://shop")


class Stage:
    """Members of one pool, each with an application of its own."""

    def __init__(self, stack: AsyncExitStack, manager: str) -> None:
        self.manager = manager
        self._stack = stack

    async def member(self, app: App, **options: Any) -> tuple[Member, Relay]:  # noqa: ANN401
        member = Member("carts", self.manager, drain=0)
        relay = Relay(app, member=member, key=KEY, **options)
        await self._stack.enter_async_context(member.serving(relay))
        return member, relay

    async def crash(self, member: Member) -> None:
        """Close its listener, and leave its owner running."""
        await member._listener.stop()


@asynccontextmanager
async def stage(preset: str = "default") -> AsyncIterator[Stage]:
    async with serving(preset=preset) as manager, AsyncExitStack() as stack:
        yield Stage(stack, manager.service.url)


async def key_of(owner: Member, asked: Member) -> str:
    """A key that `owner` has, as `asked` knows, when both have keys."""
    await owner.owner.ready()
    await asked.owner.ready()
    address = owner.owner.address

    def found() -> str | None:
        for key in map(str, range(100)):
            if owner.check(key) and asked.find(key) == address:
                return key
        return None

    return await until(found) or ""


@pytest_asyncio.fixture
async def one() -> AsyncIterator[tuple[Shop, Member, Relay]]:
    async with stage() as it:
        shop = Shop("only")
        member, relay = await it.member(shop, ready="/ready")
        await member.owner.ready()
        yield shop, member, relay


async def test_what_is_ours_is_served_here_and_the_rest_by_its_owner() -> None:
    async with stage() as it:
        shops = Shop("first"), Shop("second")
        first, _ = await it.member(shops[0])
        second, relay = await it.member(shops[1])
        key = await key_of(first, second)
        async with asking(relay) as client:
            got = await client.put(f"/carts/{key}/x", content=b"tea")
            assert (got.status_code, got.headers["served-by"]) == (200, "first")
            assert shops[0].bodies == [b"tea"]
            assert shops[1].served == 0
            await first.owner.close(drain=0)
            got = await client.post(f"/carts/{key}/x", content=b"tea")
            assert got.headers["served-by"] == "second"


async def test_with_relay_false_what_is_anothers_is_refused_and_its_owner_named() -> None:
    async with stage() as it:
        first, _ = await it.member(Shop("first"))
        second, relay = await it.member(Shop("second"), relay=False)
        key = await key_of(first, second)
        async with asking(relay) as client:
            got = await client.post(f"/carts/{key}")
        assert got.status_code == 421
        assert got.headers["Tenure-Owner"] == first.owner.address


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        (NotOwner("x"), 421, "not-begun"),
        (LeaseLost("x"), 503, "unknown"),
        (Busy("x"), 503, "not-begun"),
    ],
)
async def test_errors_of_the_application_become_true_answers(
    one: tuple[Shop, Member, Relay], error: TenureError, status: int, outcome: str
) -> None:
    shop, _, relay = one
    shop.error = error
    async with asking(relay) as client:
        got = await client.post("/carts/ann")
        assert (got.status_code, got.headers["Tenure-Outcome"]) == (status, outcome)
        shop.begins_first = True
        with pytest.raises(type(error)):
            await client.post("/carts/ann")


async def test_other_errors_are_left_to_the_server(one: tuple[Shop, Member, Relay]) -> None:
    shop, _, relay = one
    async with asking(relay) as client:
        for error in (ValueError("x"), UsageError("x")):
            shop.error = error
            with pytest.raises(type(error)):
                await client.post("/carts/ann")


async def test_paths_without_a_key_are_served_here(one: tuple[Shop, Member, Relay]) -> None:
    shop, member, relay = one
    async with asking(relay) as client:
        for path in ("/", "/health", "/carts", "/carts/"):
            assert (await client.get(path)).headers["served-by"] == "only"
    assert shop.served == 4
    assert member.owner.loads()[0][1] == 0


async def test_readiness_follows_the_lease(one: tuple[Shop, Member, Relay]) -> None:
    _, member, relay = one
    async with asking(relay) as client:
        assert (await client.get("/ready")).status_code == 200
        await member.owner.close(drain=0)
        assert (await client.get("/ready")).status_code == 503


async def test_before_and_after_it_is_entered_a_member_refuses() -> None:
    member = Member("carts", "http://127.0.0.1:1")
    async with asking(Relay(Shop("x"), member=member, key=KEY, ready="/ready")) as client:
        got = await client.post("/carts/ann")
        assert (got.status_code, got.headers["Tenure-Outcome"]) == (503, "not-begun")
        assert (await client.get("/ready")).status_code == 503
        assert (await client.get("/health")).status_code == 200


async def test_a_member_that_nobody_enters_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    member = Member("carts", "http://127.0.0.1:1")
    async with asking(Relay(Shop("x"), member=member, key=KEY)) as client:
        await client.get("/health")
        assert not caplog.messages
        for _ in range(2):
            assert (await client.post("/carts/ann")).status_code == 503
    [warning] = [each for each in caplog.records if each.name == "tenure.member"]
    assert "lifespan=member.lifespan" in warning.getMessage()


async def test_a_member_that_has_left_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as it:
        member = Member("carts", it.manager, drain=0)
        relay = Relay(Shop("x"), member=member, key=KEY)
        async with member.serving(relay):
            pass
        async with asking(relay) as client:
            assert (await client.post("/carts/ann")).status_code == 503
    assert not [each for each in caplog.records if each.name == "tenure.member"]


async def test_at_its_own_listener_a_member_that_leaves_sends_clients_on() -> None:
    """It does so until its listener is closed, which is the last thing that it does."""
    async with stage() as it:
        refused: list[int] = []
        member = Member("carts", it.manager, drain=0)
        relay = Relay(Shop("x"), member=member, key=KEY)
        async with member.serving(relay):
            await member.owner.ready()
            door = member._own_door(relay)
            await member._leave()
            async with asking(door) as client:
                refused.append((await client.post("/carts/ann")).status_code)
        async with asking(door) as client:
            refused.append((await client.post("/carts/ann")).status_code)
        assert refused == [421, 421]


async def test_a_key_that_cannot_be_one_is_the_clients_mistake() -> None:
    async with stage() as it:
        member = Member("carts", it.manager, drain=0)
        relay = Relay(Shop("x"), member=member, key="/carts/{user:int}")
        async with member.serving(relay), asking(relay) as client:
            got = await client.get(f"/carts/{2**64}")
            assert got.status_code == 400
            assert str(2**64) in got.text


async def test_a_key_that_is_not_utf_8_is_refused_and_not_read_as_another(
    one: tuple[Shop, Member, Relay],
) -> None:
    shop, _, relay = one
    async with asking(relay) as client:
        got = await client.get("/carts/%ff")
        assert (got.status_code, shop.served) == (400, 0)
        assert (await client.get("/files/%ff")).status_code == 200


@pytest.mark.parametrize(
    "spelled", ["a%2Fb", "a%252Fb", "%C3%A4nn", "a%20b", "%F0%9F%8D%B5", "a;b"]
)
async def test_a_request_goes_to_its_owner_however_the_key_is_spelled(spelled: str) -> None:
    key = Templates(KEY).find(unquote(f"/carts/{spelled}"))
    assert key is not None
    async with stage() as it:
        shops = Shop("first"), Shop("second")
        first, ours = await it.member(shops[0])
        second, theirs = await it.member(shops[1])
        await key_of(second, first)
        name = "first" if first.check(key) else "second"
        for relay in (ours, theirs):
            async with asking(relay) as client:
                got = await client.get(f"/carts/{spelled}/x")
                assert (got.status_code, got.headers["served-by"]) == (200, name)


async def test_below_a_root_path_a_request_is_relayed_without_the_root() -> None:
    async with stage() as it:
        shops = Shop("first"), Shop("second")
        first, _ = await it.member(shops[0])
        second, relay = await it.member(shops[1])
        key = await key_of(first, second)
        transport = httpx.ASGITransport(relay, root_path="/api")
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            got = await client.put(f"/api/carts/{key}/x", content=b"tea")
        assert (got.status_code, got.headers["served-by"]) == (200, "first")
        assert got.text == f"/carts/{key}/x"


@pytest.mark.parametrize(("size", "is_repeated"), [(65_536, True), (65_537, False)])
async def test_a_body_that_is_too_large_to_be_kept_is_sent_once(
    size: int,
    is_repeated: bool,
) -> None:
    async with stage() as it:
        shop = Shop("first")
        shop.error, shop.raises_once = NotOwner("it has just moved"), True
        first, _ = await it.member(shop)
        second, relay = await it.member(Shop("second"), deadline=DEADLINE_SECONDS)
        key = await key_of(first, second)
        async with asking(relay) as client:
            got = await client.post(f"/carts/{key}", content=b"x" * size)
        assert (got.status_code, shop.served) == ((200, 2) if is_repeated else (503, 1))
        assert got.headers.get("Tenure-Outcome") == (None if is_repeated else "not-begun")


async def test_nobody_takes_it_in_time() -> None:
    """The owner that has the key is gone, and it is too early for another one to have it."""
    async with stage() as it:
        first, _ = await it.member(Shop("first"))
        second, relay = await it.member(Shop("second"), deadline=0.2)
        key = await key_of(first, second)
        await it.crash(first)
        async with asking(relay) as client:
            got = await client.post(f"/carts/{key}", content=b"tea")
        assert (got.status_code, got.headers["Tenure-Outcome"]) == (503, "not-begun")
        assert got.headers["Retry-After"] == "1"


async def test_a_member_whose_listener_does_not_answer_loses_its_leases() -> None:
    async with stage(preset="test") as it:
        member = Member("carts", it.manager, drain=0, watchdog=0.4)
        async with member.serving(Shop("x")):
            await member.owner.ready()
            await member._probe()
            await it.crash(member)
            await until(lambda: not member.owner.ranges)
            assert member.owner.stats()["probes failed"]


async def test_an_address_at_which_another_answers_is_found_by_the_probe() -> None:
    async with stage() as it:
        first, _ = await it.member(Shop("first"))
        member = Member("carts", it.manager, drain=0, address=first.owner.address)
        async with member.serving(Shop("x")):
            with pytest.raises(ConfigurationError, match=first.owner.name):
                await member._probe()


async def test_a_member_is_entered_once_at_a_time_and_may_be_again() -> None:
    async with stage() as it:
        member = Member("carts", it.manager, drain=0)
        for _ in range(2):
            async with member.serving(Shop("x")):
                with pytest.raises(UsageError, match="already"):
                    await member.serving(Shop("y")).__aenter__()
            with pytest.raises(TenureError, match="not entered"):
                _ = member.owner


@pytest.mark.parametrize(
    "wrong",
    [
        {"listen": "here"},
        {"listen": 80},
        {"listen": "127.0.0.1:99999"},
        {"listen": "0.0.0.0:0"},
        {"listen": "10.0.0.7:0"},
        {"pool": ""},
        {"drain": -1},
        {"address": ""},
    ],
)
async def test_arguments_that_cannot_be_used(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Member(**{"pool": "carts", **wrong})


async def test_the_access_log_of_the_shared_server_is_left_alone() -> None:
    log, lines = logging.getLogger("uvicorn.access"), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        async with stage() as it:
            member, _ = await it.member(Shop("x"))
            assert log.handlers == [handler]
            assert log.propagate
            async with httpx.AsyncClient(base_url=member.owner.address) as client:
                await client.get("/healthy")
            assert not lines  # a relayed request has its line already, and a probe needs none
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
        log.propagate = True


async def test_a_port_that_is_taken_is_said() -> None:
    async with stage() as it:
        first, _ = await it.member(Shop("x"))
        place = first.owner.address.removeprefix("http://")
        with pytest.raises(ConfigurationError, match=place):
            await Member("carts", it.manager, listen=place).serving(Shop("y")).__aenter__()


# --- WebSockets ---


class Talk:
    """The server's side of a WebSocket, and an application that echoes."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        self.outgoing: asyncio.Queue[Message] = asyncio.Queue()
        self.app_got: list[Message] = []
        self.is_deaf = False
        self.key = "ann"

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        while self.is_deaf:
            await asyncio.Event().wait()
        while (message := await receive())["type"] != "websocket.disconnect":
            self.app_got.append(message)
            if message["type"] == "websocket.receive":
                await send({"type": "websocket.send", "text": message["text"]})
        self.app_got.append(message)
        await send({"type": "websocket.send", "text": "too late"})

    async def run(self, relay: Relay) -> None:
        scope = {
            "type": "websocket",
            "path": f"/carts/{self.key}",
            "raw_path": f"/carts/{self.key}".encode(),
            "query_string": b"",
            "headers": [],
            "scheme": "ws",
            "client": ("127.0.0.1", 1),
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        await self.incoming.put({"type": "websocket.connect"})
        await relay(scope, self.incoming.get, self.outgoing.put)

    def sent(self) -> list[str]:
        return [str(self.outgoing.get_nowait()["type"]) for _ in range(self.outgoing.qsize())]


async def test_a_websocket_is_closed_with_1012_when_its_lease_is_lost() -> None:
    async with stage() as it:
        talk = Talk()
        member, relay = await it.member(talk.app)
        await member.owner.ready()
        running = asyncio.ensure_future(talk.run(relay))
        await talk.incoming.put({"type": "websocket.receive", "text": "hello"})
        assert (await talk.outgoing.get())["type"] == "websocket.accept"
        assert (await talk.outgoing.get())["text"] == "hello"
        await member.owner.close(drain=0)
        async with asyncio.timeout(DEADLINE_SECONDS):
            closed = await talk.outgoing.get()
            await running
        assert (closed["type"], closed["code"]) == ("websocket.close", 1012)
        assert talk.app_got[-1]["code"] == 1012
        assert talk.sent() == [], "what it sends after that goes nowhere"


async def test_a_handler_that_does_not_listen_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "ENDS_WITHIN_SECONDS", 0.05)
    async with stage() as it:
        talk = Talk()
        talk.is_deaf = True
        member, relay = await it.member(talk.app)
        await member.owner.ready()
        running = asyncio.ensure_future(talk.run(relay))
        await talk.outgoing.get()
        await member.owner.close(drain=0)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await running
        assert talk.sent() == ["websocket.close"]


async def test_a_websocket_that_nobody_serves_is_denied_with_the_reason() -> None:
    async with stage() as it:
        first, _ = await it.member(Talk().app)
        talk = Talk()
        second, relay = await it.member(talk.app, relay=False)
        talk.key = await key_of(first, second)
        await talk.run(relay)
        start = await talk.outgoing.get()
        assert (start["type"], start["status"]) == ("websocket.http.response.start", 421)
        assert dict(start["headers"])[b"tenure-owner"] == first.owner.address.encode()


async def test_a_relayed_websocket_is_closed_with_1012_when_its_owner_goes() -> None:
    async with stage() as it:
        echo = Talk()
        first, _ = await it.member(echo.app)
        talk = Talk()
        second, relay = await it.member(talk.app)
        talk.key = await key_of(first, second)
        running = asyncio.ensure_future(talk.run(relay))
        assert (await talk.outgoing.get())["type"] == "websocket.accept"
        await talk.incoming.put({"type": "websocket.receive", "text": "hello"})
        assert (await talk.outgoing.get())["text"] == "hello"
        await first.owner.close(drain=0)
        async with asyncio.timeout(DEADLINE_SECONDS):
            closed = await talk.outgoing.get()
            await running
        assert (closed["type"], closed["code"]) == ("websocket.close", 1012)
        assert talk.app_got == []
