"""Readings of copies when owners die, processes are cut off, stores fail and releases differ."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import ConfigurationError, Entities, Entity, StoreFailed, Unreachable, reading
from tenure.client.refusals import refusal
from tenure.entities.settings import READ_TERM_SECONDS
from tenure.protocol.lease.answers import Owners
from tenure.protocol.lease.leader.events import ListOwners
from tenure.protocol.lease.steering_events import Evict
from tests.unit.entities.reading import (
    Room,
    Silence,
    copies_of,
    everywhere,
    seconds_until,
    shared,
    stats,
    until_copied,
)
from tests.unit.entities.stage import Stage, on_stage

pytestmark = pytest.mark.asyncio
LONGEST_WAIT = READ_TERM_SECONDS * 13 / 12
STEP = 0.05


async def test_a_change_waits_for_a_process_that_hears_nothing_and_no_longer_than_its_lease() -> (
    None
):
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        Silence(stage.cluster, elsewhere)
        saying = asyncio.create_task(owner[key].say("new"))
        reads = 0
        began = stage.cluster.clock()
        while not saying.done():
            if copies_of(elsewhere)._hits.proof(key) is not None:
                reads += 1
                assert await elsewhere[key].last() == "old"
                assert await owner[key].last() == "old"  # the change is seen by nobody yet
                assert not saying.done()
            await stage.cluster.turn(STEP)
        assert reads
        assert copies_of(elsewhere)._hits.proof(key) is None
        assert (stage.cluster.clock() - began) / 1e9 < LONGEST_WAIT + 3 * STEP


async def test_one_that_is_silent_for_a_minute_reads_what_is_new_by_then() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        silence = Silence(stage.cluster, elsewhere)
        await stage.done(owner[key].say("meanwhile"))
        for number in range(3):
            await stage.cluster.turn(20)
            saying = asyncio.create_task(owner[key].say(str(number)))
            assert await seconds_until(stage, saying) < 1  # who is silent is waited for once
        silence.end()
        assert await stage.done(elsewhere[key].last()) == "2"


async def test_who_is_cut_off_says_so() -> None:
    async with everywhere() as stage:
        _, elsewhere, key = await shared(stage)
        Silence(stage.cluster, elsewhere)
        await stage.cluster.turn(2)
        asking = asyncio.create_task(elsewhere[key].last())
        took = await seconds_until(stage, asking)
        with pytest.raises(Unreachable, match=f"{key!r} was not read") as caught:
            await asking
        assert 4 < took < 7
        answer = refusal(caught.value)
        assert answer is not None
        assert answer.status == 503


async def test_who_is_cut_off_may_be_given_a_state_that_is_not_too_old() -> None:
    async with everywhere(stale_after=30.0) as stage:
        owner, elsewhere, key = await shared(stage)
        silence = Silence(stage.cluster, elsewhere)
        await stage.done(owner[key].say("new"))
        await stage.cluster.turn(20)
        assert await stage.done(elsewhere[key].last()) == "old"
        await stage.cluster.turn(20)
        with pytest.raises(Unreachable):
            await stage.done(elsewhere[key].last())
        silence.end()
        assert await stage.done(elsewhere[key].last()) == "new"


async def test_a_reading_that_waits_is_told_that_it_is_cut_off() -> None:
    async with everywhere() as stage:
        _, elsewhere, key = await shared(stage)
        waiting = asyncio.create_task(elsewhere[key].after("old"))
        await stage.cluster.turn(1)
        Silence(stage.cluster, elsewhere)
        with pytest.raises(Unreachable):
            await stage.done(waiting)


async def test_what_moves_is_not_read_as_it_was_before() -> None:
    async with everywhere(3) as stage:
        owner, elsewhere, key = await shared(stage)
        third = stage.members[2]
        said = "old"
        for number, to in enumerate([third, owner] * 3):
            await stage.move(key, to)
            assert await stage.done(elsewhere[key].last()) == said
            said = str(number)
            await stage.done(to[key].say(said))
            assert await stage.done(elsewhere[key].last()) == said
            await until_copied(stage, elsewhere, key)


async def died(stage: Stage, member: Entities[Any]) -> None:
    """Crash it, and say so: what it had is free at once."""
    found = stage.cluster.ask(ListOwners("counters"))
    assert isinstance(found, Owners)
    address = member.station.owner.address
    (its,) = (each for each in found.owners if each.address == address)
    await stage.crash(member)
    stage.cluster.ask(Evict(pool="counters", incarnation=its.incarnation, confirmed_dead=True))


async def test_a_state_that_died_is_lost_to_nobody_while_others_may_read_it() -> None:
    """A former owner takes no copies back: the next one waits until nobody can read them."""
    async with everywhere(3) as stage:
        owner, *others = stage.members
        _, _, key = await shared(stage)
        for each in others:
            await until_copied(stage, each, key)
            stage.cluster.crash(each.station.lookup)  # it hears nothing of the death either
        await died(stage, owner)
        await stage.until(lambda: stage.owner_of(key))
        following = stage.owner_of(key)
        assert following is not None
        (elsewhere,) = (each for each in others if each is not following)
        asking = asyncio.create_task(following[key].last())
        reads = 0
        while not asking.done():
            if copies_of(elsewhere)._hits.proof(key) is not None:
                reads += 1
                assert await elsewhere[key].last() == "old"
                assert not asking.done()
            await stage.cluster.turn(STEP / 5)
        assert reads
        assert await asking == ""


@pytest.mark.parametrize("has_store", [False, True])
async def test_after_a_crash_nothing_older_is_read_than_the_next_owner_has_answered(
    tmp_path: Path, *, has_store: bool
) -> None:
    options = {"store": f"sqlite:{tmp_path / 'store'}"} if has_store else {}
    async with everywhere(3, **options) as stage:
        owner, elsewhere, key = await shared(stage)
        await stage.crash(owner)
        saying = asyncio.create_task(elsewhere[key].say("new"))
        assert await stage.done(saying) == (2 if has_store else 1)
        for each in stage.members:
            assert await stage.done(each[key].last()) == "new"


async def test_a_state_in_a_store_is_read_everywhere(tmp_path: Path) -> None:
    async with everywhere(store=f"sqlite:{tmp_path / 'store'}") as stage:
        owner, elsewhere, key = await shared(stage)
        for number in range(5):
            await stage.done(owner[key].say(str(number)))
            assert await stage.done(elsewhere[key].last()) == str(number)


@pytest.mark.parametrize("has_store", [False, True])
async def test_a_key_that_is_too_long_for_copies_is_read_and_changed_at_its_owner(
    tmp_path: Path, *, has_store: bool
) -> None:
    options = {"store": f"sqlite:{tmp_path / 'store'}"} if has_store else {}
    async with everywhere(2, **options) as stage:
        owner, elsewhere = stage.members
        key = stage.key_of(owner, "é" * 1000)
        for said in ("one", "two"):
            await stage.done(owner[key].say(said))
            assert await stage.done(elsewhere[key].last()) == said
        assert stats(elsewhere)["entries"] == 0


async def test_a_copy_that_is_asked_for_while_a_change_is_stored_has_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody had a copy when the change began, so it waits for none; who asks meanwhile waits."""
    async with everywhere(store=f"sqlite:{tmp_path / 'store'}") as stage:
        owner, elsewhere, key = await shared(stage)
        await stage.done(owner[key].say("one"))
        gate = owner.station.host.gate
        assert gate.store is not None
        save, go_on, begun = gate.store.save, asyncio.Event(), asyncio.Event()

        async def slow(*given: Any) -> Any:  # noqa: ANN401
            begun.set()
            await go_on.wait()
            return await save(*given)

        monkeypatch.setattr(gate.store, "save", slow)
        saying = asyncio.create_task(owner[key].say("two"))
        await stage.until(begun.is_set)
        asking = asyncio.create_task(elsewhere[key].last())
        await stage.cluster.turn(1)
        assert not asking.done()
        go_on.set()
        assert await stage.done(asking) == "two"
        await stage.done(saying)


