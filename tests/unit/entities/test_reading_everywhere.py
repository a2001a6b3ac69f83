"""Readings run in the process that calls them, on copies that are never older than an answer."""

import asyncio

import pytest

from tenure import UsageError
from tenure.errors import EntityError
from tests.unit.entities.reading import Room, asked, everywhere, shared, stats, until_copied, waits
from tests.unit.entities.stage import attached, on_stage

pytestmark = pytest.mark.asyncio


async def test_a_reading_elsewhere_asks_nobody_twice_and_sees_the_next_commit() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage, "hello")
        before = asked(elsewhere), owner.stats()["received"]
        for _ in range(10):
            assert await elsewhere[key].last() == "hello"
        assert (asked(elsewhere), owner.stats()["received"]) == before
        await stage.done(owner[key].say("again"))
        assert await stage.done(elsewhere[key].last()) == "again"


async def test_who_has_an_answer_reads_nothing_older() -> None:
    async with everywhere(3) as stage:
        owner, elsewhere, key = await shared(stage)
        third = stage.members[2]
        for number in range(20):
            said = str(number)
            await stage.done(elsewhere[key].say(said))
            for each in (elsewhere, third, owner):
                assert await stage.done(each[key].last()) == said


async def test_a_change_that_fails_is_seen_by_nobody() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        with pytest.raises(ValueError, match="new"):
            await stage.done(owner[key].fail("new"))
        assert await elsewhere[key].last() == "old"


async def test_what_is_forgotten_is_not_read_elsewhere() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        await stage.done(owner[key].clear())
        assert await stage.done(elsewhere[key].last()) == ""


async def test_a_key_that_nobody_has_a_copy_of_waits_for_nothing() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        assert waits(owner, key)
        await stage.done(owner[key].say("one"))
        assert not waits(owner, key)
        asking = asyncio.ensure_future(owner[key].say("two"))
        await asyncio.sleep(0)
        assert await asking == 3  # the library's thread was not asked
        assert await stage.done(elsewhere[key].last()) == "two"
        assert waits(owner, key)


async def test_what_readers_do_not_see_waits_for_none_of_them() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        await stage.done(owner[key].alarm())
        assert waits(owner, key)
        before = asked(elsewhere)
        assert await elsewhere[key].last() == "old"
        assert asked(elsewhere) == before


async def test_a_reading_waits_for_a_change_elsewhere() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        waiting = [asyncio.create_task(elsewhere[key].after("old")) for _ in range(3)]
        await stage.cluster.turn(3)
        assert not any(each.done() for each in waiting)
        await stage.done(owner[key].say("new"))
        for each in waiting:
            assert await stage.done(each) == "new"


async def test_a_reading_that_waits_goes_on_when_its_key_moves() -> None:
    async with everywhere(3) as stage:
        _, elsewhere, key = await shared(stage)
        waiting = asyncio.create_task(elsewhere[key].after("old"))
        await stage.cluster.turn(0.5)
        third = stage.members[2]
        await stage.move(key, third)
        await stage.done(third[key].say("new"))
        assert await stage.done(waiting) == "new"


@pytest.mark.parametrize(
    "method", ["people", "people_or_none", "alarmed", "times", "number", "is_after_a_loss"]
)
async def test_what_only_the_owner_knows_is_asked_of_the_owner(method: str) -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        await stage.done(owner[key].alarm())
        client, ending = attached(elsewhere, key)
        await stage.until(lambda: client.is_accepted)
        await stage.cluster.turn(0.1)
        here, there = [
            await stage.done(getattr(each[key], method)()) for each in (owner, elsewhere)
        ]
        assert type(here) is type(there)
        if method != "times":
            assert here == there
            assert method == "is_after_a_loss" or here
        client.leave()
        await stage.done(ending)


async def test_attributes_that_are_not_state_are_the_owners() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        await stage.done(owner[key].draw())
        assert await stage.done(elsewhere[key].drawing()) == "a line"


async def test_a_method_that_needs_its_owner_is_not_tried_here_every_time() -> None:
    async with everywhere() as stage:
        _, elsewhere, key = await shared(stage)
        assert await stage.done(elsewhere[key].people()) == 1
        before = stats(elsewhere)["hits"]
        assert await stage.done(elsewhere[key].people()) == 1
        assert stats(elsewhere)["hits"] == before


async def test_each_reading_has_a_state_of_its_own() -> None:
    async with everywhere() as stage:
        _, elsewhere, key = await shared(stage)
        assert await elsewhere[key].spoil() == "spoilt"
        assert await elsewhere[key].last() == "old"
        with pytest.raises(UsageError, match="is marked @reading, and cannot assign state"):
            await elsewhere[key].change()


async def test_errors_of_a_reading_elsewhere_are_its_own() -> None:
    async with everywhere() as stage:
        _, elsewhere, key = await shared(stage)
        with pytest.raises((AttributeError, EntityError), match="missing"):
            await elsewhere[key].stumble()


async def test_keys_are_texts_and_numbers_beside_each_other() -> None:
    async with everywhere() as stage:
        owner, elsewhere = stage.members
        for key in ("", 0, "0", 7, 2**64 - 1, "é" * 100):
            at, other = (owner, elsewhere) if owner.station.owner.check(key) else (elsewhere, owner)
            await stage.done(at[key].say(repr(key)))
            assert await stage.done(other[key].last()) == repr(key)
            await until_copied(stage, other, key)  # type: ignore[arg-type]
            await stage.done(at[key].say("new"))
            assert await stage.done(other[key].last()) == "new"


async def test_without_reads_everywhere_there_are_no_copies() -> None:
    async with on_stage(2, kind=Room) as stage:
        owner, elsewhere = stage.members
        key = stage.key_of(owner)
        await stage.done(owner[key].say("hello"))
        assert await stage.done(elsewhere[key].last()) == "hello"
        assert elsewhere.station.copies is None
        assert owner.station.host.gate.copies is None
        assert owner.tiers().volume is None


async def test_an_owner_that_gives_no_copies_is_asked() -> None:
    """A process of an earlier release, or with another setting, beside one that reads copies."""
    async with on_stage(1, kind=Room) as stage:
        owner = stage.members[0]
        elsewhere = await stage.enter(Room, reads="everywhere")
        await stage.spread()
        key = stage.key_of(owner)
        for said in ("one", "two"):
            await stage.done(owner[key].say(said))
            assert await stage.done(elsewhere[key].last()) == said
        assert stats(elsewhere)["entries"] == 0
        mine = stage.key_of(elsewhere)
        await stage.done(owner[mine].say("three"))
        assert await stage.done(owner[mine].last()) == "three"


async def test_a_process_keeps_no_more_copies_than_its_limit() -> None:
    async with everywhere(limit=5) as stage:
        owner, elsewhere = stage.members
        keys = [key for key in map(str, range(60)) if owner.station.owner.check(key)]
        assert len(keys) > 10
        for key in keys:
            await stage.done(elsewhere[key].last())
            await stage.done(elsewhere[key].last())
        assert 0 < stats(elsewhere)["entries"] <= 5
