"""Servers and clients read small blocks: otherwise each message costs 20 µs for memory that is
mapped and given back.
"""

import ast
import asyncio
import gc
import socket
from collections.abc import Iterator
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


def files_of_ours(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """Those that have any of the words. The services and the demo are built with what users have,
    too.
    """
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if not {"demo", "services"} & set(path.parts) and any(each in text for each in words):
            yield str(path.relative_to(SOURCE)), ast.parse(text)


async def test_every_client_of_ours_reads_small_blocks() -> None:
    classes = {"response_class", "ws_response_class"}
    found = [
        (name, bool(named & classes))
        for name, tree in files_of_ours("ClientSession")
        for named in sessions_of(tree)
    ]
    assert len(found) > 6
    assert [name for name, is_small in found if not is_small] == []
    assert sessions_of(ast.parse("aiohttp.ClientSession(timeout=5)")) == [{"timeout"}]


def called_in(tree: ast.AST) -> set[str]:
    """The last names of what is called, but for functions of `socket`, which no loop reads."""
    calls = (each.func for each in ast.walk(tree) if isinstance(each, ast.Call))
    names = (ast.unparse(each).rpartition(".") for each in calls)
    return {name for of, _, name in names if of not in {"socket", "sockets"}}


OPENING = {
    *("create_connection", "create_unix_connection", "create_datagram_endpoint"),
    *("create_server", "create_unix_server", "connect_accepted_socket"),
    *("open_connection", "open_unix_connection", "start_server", "start_unix_server"),
    *("TCPSite", "UnixSite", "SockSite", "run_app"),
}
"""What has a loop read from a socket."""


async def test_whatever_opens_a_connection_has_it_read_small_blocks() -> None:
    called = {name: called_in(tree) for name, tree in files_of_ours(*OPENING)}
    found = {name: each for name, each in called.items() if OPENING & each}
    assert found.keys() == {
        *("member/forwarding.py", "transport/bounded_port.py", "transport/datagram.py"),
    }
    assert [name for name, each in found.items() if "read_small_blocks" not in each] == []
    assert called_in(ast.parse("loop.create_server(x); socket.create_server(y)")) == {
        "create_server"
    }


LIBRARIES_MAP_FROM = 128 * 1024
"""glibc and musl map each block of this size, with what Python and they put before it."""


async def test_a_block_is_smaller_than_what_is_mapped_for_itself() -> None:
    assert READ_BYTES + 4096 < LIBRARIES_MAP_FROM
