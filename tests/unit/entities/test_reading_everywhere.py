"""Readings run in the process that calls them, on copies that are never older than an answer."""

import asyncio
from typing import Any

import msgspec
import pytest

from tenure import Entities, Entity, reading
from tests.unit.entities.stage import Stage, on_stage

pytestmark = pytest.mark.asyncio


class Lines(msgspec.Struct):
    said: list[str] = []


class Room(Entity[Lines]):
    ran_at: list[str] = []
    """The processes in which a reading ran."""

    async def say(self, text: str) -> int:
        self.state.said.append(text)
        return len(self.state.said)

    @reading
    async def last(self) -> str:
        return self.state.said[-1] if self.state.said else ""

    @reading
    async def people(self) -> int:
        return len(self.state.said) + len(self.sockets)

    @reading
    async def after(self, text: str) -> str:
        while not self.state.said or self.state.said[-1] == text:
            await self.changed()
        return self.state.said[-1]

    @reading
    async def draws(self) -> str:
        return str(self.drawn)  # type: ignore[attr-defined]  # set by a call, at the owner

    async def draw(self) -> None:
        self.drawn = "a line"


async def two(stage: Stage, **options: Any) -> tuple[Entities[Room], Entities[Room], str]:  # noqa: ANN401
    owner, elsewhere = stage.members
    return owner, elsewhere, stage.key_of(owner)


def everywhere(members: int = 2, **options: Any) -> Any:  # noqa: ANN401
    return on_stage(members, kind=Room, reads="everywhere", **options)


def hits(member: Entities[Any]) -> int:
    copies = member.station.copies
    assert copies is not None
    return copies.client.stats()["hits"]


async def test_a_reading_elsewhere_asks_nobody_twice_and_sees_the_next_commit() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await two(stage)
        await stage.done(owner[key].say("hello"))
        assert await stage.done(elsewhere[key].last()) == "hello"
        before = stage.cluster.clock()
        await stage.done(elsewhere[key].last())
        for _ in range(10):
            assert await elsewhere[key].last() == "hello"
        assert hits(elsewhere) >= 10, before
        await stage.done(owner[key].say("again"))
        assert await stage.done(elsewhere[key].last()) == "again"
