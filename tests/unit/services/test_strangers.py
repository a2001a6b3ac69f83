"""Strangers at the port of `tenure serve`: they take nothing that others need."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tenure.cli.service_gate import ServiceGate, service_port
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.services.documents.service import Documents
from tenure.services.feeds.service import Feeds
from tenure.services.service import ServiceSettings
from tenure.services.serving import served
from tenure.transport.connection_limits import LEAST_STRANGERS, ConnectionLimits
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio
LIMITS = ConnectionLimits(connections=8, of_a_peer=6, silent_of_a_peer=3, silent_seconds=0.3)


@asynccontextmanager
async def documents(
    place: Path, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[tuple[str, str]]:
    """Yield where a service with these limits listens, and a token that is valid there."""
    tokens, token = TokenFile(place / "tokens"), new_token(AccessRole.ADMIN)
    tokens.add(token.entry)
    names = OwnNames("service", "http://127.0.0.1", (), is_loopback=True)
    gate = ServiceGate("documents", names, tokens)
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        settings = ServiceSettings(pool="documents", managers=manager.service.url)
        service = Documents(settings, watchdog=None)
        port = partial(service_port, limits=limits)
        knows = gate.knows_peers
        async with served(service, "127.0.0.1", 0, port, check=gate, knows_peers=knows) as url:
            yield url, token.text


@asynccontextmanager
async def connected(
    url: str, said: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(said)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def is_well(url: str, token: str) -> bool:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url + "/limits") as response,
    ):
        return response.status == 200


async def test_who_says_nothing_gives_way_and_is_let_go(tmp_path: Path) -> None:
    async with documents(tmp_path) as (url, token), AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(url)) for _ in range(4)]
        assert await silent[0][0].read() == b"", "more than three were silent: the oldest is gone"
        assert await is_well(url, token)
        for reader, _ in silent:
            assert await reader.read() == b""


async def test_who_shows_no_token_gives_way_and_who_has_shown_one_stays(tmp_path: Path) -> None:
    limits = ConnectionLimits(connections=LEAST_STRANGERS + 8, of_a_peer=LEAST_STRANGERS + 8)
    async with documents(tmp_path, limits) as (url, token), AsyncExitStack() as stack:
        asks = "GET /limits HTTP/1.1\r\nHost: localhost\r\n"
        shown = f"{asks}Authorization: Bearer {token}\r\n\r\n".encode()
        reader, writer = await stack.enter_async_context(connected(url, shown))
        assert b" 200 " in await reader.readuntil(b"\r\n")
        for _ in range(limits.most):
            stranger, _ = await stack.enter_async_context(connected(url, f"{asks}\r\n".encode()))
            assert b" 401 " in await stranger.readuntil(b"\r\n")
        assert await is_well(url, token)
        writer.write(shown)
        assert b" 200 " in await reader.readuntil(b" 200 ")


async def test_half_a_header_and_half_a_body_are_let_go(tmp_path: Path) -> None:
    async with documents(tmp_path) as (url, token):
        begun = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 99\r\n\r\n{{"
        body = f"PUT /documents/a/sections/b HTTP/1.1\r\n{begun}".encode()
        async with (
            connected(url, b"GET /limits HTTP/1.1\r\nHos") as (half, _),
            connected(url, body) as (reader, _),
        ):
            assert await half.read() == b""
            answer = await reader.read()
            assert answer == b"" or b" 408 " in answer.splitlines()[0]
            assert await is_well(url, token)


async def test_half_a_body_after_a_whole_request_is_told_so(tmp_path: Path) -> None:
    """A peer that has said something is no longer silent, and could hold a connection for long."""
    async with documents(tmp_path) as (url, token):
        shown = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"
        async with connected(url, f"GET /limits HTTP/1.1\r\n{shown}\r\n".encode()) as (
            reader,
            writer,
        ):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            size = next(each for each in head.splitlines() if each.startswith(b"Content-Length"))
            await reader.readexactly(int(size.split()[1]))
            half = f"PUT /documents/a/sections/b HTTP/1.1\r\n{shown}Content-Length: 99\r\n\r\n{{"
            writer.write(half.encode())
            async with asyncio.timeout(20):
                assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")


async def test_the_port_between_the_processes_of_feeds_lets_the_silent_go_too() -> None:
    settings = ServiceSettings(pool="feeds", managers="http://127.0.0.1:1")
    port = partial(service_port, limits=LIMITS)
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        Feeds(settings).private(port) as url,
        AsyncExitStack() as stack,
    ):
        silent = [await stack.enter_async_context(connected(url)) for _ in range(4)]
        assert await is_well(url, "")
        for reader, _ in silent:
            assert await reader.read() == b""


@pytest.mark.parametrize(
    ("address", "host", "status"),
    [
        (None, "", 200),  # as it is reached
        (None, "evil.example", 403),
        (None, "localhost", 403),
        (None, "[", 403),
        ("http://one.feeds.example:1", "one.feeds.example:1", 200),
        ("http://feeds-1:80", "feeds-1", 200),
        ("http://one.feeds.example:1", "evil.example:1", 403),
    ],
)
async def test_no_page_reads_feeds_by_a_name_of_its_own_for_our_address(
    address: str | None, host: str, status: int
) -> None:
    settings = ServiceSettings(pool="feeds", managers="http://127.0.0.1:1", address=address)
    port = partial(service_port, limits=LIMITS)
    headers = {"Host": host} if host else {}
    async with (
        Feeds(settings).private(port) as url,
        aiohttp.ClientSession() as session,
        session.get(url + "/limits", headers=headers) as answer,
    ):
        assert answer.status == status


async def test_a_compressed_body_is_not_taken_apart(tmp_path: Path) -> None:
    async with documents(tmp_path) as (url, token), aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {token}", "Content-Encoding": "gzip"}
        body = gzip.compress(b"0" * 100_000_000)
        async with session.put(
            url + "/documents/a/sections/b", headers=headers, data=body
        ) as answer:
            assert answer.status == 415


async def test_one_connection_too_many_is_told_so(tmp_path: Path) -> None:
    async with documents(tmp_path) as (url, token), AsyncExitStack() as stack:
        shown = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        head, answers = f"GET /limits HTTP/1.1\r\n{shown}".encode(), []
        for _ in range(7):
            reader, _ = await stack.enter_async_context(connected(url, head))
            answers.append((await reader.readline()).split()[1])
        assert answers == [b"200"] * 6 + [b"503"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
async def test_a_page_of_another_site_is_refused(headers: dict[str, str], tmp_path: Path) -> None:
    async with documents(tmp_path) as (url, token), aiohttp.ClientSession() as session:
        shown = {"Authorization": f"Bearer {token}", **headers}
        async with session.get(url + "/limits", headers=shown) as response:
            assert response.status == 403


async def test_without_a_token_there_is_no_path_and_no_body_is_read(tmp_path: Path) -> None:
    async with documents(tmp_path) as (url, token), aiohttp.ClientSession() as session:
        paths = (
            "/",
            "/limits",
            "/openapi.json",
            "/documents/a",
            "//limits",
            "/%2e%2e/limits",
            "/x" * 999,
        )
        for path in paths:
            for method in ("GET", "PUT", "POST", "DELETE", "OPTIONS", "TRACE", "BREW"):
                async with session.request(method, url + path, data=b"{}") as response:
                    assert response.status in (400, 401, 403, 404, 405), (method, path)
                    assert response.headers.get("Allow", "") == "" or response.status == 405
        assert await is_well(url, token)
