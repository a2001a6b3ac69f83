"""The programs of the page on changing state are three releases of one class."""

from typing import Any

import pytest

from tenure import Entity, NewerState
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio
PAGE = ROOT / "docs" / "guides" / "changing-state.md"


def releases() -> list[type[Entity[Any]]]:
    found = []
    for line, program in python_fences(PAGE.read_text("utf-8")):
        names: dict[str, Any] = {"__name__": "room"}
        exec(compile(program, f"{PAGE.name}:{line}", "exec"), names)  # noqa: S102
        found.append(names["Room"])
    return found


async def test_the_releases_of_the_page_run_beside_each_other() -> None:
    first, second, third = releases()
    async with on_stage(1, kind=first) as stage:
        (old,) = stage.members
        assert await stage.done(old["attic"].say("one")) == 1
        new = await stage.enter(kind=second)
        await stage.move("attic", new)
        assert await stage.done(old["attic"].say("two")) == 2
        assert await stage.done(new["attic"].like(0)) == 1
        await stage.move("attic", old)
        assert await stage.done(new["attic"].say("three")) == 3
        await stage.move("attic", new)
        assert await stage.done(new["attic"].like(0)) == 2
        await stage.leave(old)
        newest = await stage.enter(kind=third)
        await stage.move("attic", newest)
        assert await stage.done(newest["attic"].like(2)) == 3
        await stage.move("attic", new)
        with pytest.raises(NewerState):
            await stage.done(new["attic"].say("four"))
        await stage.leave(new)
        assert await stage.done(newest["attic"].say("four")) == 4
