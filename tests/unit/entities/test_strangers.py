"""Processes of a pool, each of another user of the machine: they reach each other, and nobody else
reaches them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from tenure import Cache, Entities, Entity, KeyedState, Lookup, Owner, Unreachable, Volume
from tenure.protocol.entity.key_line import EntityCall
from tenure.transport import port_guard
from tenure.transport.channels import ChannelLost
from tenure.transport.link import Link, always
from tenure.transport.link_bounds import LINK_LIMITS, Backlog
from tenure.transport.links import HELLO
from tenure.transport.websocket_channels import WebSocketChannels
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio


class Hits(msgspec.Struct):
    count: int = 0


class Counter(Entity[Hits]):
    async def add(self) -> int:
        self.state.count += 1
        return self.state.count


@pytest_asyncio.fixture
async def manager(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serving]:
    monkeypatch.setattr(port_guard, "is_of_same_user", lambda *_: False)
    async with serving() as made:
        yield made


async def test_entities_call_each_other_and_take_their_state_along(manager: Serving) -> None:
    url = manager.service.url
    async with Entities(Counter, "counters", url) as one:
        keys = [f"key-{i}" for i in range(20)]
        for key in keys:
            assert await one[key].add() == 1
        async with Entities(Counter, "counters", url) as two:
            await two.station.owner.ready()
            for key in keys:
                assert await two[key].add() == 2
                assert await one[key].add() == 3
            assert two.station.owner.ranges, "what it has came from the other, with its state"
        for key in keys:
            assert await one[key].add() == 4


async def test_a_stranger_at_the_port_of_entities_costs_nothing(manager: Serving) -> None:
    """Neither with a member's own URL nor without one."""
    async with Entities(Counter, "counters", manager.service.url, watchdog=0.5) as one:
        owner = one.station.owner
        await owner.ready()
        before = owner.ranges
        strangers = WebSocketChannels()
        for url in (owner.address, owner.address.replace("127.0.0.1", "localhost")):
            with pytest.raises(ChannelLost, match="wants a proof"):
                await strangers.connect(url)
        await strangers.close()
        assert await one["key"].add() == 1
        await one.station._probe()
        assert owner.ranges == before


@pytest.mark.parametrize("path", ["/", "/documents/home-pc", "/v1/hand-off/more"])
async def test_a_request_that_a_gateway_sends_to_its_address_learns_where_it_belongs(
    manager: Serving, path: str
) -> None:
    async with (
        Entities(Counter, "counters", manager.service.url) as one,
        aiohttp.ClientSession(one.station.owner.address) as session,
        session.post(path, data=b"x") as answer,
    ):
        assert answer.status == 404
        assert "Have it name the URL" in await answer.text()


async def test_a_process_of_the_pool_is_not_believed_to_be_another_one(manager: Serving) -> None:
    url = manager.service.url
    async with Entities(Counter, "counters", url) as one, Lookup(url, pool="counters") as lookup:
        address = one.station.owner.address
        channels = WebSocketChannels(secret=lookup.secret)
        heard: list[EntityCall] = []

        async def serve(call: EntityCall) -> tuple[bytes, object]:
            heard.append(call)
            return b"forged", always

        link = Link(
            await channels.connect(address),
            serve,  # type: ignore[arg-type]
            lambda _: None,
            Backlog(LINK_LIMITS),
        )
        running = asyncio.ensure_future(link.run())
        await link.ask(EntityCall("", b"", HELLO, address.encode()))
        await one.station._probe()
        assert await one["key"].add() == 1
        assert heard == []
        running.cancel()
        await asyncio.wait([running])
        await channels.close()


async def test_a_cache_with_a_lookup_reads_of_a_volume_and_one_without_does_not(
    manager: Serving,
) -> None:
    url = manager.service.url
    rooms: KeyedState[str] = KeyedState(value_type=str)
    async with AsyncExitStack() as stack:
        owner = await stack.enter_async_context(
            Owner(
                url,
                pool="rooms",
                address="http://127.0.0.1:1",
                hand_off=rooms,
                volume=Volume(rooms.get, value_type=str),
            )
        )
        await owner.ready()
        rooms["lobby"] = "open"
        lookup = await stack.enter_async_context(Lookup(url, pool="rooms"))
        cache = await stack.enter_async_context(Cache(lookup, value_type=str))
        assert await cache.get("lobby") == "open"
        reads = owner._made.reads  # type: ignore[union-attr]
        assert reads is not None
        alone = Cache(owner._made.machine.config.cache, value_type=str)  # type: ignore[union-attr, arg-type]
        with pytest.raises(Unreachable, match="proof"):
            async with alone:
                await alone.get("lobby")
