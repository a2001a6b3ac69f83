"""A peer that connects and says nothing is disconnected, and keeps nobody else out."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.manager.limits import ManagerLimits
from tenure.transport import bounded_port, newcomers
from tenure.transport.connection_limits import LEAST_STRANGERS
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio


class Stream(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def get(self, host: str) -> bytes:
        self.writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return await self.reader.readuntil(b"\r\n")

    async def ended(self) -> bool:
        """Whether it is closed; waits for that, or for something said."""
        with suppress(ConnectionError):
            return await self.reader.read(1) == b""
        return True


@asynccontextmanager
async def silent(manager: Serving, count: int) -> AsyncIterator[list[Stream]]:
    parts = urlsplit(manager.service.url)
    streams = [
        Stream(*await asyncio.open_connection(parts.hostname, parts.port)) for _ in range(count)
    ]
    try:
        yield streams
    finally:
        for stream in streams:
            stream.writer.close()


async def test_of_one_peer_only_so_many_are_silent_and_the_oldest_gives_way() -> None:
    async with (
        serving(limits=ManagerLimits(silent_of_a_peer=3)) as manager,
        silent(manager, 3) as (spoke, first, second),
    ):
        host = urlsplit(manager.service.url).netloc
        assert await spoke.get(host) == b"HTTP/1.1 200 OK\r\n"
        async with silent(manager, 2) as later:
            assert await first.ended()
            assert manager.counted("silent peer disconnected") == 1
            for each in (second, *later):
                assert await each.get(host) == b"HTTP/1.1 200 OK\r\n"
        assert manager.counted("silent peer disconnected") == 1
        assert (await manager.get("/healthz"))[0] == 200


async def test_who_says_half_a_request_is_as_silent() -> None:
    """A byte at a time takes a connection for as long."""
    limits = ManagerLimits(silent_seconds=0.05)
    async with serving(limits=limits) as manager, silent(manager, 1) as [stream]:
        stream.writer.write(b"GET / HT")
        assert await stream.ended()
        assert manager.counted("silent peer disconnected") == 1


async def test_who_was_refused_has_spoken(tmp_path: Path) -> None:
    """A refused request was a request: its connection is not cut off for silence."""
    tokens = tmp_path / "tokens"
    TokenFile(tokens).add(new_token(AccessRole.ADMIN).entry)
    limits = ManagerLimits(silent_seconds=0.2)
    async with serving(tokens=tokens, limits=limits) as manager, silent(manager, 2) as streams:
        refused, stays_silent = streams
        refused.writer.write(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"401" in await refused.reader.readuntil(b"\r\n")
        assert await stays_silent.ended()
        await refused.reader.readuntil(b"\r\n\r\n")
        refused.writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" in await refused.reader.readuntil(b'"status":"up"')


async def test_who_asks_what_anybody_may_ask_gives_way_and_who_shows_a_token_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle requests for /healthz must not keep out owners and admins."""
    monkeypatch.setattr(bounded_port, "STRANGER_SECONDS", 10 * DEADLINE_SECONDS)
    tokens, admin = tmp_path / "tokens", new_token(AccessRole.ADMIN)
    TokenFile(tokens).add(admin.entry)
    limits = ManagerLimits(
        connections=LEAST_STRANGERS + 16, connections_of_a_peer=LEAST_STRANGERS + 16
    )
    async with (
        serving(tokens=tokens, limits=limits) as manager,
        silent(manager, 1) as [known],
    ):
        host = urlsplit(manager.service.url).netloc
        said = (
            f"GET /v1/pools HTTP/1.1\r\nAuthorization: Bearer {admin.text}\r\nHost: {host}\r\n\r\n"
        )
        known.writer.write(said.encode())
        assert await known.reader.readuntil(b"]}")
        async with silent(manager, LEAST_STRANGERS) as strangers:
            for each in strangers:
                assert await each.get(host) == b"HTTP/1.1 200 OK\r\n"
            async with silent(manager, 1) as [later]:
                assert await later.get(host) == b"HTTP/1.1 200 OK\r\n"
                await strangers[0].reader.read()  # to its end
                known.writer.write(said.encode())
                assert b" 200 OK" in await known.reader.readuntil(b"\r\n")


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_who_does_not_finish_a_body_is_let_go(
    first: bytes,
) -> None:
    """Also after a request that was whole."""
    half = b"POST /v1/pools HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    limits = ManagerLimits(silent_seconds=0.5)
    async with serving(limits=limits) as manager, silent(manager, 1) as [stream]:
        stream.writer.write(first + half)
        if first:
            said = await stream.reader.readuntil(b"408 Request Timeout")
            assert said.startswith(b"HTTP/1.1 200 OK")
        while not await stream.ended():
            pass


async def test_who_does_not_finish_a_body_counts_as_silent() -> None:
    half = b"POST /v1/pools HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    limits = ManagerLimits(silent_of_a_peer=2)
    async with serving(limits=limits) as manager, silent(manager, 1) as [first]:
        first.writer.write(half)
        assert (await manager.get("/healthz"))[0] == 200, "the half request was read before it"
        async with silent(manager, 2):
            assert await first.ended()
        assert manager.counted("silent peer disconnected") == 1


async def test_a_quarter_of_the_files_is_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((1024, 256), (1 << 20, 2048), (-1, 2048)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, n=files: (n, n))
        assert newcomers.silent_of_a_peer() == most
