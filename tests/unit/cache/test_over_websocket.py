"""Strangers at the port of a cache server, over real sockets."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tenure import Cache, CacheServer, ForkedError, Volume
from tenure.cache.cache_engine import PATH
from tenure.protocol.volume.messages import Fetch, Reconnect, Reconnected
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.versions import NEWEST
from tenure.wire.volume import decode_to_cache, encode_volume
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
ROWS: dict[str, Any] = {"a": "old", "large": "x" * 4_000_000}


@asynccontextmanager
async def serving() -> AsyncIterator[CacheServer]:
    volume = Volume(ROWS.get, value_type=str, term=0.1)
    async with CacheServer(volume, listen="127.0.0.1:0") as server:
        yield server
        async with Cache(server.url, value_type=str) as cache:
            assert await cache.get("a") == "old"  # whatever the stranger did


Say = Callable[[aiohttp.ClientWebSocketResponse], Awaitable[None]]


async def why_closed(
    server: CacheServer, say: Say, protocols: Sequence[str] = (f"tenure.{NEWEST}",)
) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(server.url + PATH, protocols=protocols) as socket,
    ):
        await say(socket)
        while True:
            frame = await asyncio.wait_for(socket.receive(), DEADLINE_SECONDS)
            if frame.type is aiohttp.WSMsgType.CLOSE:
                return str(frame.extra)
            if frame.type is not aiohttp.WSMsgType.BINARY:
                return f"{frame.type}"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bytes([NEWEST]) + b"\xc1", "malformed"),
        (bytes([77]) + b"\x90", "protocol version 77"),
    ],
)
async def test_what_cannot_be_read_closes_with_a_reason(data: bytes, why: str) -> None:
    async with serving() as server:
        assert why in await why_closed(server, lambda socket: socket.send_bytes(data))


async def test_what_is_too_large_is_refused_by_its_header() -> None:
    async def say(socket: aiohttp.ClientWebSocketResponse) -> None:
        header = b"\x82\xff" + (REQUEST_BYTES + 1).to_bytes(8, "big")
        transport_of(socket).write(header + b"\0\0\0\0abc")

    async with serving() as server:
        assert f"a message of more than {REQUEST_BYTES}" in await why_closed(server, say)


async def test_text_closes_with_a_reason() -> None:
    async with serving() as server:
        assert "binary" in await why_closed(server, lambda socket: socket.send_str("hello"))


@pytest.mark.parametrize(
    ("offered", "why"),
    [(["tenure.200"], "no protocol version in common"), ([], "of protocol version")],
)
async def test_another_version_closes_with_a_reason(offered: list[str], why: str) -> None:
    async def nothing(_: object) -> None:
        pass

    async with serving() as server:
        assert why in await why_closed(server, nothing, protocols=offered)


async def test_a_page_in_a_browser_is_refused() -> None:
    async with (
        serving() as server,
        aiohttp.ClientSession() as session,
        session.get(server.url + PATH, headers={"Origin": "http://evil.test"}) as answer,
    ):
        assert answer.status == 403


async def test_who_never_reads_is_cut_off() -> None:
    """It asks for large objects and takes none: what waits for it is bounded."""
    async with (
        serving() as server,
        aiohttp.ClientSession() as session,
        session.ws_connect(
            server.url + PATH, protocols=[f"tenure.{NEWEST}"], max_msg_size=0
        ) as socket,
    ):
        await socket.send_bytes(encode_volume(Reconnect(client=7, sequence=1, history=0), NEWEST))
        answer = decode_to_cache(await socket.receive_bytes(), NEWEST)
        assert isinstance(answer, Reconnected)
        transport = transport_of(socket)
        transport.pause_reading()
        for i in range(40):
            reader: dict[str, Any] = {"client": 7, "epoch": answer.epoch, "reader": answer.reader}
            fetch = Fetch(**reader, sequence=2 + i, key=b"large")
            try:
                await socket.send_bytes(encode_volume(fetch, NEWEST))
            except (ConnectionError, aiohttp.ClientError):
                break
            await asyncio.sleep(0.02)
        transport.resume_reading()
        taken = 0
        while (
            await asyncio.wait_for(socket.receive(), DEADLINE_SECONDS)
        ).type is aiohttp.WSMsgType.BINARY:
            taken += 1
        assert taken < 40


def transport_of(socket: aiohttp.ClientWebSocketResponse) -> asyncio.Transport:
    connection = socket._response.connection
    assert connection is not None
    assert isinstance(connection.transport, asyncio.Transport)
    return connection.transport


async def test_a_forked_child_is_told() -> None:
    async with serving() as server, Cache(server.url, value_type=str) as cache:
        assert await cache.get("a") == "old"
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            said = b"nothing"
            try:
                cache.peek("a")
            except ForkedError:
                said = b"forked"
            finally:
                os.write(writing, said)
                os._exit(0)
        os.close(writing)
        assert os.read(reading, 100) == b"forked"
        os.close(reading)
        os.waitpid(child, 0)  # noqa: ASYNC222  # it has said its word
        assert await cache.get("a") == "old"
