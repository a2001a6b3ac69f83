"""Servers and clients read small blocks: otherwise each message costs 20 µs for memory that is
mapped and given back.
"""

import asyncio
import gc
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tenure.protocol.lease.messages import Hello
from tenure.testing.clock import come_to_rest
from tenure.transport.contract import OWNER
from tenure.transport.credentials import NOTHING
from tenure.transport.read_size import READ_BYTES
from tenure.transport.websocket import WebSocketTransport
from tests.patience import DEADLINE_SECONDS
from tests.unit.transport.test_every_listener import LISTENERS, Opened, manager

pytestmark = pytest.mark.asyncio


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
