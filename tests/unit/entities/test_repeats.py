"""A repeat gets the first answer, also from the next owner; a call that was cut knows it."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tenure import Entity
from tenure.protocol.entity.envelope import ANSWER_SECONDS, MOST_ANSWERS, TOGETHER
from tenure.protocol.entity.key_line import EntityCall
from tests.unit.entities.stage import Counter, Stage, on_stage

pytestmark = pytest.mark.asyncio


async def again(stage: Stage, member: int, key: str, call: str, method: str = "add") -> int:
    """A call with an id of ours."""
    station = stage.members[member].station
    found = station.kind.method(method)
    answer = await stage.done(station.caller.call(key, method, found.encode((), {}), call.encode()))
    value: int = found.arrived(answer)
    return value


async def test_a_repeat_gets_the_first_answer_wherever_the_key_is_by_then() -> None:
    async with on_stage(2) as stage:
        key = stage.key_of(stage.members[0])
        assert await again(stage, 1, key, "one") == 1
        assert await again(stage, 0, key, "one") == 1
        assert await again(stage, 0, key, "two") == 2
        await stage.leave(stage.members[0])
        assert await again(stage, 0, key, "one") == 1
        assert await again(stage, 0, key, "two") == 2
        assert await again(stage, 0, key, "three") == 3


async def test_the_answers_of_the_last_calls_are_kept_for_some_minutes() -> None:
    async with on_stage(1) as stage:
        count = MOST_ANSWERS + TOGETHER + 1
        for i in range(count):
            assert await again(stage, 0, "a", str(i)) == i + 1
        assert await again(stage, 0, "a", str(count - MOST_ANSWERS)) == count - MOST_ANSWERS + 1
        assert await again(stage, 0, "a", "0") == count + 1, "it was too long ago"
        host = stage.members[0].station.host
        later = host.gate.wall() + ANSWER_SECONDS + 1
        host.gate.wall = lambda: later
        await again(stage, 0, "a", "new")
        (live,) = host._live.values()
        assert len(live.envelope.answers) == 1


class Steps(msgspec.Struct):
    done: list[str] = []


class Worker(Entity[Steps]):
    async def on_activate(self) -> None:
        self.is_stuck = True

    async def work(self) -> list[str]:
        if not self.is_repeat:
            self.state.done.append("first")
            await self.commit()
            await asyncio.Event().wait()
        self.state.done.append("second")
        return self.state.done


async def test_a_call_that_was_cut_after_a_commit_comes_back_as_a_repeat() -> None:
    async with on_stage(1, kind=Worker) as stage:
        one = stage.members[0]
        working = asyncio.ensure_future(one["a"].work())
        await stage.until(lambda: one.station.host._live.get("a"))
        live = one.station.host._live["a"]
        await stage.until(lambda: live.envelope.answers)
        await stage.enter(kind=Worker)
        leaving = asyncio.ensure_future(one.station.owner.close(drain=1))
        await stage.until(leaving.done)
        await stage.until(working.done)
        assert await working == ["first", "second"]


async def test_a_repeat_of_a_call_that_still_runs_waits_for_its_answer() -> None:
    async with on_stage(1, kind=Counter) as stage:
        station = stage.members[0].station
        await stage.members[0]["a"].add(10)
        await stage.members[0]["a"].hold()
        call = EntityCall("a", b"same", "add", station.kind.method("add").encode((), {}))
        same = EntityCall("a", b"same", "add", call.data)
        both = [asyncio.create_task(station.host.perform(each)) for each in (call, same)]
        await asyncio.sleep(0)
        await stage.members[0]["a"].release()
        assert await both[0] == await both[1]
        assert await stage.members[0]["a"].value() == 11


def kept_of(stage: Stage, key: str) -> list[bytes | None]:
    """The answers that the owner of the key keeps."""
    owner = stage.owner_of(key)
    assert owner is not None
    groups = owner.station.host._live[key].envelope.answers
    return [it.data for group in groups for it in group.values()]


async def test_an_answer_is_kept_only_where_somebody_may_ask_for_it_again(tmp_path: Path) -> None:
    async with on_stage(2) as stage:
        here, elsewhere = stage.members
        key = stage.key_of(here)
        assert await here[key].add() == 1
        assert kept_of(stage, key) == [], "the caller has it, and nobody else knows its id"
        assert await stage.done(elsewhere[key].add()) == 2
        assert len(kept_of(stage, key)) == 1, "the answer may be lost on its way"
        assert await here.once("mine")[key].add() == 3
        assert len(kept_of(stage, key)) == 2, "others may have the id"
        with pytest.raises(LookupError):
            await here[key].commit_and_fail(1)
        assert kept_of(stage, key)[2:] == [None], "it is a repeat, should it come again"
    async with on_stage(1, store=f"sqlite:{tmp_path / 'store'}") as stage:
        assert await stage.done(stage.members[0]["a"].add()) == 1
        assert len(kept_of(stage, "a")) == 1, "the store may have kept it, and said nothing"
