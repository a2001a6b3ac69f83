"""200 owners renew while strangers do, all at once, what once ended everybody's leases. The manager
asks for no tokens, which is the harder case: `benchmarks/hostile.py` has one that does.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest

from benchmarks._attacks.__main__ import Done, Orders
from benchmarks._manager import running_manager
from benchmarks._process import Process
from benchmarks.hostile import RENEW_SECONDS, Renewals, percentile
from benchmarks.renewal import Owner, join, settle
from tenure.protocol.entity.key_line import EntityCall
from tenure.transport.link import GatedAnswer, always
from tenure.transport.link_bounds import LINK_LIMITS
from tenure.transport.links import Links
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.transport.websocket_door import WebSocketDoor
from tenure.wire.versions import SUBPROTOCOLS
from tests.patience import until
from tests.unit.transport.test_websocket_door import Counting

pytestmark = pytest.mark.asyncio
OWNERS = 200
ROLES = ("a stranger", "an owner of another pool", "a viewer", "a neighbour on the host")
ROUNDS = 4
KINDS = ["labels", "large_joins", "tables", "unfinished", "idle", "decoys", "follow", "pieces"]
AT_ENTITIES = ["asks", "unfinished_asks"]
MOST_BYTES = 16 << 20
LARGE = bytes(1 << 16)


@asynccontextmanager
async def attackers(urls: tuple[str, str, str], made: Counter[str]) -> AsyncIterator[None]:
    """Attackers in processes of their own; in the end, how often they have done what."""
    targets = dict(zip(("manager", "volume", "entities"), ([each] for each in urls), strict=True))
    orders = msgspec.json.encode(Orders(targets=targets, tokens={}))
    processes = [Process("benchmarks._attacks", role) for role in ROLES]
    await asyncio.gather(*(each.begin(orders) for each in processes))
    try:
        yield
    finally:
        for said in await asyncio.gather(*(each.end() for each in processes)):
            made.update(msgspec.json.decode(said, type=Done).made)


async def answer(call: EntityCall) -> GatedAnswer:
    """Answer a call of an entity, with what nobody reads."""
    del call
    return LARGE, always


async def beset(
    urls: tuple[str, str, str], owners: list[Owner]
) -> tuple[list[float], Counter[str]]:
    """How long each renewal took beside the attackers, and what these have done."""
    renewals, made = Renewals(owners), Counter[str]()
    renewing = [asyncio.ensure_future(renewals.go_on(number)) for number in range(OWNERS)]
    try:
        async with attackers(urls, made):
            renewals.took.clear()
            await until(lambda: len(renewals.took) >= ROUNDS * OWNERS)
            took = list(renewals.took)
    finally:
        for each in renewing:
            each.cancel()
        await asyncio.wait(renewing)
    return took, made


async def test_two_hundred_owners_renew_beside_all_of_them() -> None:
    door = WebSocketDoor("/v1/volume", most_bytes=MOST_BYTES)
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
                waited, made = await beset((manager.url, at_door, at_links), owners)
            finally:
                waiting = links.waiting_bytes
                await links.close()
                await door.close("it is over")
    assert [owner.held for owner in owners] == before
    assert percentile(waited, 0.99) < RENEW_SECONDS / 3
    assert waiting <= LINK_LIMITS.most_bytes_of_an_address
    assert set(made) >= {*KINDS, *AT_ENTITIES}, made
