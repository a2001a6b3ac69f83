"""Tests of what is kept about a key: readings that wait for it, keys that are forgotten, callers'
own ids.
"""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import Alarm, Entity, UsageError, reading
from tenure.testing.clock import come_to_rest
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio


class Note(msgspec.Struct):
    text: str = ""
    rung: int = 0


class Notes(Entity[Note]):
    async def write(self, text: str) -> str:
        self.state.text = text
        return text

    async def write_and_ring(self, text: str) -> None:
        self.state.text = text
        self.set_alarm("later", self.now() + 3600)

    async def on_alarm(self, alarm: Alarm) -> None:
        self.state.rung += 1

    async def drop(self) -> None:
        self.forget()

    async def drop_and_fail(self) -> None:
        self.forget()
        raise ValueError("on purpose")

    async def wait_in_a_turn(self) -> None:
        await self.changed()

    @reading
    async def read(self) -> str:
        return self.state.text

    @reading
    async def other_than(self, text: str) -> str:
        while self.state.text == text:
            await self.changed()
        return self.state.text

    @reading
    async def after_changes(self, count: int) -> str:
        for _ in range(count):
            await self.changed()
        return self.state.text


async def test_a_reading_that_only_waits_waits_for_each_change() -> None:
    """Else a method that looks at nothing in between would never let anybody else go on."""
    async with on_stage(kind=Notes) as stage:
        (notes,) = stage.members
        await notes["a"].write("one")
        waiting = asyncio.create_task(notes["a"].after_changes(2))
        await come_to_rest()
        await notes["a"].write("two")
        await come_to_rest()
        assert not waiting.done()
        await notes["a"].write("three")
        assert await waiting == "three"


async def test_a_reading_waits_for_what_is_kept_next() -> None:
    async with on_stage(kind=Notes) as stage:
        (notes,) = stage.members
        await notes["a"].write("one")
        assert await notes["a"].other_than("two") == "one", "nothing has to happen"
        waiting = [asyncio.create_task(notes["a"].other_than("one")) for _ in range(3)]
        await come_to_rest()
        await notes["b"].write("two")
        await notes["a"].write("one")
        await come_to_rest()
        assert not any(each.done() for each in waiting)
        await notes["a"].write("three")
        assert await asyncio.gather(*waiting) == ["three"] * 3
        with pytest.raises(UsageError, match="mark it @reading"):
            await notes["a"].wait_in_a_turn()


async def test_a_reading_that_waits_goes_on_at_the_next_owner() -> None:
    async with on_stage(2, kind=Notes) as stage:
        one, two = stage.members
        key = stage.key_of(two)
        await stage.done(one[key].write("one"))
        waiting = asyncio.create_task(one[key].other_than("one"))
        await come_to_rest()
        await stage.leave(two)
        assert not waiting.done()
        await stage.done(one[key].write("two"))
        assert await stage.done(waiting) == "two"


@pytest.mark.parametrize("has_store", [False, True])
async def test_what_is_forgotten_leaves_nothing_and_begins_anew(
    tmp_path: Path, has_store: bool
) -> None:
    store: dict[str, Any] = {"store": f"sqlite:{tmp_path / 'store'}"} if has_store else {}
    async with on_stage(kind=Notes, **store) as stage:
        (notes,) = stage.members
        await stage.done(notes["a"].write_and_ring("one"))
        with pytest.raises(ValueError, match="on purpose"):
            await stage.done(notes["a"].drop_and_fail())
        assert await stage.done(notes["a"].read()) == "one"
        await stage.done(notes["a"].drop())
        assert "a" not in notes.station.host.gate.envelopes
        assert len(notes.station._alarms.agenda) == 0
        assert await stage.done(notes["a"].read()) == ""
        await stage.done(notes["a"].write("two"))
        assert await stage.done(notes["a"].read()) == "two"


async def test_a_call_under_an_id_is_carried_out_once_whoever_makes_it() -> None:
    async with on_stage(2, kind=Notes) as stage:
        one, two = stage.members
        assert await stage.done(one.once("id")["a"].write("one")) == "one"
        assert await stage.done(two.once("id")["a"].write("two")) == "one"
        assert await stage.done(one["a"].read()) == "one"
        assert await stage.done(two.once("other")["a"].write("two")) == "two"
        for wrong in (5, b"id", "", None):
            with pytest.raises(UsageError, match="the id of a call"):
                one.once(wrong)  # type: ignore[arg-type]
