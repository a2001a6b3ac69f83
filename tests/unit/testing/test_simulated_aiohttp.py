"""Services of aiohttp in memory: handlers, relays and WebSockets as they are, under all faults."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.testing.cluster import InProcessCluster
from tenure.testing.serving import ServedSite
from tenure.testing.simulation import SeedFailed, run_seed, simulated
from tests.unit.testing.test_simulated import KEY, ROOMS, chats, seed_of
from tests.unit.testing.test_simulated_entities import chats as chats_of_entities

ROOM = f"{ROOMS}.of_aiohttp:app"


@asynccontextmanager
async def serving(app: str, processes: int = 2) -> AsyncIterator[ServedSite]:
    async with InProcessCluster().serve(app, processes=processes) as site:
        yield site


def test_a_room_of_aiohttp_is_clean_under_all_faults() -> None:
    assert sum(run_seed(seed_of(seed), ROOM, chats) for seed in range(4)) > 100


def test_a_room_of_aiohttp_that_is_an_entity_is_clean() -> None:
    app = f"{ROOMS}.entities_of_aiohttp:app"
    simulated(app, key="", seeds=2, minutes=3)(chats_of_entities)()


def test_a_broken_room_of_aiohttp_is_caught() -> None:
    broken = f"{ROOMS}.of_aiohttp_unchecked:app"
    with pytest.raises(SeedFailed, match=r"one owner: .* does not hold 'attic' at this instant"):
        run_seed(seed_of(0), broken, chats, KEY)


@pytest.mark.asyncio
async def test_requests_are_answered_and_relayed_as_the_handlers_write_them() -> None:
    async with serving(ROOM) as site:
        for _ in range(6):  # some of them by the process that does not have the room
            answer = await site.post("/rooms/attic", content=b"abcdef")
            assert (answer.status, answer.text, answer.headers["x-length"]) == (200, "abcdef", "6")
            assert (await site.get("/rooms/attic")).json() == []
        assert (await site.get("/nowhere/attic")).status == 404


@pytest.mark.asyncio
async def test_sockets_go_on_and_are_told_when_the_room_moves() -> None:
    async with serving(ROOM) as site:
        ann = await site.websocket("/rooms/attic?name=ann")
        bob = await site.websocket("/rooms/attic?name=bob")
        await ann.send("hello")
        assert await bob.lines(1) == ["ann: hello"]
        await site.turn(90)  # several heartbeats
        await bob.send("x" * 70_000)
        assert await ann.lines(2) == ["ann: hello", "bob: " + "x" * 70_000]
        await site.move("attic")
        await site.turn(1)
        assert ann.close_code == bob.close_code == 1012
        await ann.send("again")
        assert (await ann.lines(3))[-1] == "ann: again"
        with pytest.raises(OSError, match="refused"):
            await site.websocket("/nowhere")


@pytest.mark.asyncio
async def test_the_rooms_of_a_process_that_leaves_live_on() -> None:
    async with serving(ROOM, processes=3) as site:
        ann = await site.websocket("/rooms/attic?name=ann")
        await ann.send("hello")
        await ann.lines(1)
        owner = site.owner_of("attic")
        assert owner is not None
        await site.leave(owner)
        assert (await site.get("/rooms/attic")).json() == ["ann: hello"]
        assert site.owner_of("attic") != owner
