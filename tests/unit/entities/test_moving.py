"""Before a key moves its turns settle, within a bound; if state is lost, that is told."""

import asyncio

import pytest

from tenure.base.keys import hashed_key
from tenure.base.ranges import KeyRange
from tenure.testing.clock import come_to_rest
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio


async def test_a_turn_that_runs_ends_before_its_key_goes_and_goes_along() -> None:
    async with on_stage(2, settle=60.0) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        await stage.done(one[key].hold())
        adding = asyncio.create_task(one[key].add(5))
        await come_to_rest()
        moving = asyncio.create_task(stage.move(key, two))
        await stage.until(lambda: one.station.host.gate.envelopes.guards._settling)
        waiting = asyncio.create_task(two[key].add(1))
        for _ in range(10):
            await stage.cluster.turn(0.1)
        assert not any(each.done() for each in (adding, waiting))
        assert stage.owner_of(key) is one, "it is served until the turn is over"
        assert await stage.done(one[key].value()) == 0
        await stage.done(one[key].release())
        assert await stage.done(adding) == 5
        await stage.done(moving)
        assert await stage.done(waiting) == 6


async def test_a_turn_over_the_bound_is_taken_back_and_made_again_at_the_next_owner() -> None:
    async with on_stage(2, settle=0.5) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        await stage.done(one[key].add(1))
        await stage.done(one[key].hold())
        adding = asyncio.create_task(one[key].add(5))
        await come_to_rest()
        await stage.done(stage.move(key, two))
        assert await stage.done(adding) == 6
        assert await stage.done(one[key].value()) == 6


async def test_whoever_asks_is_told_that_a_crash_has_lost_the_state() -> None:
    lost: list[KeyRange] = []

    async def on_loss(ranges: tuple[KeyRange, ...]) -> None:
        lost.extend(ranges)

    async with on_stage(2, on_loss=on_loss) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        assert await stage.done(two[key].add(5)) == 5
        await stage.crash(one)
        await stage.until(lambda: any(hashed_key(key) in each for each in lost))
        assert await stage.done(two[key].add(1)) == 1
