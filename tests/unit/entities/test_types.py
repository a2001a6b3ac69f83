"""What type checkers see of entities. mypy reads this file whenever the project is checked; pyright
agrees. It is run, too, so that the types are those of what is there.
"""

from typing import assert_type

import msgspec
import pytest

from tenure import Entities, Entity, Mapping, Series, reading
from tenure.entities.mapping import MappingPage
from tenure.entities.series import SeriesPage
from tests.unit.entities.stage import on_stage


class Line(msgspec.Struct):
    text: str = ""


class Lines(msgspec.Struct):
    count: int = 0


class TypedRoom(Entity[Lines]):
    history = Series(Line)
    members = Mapping(str, Line)
    seats = Mapping(int, str)

    async def say(self, text: str) -> int:
        assert_type(self.state, Lines)
        self.state.count += 1
        number = self.history.add(Line(text))
        assert_type(number, int)
        self.members.put("ann", Line(text))
        self.seats.put(1, text)
        return self.state.count

    @reading
    async def last(self) -> list[Line]:
        assert_type(await self.members.get("ann"), Line | None)
        assert_type(await self.seats.get(1), str | None)
        page = await self.history.page(first=1, newest=True)
        assert_type(page, SeriesPage[Line])
        assert_type(await self.seats.page(), MappingPage[int, str])
        return [assert_type(each, Line) for each in page]


@pytest.mark.asyncio
async def test_the_types_of_a_class_are_those_of_its_calls() -> None:
    async with on_stage(1, kind=TypedRoom) as stage:
        rooms: Entities[TypedRoom] = stage.members[0]
        room = assert_type(rooms["attic"], TypedRoom)
        assert assert_type(await stage.done(room.say("hello")), int) == 1
        assert assert_type(await stage.done(room.last()), list[Line]) == [Line("hello")]
