"""Entities that call each other: what went before is kept, circles are refused, crossing ends."""

import asyncio

import msgspec
import pytest

from tenure import Entities, Entity, OutcomeUnknown, UsageError
from tenure.testing.clock import come_to_rest
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio


class Balance(msgspec.Struct):
    cents: int = 100


class Account(Entity[Balance]):
    bank: "Entities[Account]"

    async def cents(self) -> int:
        return self.state.cents

    async def give(self, to: str, cents: int) -> int:
        self.state.cents -= cents
        return await banks[0][to].take(cents)

    async def take(self, cents: int) -> int:
        if cents < 0:
            raise ValueError(cents)
        self.state.cents += cents
        return self.state.cents

    async def round(self, keys: list[str]) -> str:
        """Call the next, and that the one after it."""
        if not keys:
            return "done"
        self.state.cents -= 1
        return await banks[0][keys[0]].round(keys[1:])

    async def cross(self, to: str) -> None:
        meeting.pop().set()
        for each in both:
            await each.wait()
        await banks[0][to].cents()


banks: list[Entities[Account]] = []
meeting: list[asyncio.Event] = []
both: list[asyncio.Event] = []


async def test_a_call_to_another_keeps_what_went_before_it() -> None:
    async with on_stage(2, kind=Account) as stage:
        banks[:] = stage.members
        ann, bob = (stage.key_of(each) for each in stage.members)
        assert await stage.done(banks[1][ann].give(bob, 30)) == 130
        with pytest.raises(ValueError, match="-1"):
            await stage.done(banks[1][ann].give(bob, -1))
        assert await stage.done(banks[1][ann].cents()) == 71, "it was kept before bob was asked"
        assert await stage.done(banks[0][bob].cents()) == 130


async def test_a_circle_is_refused_at_once_and_named() -> None:
    async with on_stage(2, kind=Account) as stage:
        banks[:] = stage.members
        ann, bob = (stage.key_of(each) for each in stage.members)
        assert await stage.done(banks[0][ann].round([bob, "carol"])) == "done"
        with pytest.raises(UsageError, match=f"{ann!r} -> .*{bob!r} -> .*{ann!r}"):
            await stage.done(banks[0][ann].round([bob, ann]))
        with pytest.raises(UsageError, match="in a circle"):
            await stage.done(banks[0][ann].give(ann, 1))


async def test_chains_that_cross_end_and_say_who_holds_what() -> None:
    async with on_stage(2, kind=Account, wait=0.2) as stage:
        banks[:] = stage.members
        both[:] = [asyncio.Event(), asyncio.Event()]
        meeting[:] = both
        ann, bob = (stage.key_of(each) for each in stage.members)
        crossing = [
            asyncio.ensure_future(banks[0][one].cross(other))
            for one, other in ((ann, bob), (bob, ann))
        ]
        await stage.until(lambda: all(each.done() for each in crossing))
        errors = [each.exception() for each in crossing]
        busy = [str(each) for each in errors if "has raised Busy" in str(each)]
        assert busy, errors
        assert {type(each) for each in errors} <= {OutcomeUnknown, type(None)}, "both were begun"
        assert any("whose turn cross has had" in each for each in busy), busy
        assert any("waits for counters" in each for each in busy), busy
        await come_to_rest()
        assert await stage.done(banks[0][ann].cents()) == 100
