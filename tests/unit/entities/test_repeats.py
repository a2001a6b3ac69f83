"""A repeat gets the first answer, also from the next owner; a call that was cut knows it."""

import asyncio

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
