"""Servers and clients read small blocks: otherwise each message costs 20 µs for memory that is
mapped and given back.
"""

import ast
import asyncio
import gc
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

import tenure
from tenure.protocol.lease.messages import Hello
from tenure.runtime.read_size import READ_BYTES, SmallBlocksResponse
from tenure.testing.clock import come_to_rest
from tenure.transport.contract import OWNER
from tenure.transport.credentials import NOTHING
from tenure.transport.datagram import DatagramSeal, UdpDatagrams
from tenure.transport.websocket import WebSocketTransport
from tests.patience import DEADLINE_SECONDS
from tests.unit.transport.test_every_listener import LISTENERS, Opened, manager

pytestmark = pytest.mark.asyncio
SOURCE = Path(tenure.__file__).parent


def blocks_read() -> set[int]:
    """How much each connection of this process reads at once."""
    found = (each for each in gc.get_objects() if isinstance(each, asyncio.Transport))
    return {each.max_size for each in found if hasattr(each, "max_size") and not each.is_closing()}


@pytest.mark.parametrize("opened", LISTENERS.values(), ids=LISTENERS)
async def test_every_port_reads_small_blocks(opened: Opened) -> None:
    async with opened(NOTHING) as url:
        parts = urlsplit(url)
        with closing(socket.create_connection((parts.hostname, parts.port))) as peer:
            peer.sendall(b"GET /")
            async with asyncio.timeout(DEADLINE_SECONDS):
                while blocks_read() != {READ_BYTES}:
                    await come_to_rest()


async def test_a_client_reads_small_blocks() -> None:
    async with manager(NOTHING) as url:
        said: asyncio.Queue[object] = asyncio.Queue()
        client = WebSocketTransport(OWNER)
        client.start(lambda _, each: said.put_nowait(each), lambda _, why: said.put_nowait(why))
        client.send(url, Hello(pool="rooms", token=1))
        await said.get()
        assert blocks_read() == {READ_BYTES}
        await client.close()


async def test_an_answer_of_http_is_read_in_small_blocks() -> None:
    async with (
        manager(NOTHING) as url,
        aiohttp.ClientSession(response_class=SmallBlocksResponse) as session,
        session.get(f"{url}/v1/status") as answer,
    ):
        await answer.read()
        assert answer.status == 200
        assert blocks_read() == {READ_BYTES}


async def test_datagrams_are_read_in_small_blocks() -> None:
    seal = DatagramSeal(b"x" * 32, "cluster", 1, 1, lambda: 0)
    datagrams = UdpDatagrams(seal)
    await datagrams.listen("127.0.0.1:0", lambda _address, _sealed: None)
    assert getattr(datagrams._transport, "max_size", None) == READ_BYTES
    await datagrams.close()


def sessions_of(tree: ast.AST) -> list[set[str | None]]:
    """The named arguments of each ClientSession that is made."""
    calls = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
    return [
        {each.arg for each in call.keywords}
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] == "ClientSession"
    ]


async def test_every_client_of_ours_reads_small_blocks() -> None:
    classes = {"response_class", "ws_response_class"}
    found = [
        (path.name, bool(named & classes))
        for path in SOURCE.rglob("*.py")
        # The services and the demo's clients are built with what users have, too.
        if not {"demo", "services"} & set(path.parts)
        for named in sessions_of(ast.parse(path.read_text("utf-8")))
    ]
    assert len(found) > 6
    assert [name for name, is_small in found if not is_small] == []
    assert sessions_of(ast.parse("aiohttp.ClientSession(timeout=5)")) == [{"timeout"}]