async def test_a_change_that_may_be_stored_or_not_is_read_as_the_store_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with everywhere(store=f"sqlite:{tmp_path / 'store'}") as stage:
        owner, elsewhere, key = await shared(stage)
        gate = owner.station.host.gate
        assert gate.store is not None
        save = gate.store.save

        async def stumbling(*given: Any) -> Any:  # noqa: ANN401
            await save(*given)
            raise StoreFailed("the answer was lost")

        for said in ("one", "two"):  # with a copy elsewhere, and without
            monkeypatch.setattr(gate.store, "save", stumbling)
            with pytest.raises(StoreFailed):
                await stage.done(owner[key].say(said))
            monkeypatch.setattr(gate.store, "save", save)
            assert await stage.done(elsewhere[key].last()) == said
            assert await stage.done(owner[key].last()) == said


async def test_a_call_in_a_process_that_leaves_is_kept_or_made_again() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        saying = asyncio.create_task(elsewhere[key].say("new"))
        await asyncio.sleep(0)
        await stage.leave(owner)
        await stage.done(saying)
        assert await stage.done(elsewhere[key].last()) == "new"


class NewLines(msgspec.Struct):
    said: list[str] = []
    topic: str = "none"


class RoomWithTopic(Entity[NewLines], name="Room"):
    async def say(self, text: str) -> int:
        self.state.said.append(text)
        self.state.topic = text
        return len(self.state.said)

    @reading
    async def last(self) -> str:
        return self.state.said[-1] if self.state.said else ""

    @reading
    async def topic(self) -> str:
        return self.state.topic


class LaterRoom(RoomWithTopic, version=2, name="Room"):
    """Whose state the class before cannot read."""


async def test_a_state_of_a_later_version_is_read_by_its_owner() -> None:
    async with on_stage(1, kind=LaterRoom, reads="everywhere") as stage:
        (later,) = stage.members
        earlier = await stage.enter(Room, reads="everywhere")
        key = stage.key_of(later)
        for said in ("one", "two"):
            await stage.done(later[key].say(said))
            assert await stage.done(earlier[key].last()) == said
            assert await stage.done(earlier[key].last()) == said
        assert stats(earlier)["entries"] == 1


async def test_processes_with_and_without_a_new_field_read_each_others_states() -> None:
    async with on_stage(1, kind=Room, reads="everywhere") as stage:
        (without,) = stage.members
        having = await stage.enter(RoomWithTopic, reads="everywhere")
        await stage.spread()
        key, other = stage.key_of(without), stage.key_of(having)
        await stage.done(without[key].say("one"))
        await until_copied(stage, having, key)
        assert await stage.done(having[key].topic()) == "none"
        await stage.done(without[other].say("two"))
        assert await stage.done(without[other].last()) == "two"
        assert await stage.done(having[other].topic()) == "two"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"reads": "anywhere"}, 'reads is "owner" or "everywhere", not'),
        ({"stale_after": 3.0}, 'stale_after is for reads="everywhere"'),
        ({"reads": "everywhere", "stale_after": -1}, "stale_after"),
    ],
)
async def test_what_cannot_be_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Entities(Room, pool="counters", **options)
