"""Strangers throw bytes at the ports of real nodes of the store, while a client reads and writes.

No request fails, no node ends, and none grows without bound. The seed is printed when it fails:
repeat it with `HOSTILE_SEED`, and make it longer with `HOSTILE_SECONDS`.
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from random import Random

import aiohttp
import pytest

from tenure import open_store
from tenure.columns.backends.cluster import STORE_ROLE
from tenure.columns.store import ColumnStore
from tenure.runtime.clock import wall_us
from tenure.transport.datagram import DatagramSeal
from tenure.wire.columns import encode_store
from tenure.wire.gossip import encode_gossip
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.integration.columns.node_processes import NodeProcesses, processes
from tests.integration.failover.test_store_faults import SETTINGS, VALUE
from tests.sessions import client_session
from tests.unit.columns.node.ringed import CLUSTER, SECRET, form_ring, settings_of
from tests.unit.wire.test_columns import GOSSIP, TO_STORE
from tests.versions.store_node import MAIL

pytestmark = pytest.mark.asyncio
SECONDS = float(os.environ.get("HOSTILE_SECONDS", "4"))
PATIENT = {**SETTINGS, "patience_seconds": 30.0}
"""The strangers and the nodes share this host, which may be busy."""
STRANGER = 4711
GROWN_BYTES = 300 << 20
MESSAGES = [encode_store(each, NEWEST) for each in TO_STORE]
GOSSIPED = [encode_gossip(each) for each, _ in GOSSIP]


class Strangers:
    """They throw until the deadline, each at all ports in turn."""

    def __init__(self, ports: list[int], seed: int) -> None:
        self._ports = ports
        self._random = Random(seed)
        self._until = time.monotonic() + SECONDS
        self.thrown = 0

    async def throw(self, session: aiohttp.ClientSession) -> None:
        """Do all of it at once."""
        kinds: list[Callable[[int], Coroutine[None, None, None]]] = [
            self._datagrams,
            self._bytes,
            lambda port: self._request(session, port),
            *(3 * [lambda port: self._frames(session, port)]),
        ]
        await asyncio.gather(*(self._go_on(kind) for kind in kinds))

    async def _go_on(self, kind: Callable[[int], Coroutine[None, None, None]]) -> None:
        while time.monotonic() < self._until:
            with suppress(OSError, aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(2):
                    await kind(self._random.choice(self._ports))
            self.thrown += 1
            await asyncio.sleep(0.001)

    def _changed(self, sample: bytes) -> bytes:
        """Change a few bytes."""
        random, data = self._random, bytearray(sample)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(data) + 1)
            data[at : at + random.randrange(3)] = random.randbytes(random.randrange(4))
        return bytes(data)

    async def _datagrams(self, port: int) -> None:
        random = self._random
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thrower:
            for secret, cluster in ((SECRET[::-1], CLUSTER), (SECRET, f"{CLUSTER} of others")):
                seal = DatagramSeal(secret, cluster, random.getrandbits(63), 1, wall_us)
                thrower.sendto(seal.seal(random.choice(GOSSIPED)), ("127.0.0.1", port))
            # One whose seal is right: what is in it is no gossip.
            seal = DatagramSeal(SECRET, CLUSTER, STRANGER, 1 << 40, wall_us)
            thrower.sendto(seal.seal(b"\xc1" + random.randbytes(50)), ("127.0.0.1", port))
            thrower.sendto(random.randbytes(random.randrange(1, 3_000)), ("127.0.0.1", port))

    async def _bytes(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            begins = self._random.choice(
                (b"", b"GET ", b"POST /v1/store HTTP/1.1\r\n", b"\x16\x03")
            )
            writer.write(begins + self._random.randbytes(self._random.randrange(5_000)))
            await writer.drain()
            async with asyncio.timeout(0.05):
                await reader.read(100)
        finally:
            writer.close()

    async def _request(self, session: aiohttp.ClientSession, port: int) -> None:
        path = self._random.choice((STORE_ROLE.path, "/", "/v1/" + "a" * 7_000, "/../..", "/%00"))
        method = self._random.choice(("GET", "POST", "PUT", "OPTIONS", "BREW"))
        body = self._random.randbytes(self._random.randrange(100_000))
        async with session.request(method, f"http://127.0.0.1:{port}{path}", data=body) as said:
            await said.read()

    async def _frames(self, session: aiohttp.ClientSession, port: int) -> None:
        url = f"http://127.0.0.1:{port}{STORE_ROLE.path}"
        async with session.ws_connect(url, protocols=SUBPROTOCOLS) as door:
            for _ in range(self._random.randrange(1, 6)):
                kind = self._random.random()
                if kind < 0.7:
                    await door.send_bytes(self._changed(self._random.choice(MESSAGES)))
                elif kind < 0.9:
                    await door.send_bytes(self._random.randbytes(self._random.randrange(50_000)))
                else:
                    await door.send_str("no bytes")
            async with asyncio.timeout(0.05):
                await door.receive()


def resident_bytes(ring: NodeProcesses) -> list[int]:
    pages = (Path(f"/proc/{each.pid}/statm").read_text() for each in ring.running.values())
    return [int(each.split()[1]) * os.sysconf("SC_PAGE_SIZE") for each in pages]


async def rows_until(store: ColumnStore, done: asyncio.Task[None], seed: int) -> int:
    """Write rows and read each, until it is done; how many there are."""
    rows = 0
    while not done.done():
        row = f"row-{rows}"
        await store.insert(MAIL, row, {"profile": {"name": VALUE}})
        found = await store.get(MAIL, row, "profile", "name")
        assert found is not None, (seed, row)
        assert found.value == VALUE, (seed, row)
        rows += 1
    return rows


async def test_strangers_hinder_no_request_and_end_no_node(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOSTILE_SEED") or Random().getrandbits(32))
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with processes(nodes, PATIENT) as ring:
        await ring.start(0, 1, 2)
        before = resident_bytes(ring)
        strangers = Strangers([node.port for node in nodes], seed)
        async with open_store(ring.url(0, 1, 2), MAIL) as store:
            async with client_session() as session, asyncio.TaskGroup() as group:
                throwing = group.create_task(strangers.throw(session))
                rows = await rows_until(store, throwing, seed)
            for number in range(rows):
                assert await store.get(MAIL, f"row-{number}", "profile", "name"), (seed, number)
        ended = [each.returncode for each in ring.running.values()]
        assert ended == [None] * 3, (seed, ended)
        grown = [now - then for now, then in zip(resident_bytes(ring), before, strict=True)]
        assert max(grown) < GROWN_BYTES, (seed, grown)
        print(f"seed {seed}: {strangers.thrown} throws, {rows} rows")
