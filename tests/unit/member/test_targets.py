"""Targets of requests that are spelled oddly: nothing leads elsewhere than its path does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from socket import create_server

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn import Config, Server

from tenure.member.asgi import App
from tenure.member.listener import OwnListener
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.member.test_relay import Shop, key_of, stage

pytestmark = pytest.mark.asyncio
COOKIE = "Cookie: session=secret\r\n"
OPENING = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{COOKIE}"
)


@asynccontextmanager
async def shared_port(app: App) -> AsyncIterator[int]:
    """The port that the processes of a service share, behind uvicorn."""
    listener = OwnListener(app, "127.0.0.1:0")
    await listener.start()
    try:
        yield int(listener.url.rpartition(":")[2])
    finally:
        await listener.stop()


@asynccontextmanager
async def behind_h11(app: App) -> AsyncIterator[int]:
    """The same without httptools: h11 takes targets that httptools refuses."""
    listening = create_server(("127.0.0.1", 0))
    server = Server(Config(app, http="h11", lifespan="off", log_config=None))
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        await until(lambda: server.started)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def answered(port: int, target: str, headers: str = "Connection: close\r\n") -> str:
    """The answer to a request for this target, byte for byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: shop\r\n{headers}\r\n".encode())
    async with asyncio.timeout(10):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        body = await reader.read() if "close" in headers else b""
    writer.close()
    return head + body.decode()


@pytest.mark.parametrize("opening", [OPENING, f"Connection: close\r\n{COOKIE}"])
@pytest.mark.parametrize(
    "target", ["@127.0.0.1:{port}{path}", "http://127.0.0.1:{port}{path}", "127.0.0.1:{port}{path}"]
)
@pytest.mark.parametrize("behind", [shared_port, behind_h11])
async def test_no_target_leads_to_another_host(
    target: str, opening: str, behind: Callable[[App], AbstractAsyncContextManager[int]]
) -> None:
    connected: list[str] = []

    async def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append("somebody")
        writer.close()

    elsewhere = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    async with stage() as it, elsewhere:
        first, _ = await it.member(Shop("first"))
        second, relay = await it.member(Shop("second"))
        key = await key_of(first, second)
        path = f"/carts/%{ord(key[0]):x}{key[1:]}/ws"
        async with behind(relay) as shared:
            got = await answered(shared, target.format(port=port, path=path), opening)
    # httptools takes the path out of a whole URL, as RFC 9112 (3.2.2) asks of an origin server.
    is_url = target.startswith("http") and opening is not OPENING and behind is shared_port
    assert got.split()[1] == ("200" if is_url else "400")
    assert connected == []


async def test_a_head_without_an_end_is_cut_off() -> None:
    async with stage() as it:
        _, relay = await it.member(Shop("first"))
        async with shared_port(relay) as port, asyncio.timeout(DEADLINE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: shop\r\nX: ")
            with suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x" * 10_000)
                    await writer.drain()
                    await asyncio.sleep(0)
            writer.close()


async def test_below_a_root_no_target_leads_to_another_host() -> None:
    async with stage() as it:
        first, _ = await it.member(Shop("first"))
        shop = Shop("second")
        second, relay = await it.member(shop)
        key = await key_of(first, second)

        async def mounted(scope: object, receive: object, send: object) -> None:
            scope["root_path"] = "/api"  # type: ignore[index]
            await relay(scope, receive, send)  # type: ignore[arg-type]

        async with shared_port(mounted) as shared:
            got = await answered(shared, f"/api@127.0.0.1:1/carts/{key}")
            assert "served-by: second" in got, "a path outside of the root has no key"
            got = await answered(shared, f"/api/carts/{key}")
            assert "served-by: first" in got


def cart_shop(name: str) -> Starlette:
    async def cart(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{name} has {request.path_params['user']}")

    return Starlette(routes=[Route("/carts/{user}", cart), Route("/carts/{user}/{item}", cart)])


@pytest.mark.parametrize(
    "spelled", ["/carts%2F{key}", "/%63arts%2f{key}", "/carts/{key}%2Fx", "//carts/{key}"]
)
async def test_the_owner_serves_what_the_router_takes_for_the_key(spelled: str) -> None:
    async with stage() as it:
        first, _ = await it.member(cart_shop("first"))
        second, relay = await it.member(cart_shop("second"))
        key = await key_of(first, second)
        async with shared_port(relay) as shared:
            got = await answered(shared, spelled.format(key=key))
    assert f"first has {key}" in got or got.split()[1] == "404"
