"""Calls: one at a time, in order, bounded; kept whole, or taken back."""

import asyncio

import msgspec
import pytest

from tenure.errors import NotOwner
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.lease.reports import EntityReport
from tenure.testing.clock import come_to_rest
from tests.unit.entities.stage import Counter, on_stage

pytestmark = pytest.mark.asyncio


async def test_calls_of_a_key_run_one_after_another_in_their_order() -> None:
    async with on_stage() as stage:
        (counters,) = stage.members
        assert await counters["a"].add() == 1
        await counters["a"].hold()
        adding = [asyncio.create_task(counters["a"].add()) for _ in range(20)]
        await come_to_rest()
        assert await counters["a"].value() == 1, "what is under way is not seen"
        await counters["a"].release()
        assert await asyncio.gather(*adding) == list(range(2, 22))
        assert await counters["a"].value() == 21
        assert await counters["b"].value() == 0


async def test_a_call_that_raises_is_taken_back_and_a_reading_changes_nothing() -> None:
    async with on_stage() as stage:
        (counters,) = stage.members
        await counters["a"].add(5)
        with pytest.raises(ValueError, match="on purpose"):
            await counters["a"].fail(3)
        assert await counters["a"].value() == 5
        assert await counters["a"].value() == 5
        with pytest.raises(LookupError):
            await counters["a"].commit_and_fail(2)
        assert await counters["a"].value() == 7


async def test_a_call_goes_to_the_owner_and_its_error_comes_back() -> None:
    async with on_stage(2) as stage:
        one, two = stage.members
        for key in [f"key-{i}" for i in range(10)]:
            for member in (one, two):
                assert await stage.done(member[key].add()) == (1 if member is one else 2)
            with pytest.raises(ValueError, match="on purpose") as raised:
                await stage.done(one[key].fail(3))
            assert raised.value.args == ("on purpose", 3)
            assert await stage.done(two[key].value()) == 2


async def test_state_moves_with_its_key_when_a_member_leaves_or_joins() -> None:
    async with on_stage(2) as stage:
        one, two = stage.members
        keys = [f"key-{i}" for i in range(40)]
        for key in keys:
            await stage.done(one[key].add(7))
        await stage.leave(one)
        assert [await stage.done(two[key].add()) for key in keys] == [8] * 40
        three = await stage.enter()
        await stage.spread()
        assert [await stage.done(three[key].add()) for key in keys] == [9] * 40
        assert stage.key_of(three)


async def test_who_has_left_and_is_asked_still_says_that_the_key_is_not_held() -> None:
    """Its lookup ends before its links: what comes is for the next owner."""
    async with on_stage(2) as stage:
        one = stage.members[0]
        key, station = stage.key_of(one), one.station
        await stage.leave(one)
        with pytest.raises(NotOwner) as refused:
            await station._serve(EntityCall(key, b"", "value", b""))
        assert refused.value.address is None


LONG = "a_name_that_is_longer_than_managers_read" * 6


class LongNames(Counter):
    pass


setattr(LongNames, LONG, Counter.add)


async def test_a_method_of_any_name_is_told_to_managers_within_what_they_read() -> None:
    """A renewal that they refused would cost the lease."""
    async with on_stage(kind=LongNames) as stage:
        (counters,) = stage.members
        await counters["a"].hold()
        adding = asyncio.create_task(getattr(counters["a"], LONG)())
        await come_to_rest()
        report = counters.station.report()
        assert report.turns == 1
        assert msgspec.convert(msgspec.to_builtins(report), EntityReport) == report
        await counters["a"].release()
        assert await stage.done(adding) == 1


async def test_who_has_left_leaves_nothing_running() -> None:
    """Its connections end, after which it would ask the others for frames that it has missed."""
    async with on_stage(2) as stage:
        one, two = stage.members
        await stage.done(one[stage.key_of(two)].add())
    await come_to_rest()
    assert asyncio.all_tasks() == {asyncio.current_task()}
