"""A site in memory: the application in several processes, and a test beside it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from tenure.errors import ConfigurationError
from tenure.testing.cluster import InProcessCluster
from tenure.testing.serving import ServedSite

pytestmark = pytest.mark.asyncio

CHAT = "tests.unit.testing.rooms.chat:app"


@asynccontextmanager
async def _serving(processes: int = 2) -> AsyncIterator[ServedSite]:
    cluster = InProcessCluster()
    async with cluster.serve(CHAT, processes=processes) as site:
        yield site


def serving(processes: int = 2) -> AbstractAsyncContextManager[ServedSite]:
    return _serving(processes)


async def test_a_room_moves_with_what_was_said_and_its_sockets_are_told() -> None:
    async with serving() as site:
        ann = await site.websocket("/rooms/attic?name=ann")
        bob = await site.websocket("/rooms/attic?name=bob")
        await ann.send("hello")
        assert await bob.lines(1) == ["ann: hello"]
        before = site.owner_of("attic")
        assert await site.move("attic") != before
        await site.turn(1)
        assert ann.close_code == bob.close_code == 1012
        await ann.send("again")
        assert await ann.lines(2) == ["ann: hello", "ann: again"]
        assert (await site.get("/rooms/attic")).json() == ["ann: hello", "ann: again"]


async def test_a_crash_loses_what_was_said_and_another_process_serves_on() -> None:
    async with serving() as site:
        ann = await site.websocket("/rooms/attic?name=ann")
        await ann.send("hello")
        await ann.lines(1)
        gone = site.owner_of("attic")
        site.crash(gone)
        await site.turn(20)
        assert site.owner_of("attic") not in (None, gone)
        assert (await site.get("/rooms/attic")).json() == []


async def test_a_process_leaves_and_hands_over_and_another_comes() -> None:
    async with serving() as site:
        ann = await site.websocket("/rooms/attic?name=ann")
        await ann.send("hello")
        await ann.lines(1)
        name = site.owner_of("attic")
        assert name is not None
        await site.leave(name)
        assert name not in site.processes
        assert (await site.get("/rooms/attic")).json() == ["ann: hello"]
        await site.start(name)
        assert name in site.processes


async def test_a_frozen_process_loses_its_keys_and_comes_back() -> None:
    async with serving() as site:
        name = site.owner_of("attic")
        site.freeze(name, 20)
        await site.turn(16)
        assert site.owner_of("attic") not in (None, name)
        await site.turn(10)
        assert (await site.get("/rooms/attic")).status == 200


async def test_a_frozen_assignment_keeps_keys_where_they_are() -> None:
    async with serving() as site:
        where = {key: site.owner_of(key) for key in map(str, range(50))}
        site.freeze_assignment()
        await site.turn(60)
        assert {key: site.owner_of(key) for key in where} == where
        site.unfreeze_assignment()


async def test_what_is_not_there_is_said() -> None:
    async with serving(processes=1) as site:
        with pytest.raises(ConfigurationError, match="no process 'p9' lives; there are p0"):
            site.crash("p9")
        with pytest.raises(ConfigurationError, match="there is no other process to move 'attic'"):
            await site.move("attic")
        with pytest.raises(ConfigurationError, match="p0 lives"):
            await site.start("p0")
