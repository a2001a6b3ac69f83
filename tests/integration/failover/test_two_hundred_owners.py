"""200 owners renew while strangers do, all at once, what once ended everybody's leases."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from benchmarks._manager import running_manager
from benchmarks.hostile import END_SECONDS, RENEW_SECONDS, percentile, renew_on
from benchmarks.renewal import Owner, join, settle
from tenure.protocol.entity.key_line import EntityCall
from tenure.transport.link import GatedAnswer, always
from tenure.transport.link_bounds import LINK_LIMITS
from tenure.transport.links import Links
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.transport.websocket_door import WebSocketDoor
from tenure.wire.versions import SUBPROTOCOLS
from tests.integration.test_security import until
from tests.unit.transport.test_websocket_door import Counting

pytestmark = pytest.mark.asyncio
OWNERS = 200
ATTACKERS = 2  # addresses, each with many connections
ROUNDS = 4
KINDS = ["labels", "large_joins", "tables", "unfinished", "idle", "decoys", "follow", "pieces"]
AT_ENTITIES = ["asks", "unfinished_asks"]
MOST_BYTES = 16 << 20
LARGE = bytes(1 << 16)


@asynccontextmanager
async def attackers(urls: tuple[str, ...], done: list[str]) -> AsyncIterator[None]:
    """Attackers in a process of their own, and what they have done."""
    command = sys.executable, "-m", "tests.integration.failover.attackers", *urls
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    try:
        await process.stdout.readline()
        yield
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                done.append((await process.stdout.read()).decode())
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def answer(call: EntityCall) -> GatedAnswer:
    """Answer a call of an entity, with what nobody reads."""
    del call
    return LARGE, always


async def beset(urls: tuple[str, ...], owners: list[Owner]) -> tuple[list[float], str]:
    """How long each renewal took beside the attackers, and what these have done."""
    waited: list[float] = []
    done: list[str] = []
    ended = asyncio.Event()
    now = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for number, owner in enumerate(owners):
            first = now + RENEW_SECONDS * number / OWNERS
            group.create_task(renew_on(owner, first, ended, waited))
        async with attackers(urls, done):
            waited.clear()
            await until(lambda: len(waited) >= ROUNDS * OWNERS)
            ended.set()
    return waited, done[0]


async def test_two_hundred_owners_renew_beside_all_of_them() -> None:
    door = WebSocketDoor("/ws", most_bytes=MOST_BYTES)
    links = Links(WebSocketChannels(), answer, lambda _: None)
    with running_manager(log_level="error") as manager:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            at_door = await door.open("127.0.0.1:0", Counting())
            at_links = await links.listen("127.0.0.1:0")
            where = manager.url + "/v1/owner"
            owners = [
                Owner(number, await session.ws_connect(where, protocols=SUBPROTOCOLS))
                for number in range(OWNERS)
            ]
            await join(owners)
            await settle(owners)
            before = [owner.held for owner in owners]
            try:
                waited, done = await beset((manager.url, at_door, at_links), owners)
            finally:
                waiting = links.waiting_bytes
                await links.close()
                await door.close("it is over")
    assert [owner.held for owner in owners] == before
    assert percentile(waited, 0.99) < RENEW_SECONDS / 3
    assert waiting <= ATTACKERS * LINK_LIMITS.most_bytes_of_an_address
    assert all(kind in done for kind in [*KINDS, *AT_ENTITIES]), done
