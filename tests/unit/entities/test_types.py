"""What type checkers see of entities. mypy reads this file whenever the project is checked, and
pyright in a test, which has it read the examples, too. It is run, so that the types are those of
what is there.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import msgspec
import pytest

from tenure import Entities, Entity, Mapping, Series, reading
from tenure.entities.mapping import MappingPage
from tenure.entities.series import SeriesPage
from tests.repo.reading import ROOT
from tests.unit.entities.stage import on_stage

READ = ("tests/unit/entities/test_types.py", "examples")
WRONG = """
from typing import assert_type

from tenure import Entity, Mapping


class Room(Entity[list[str]]):
    members = Mapping(str, int)

    async def join(self, name: str) -> None:
        self.members.put(name, name)
        assert_type(await self.members.get(name), int)
"""


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


@pytest.mark.skipif(
    importlib.util.find_spec("basedpyright") is None, reason="basedpyright is not installed"
)
def test_pyright_reads_the_types_as_mypy_does(tmp_path: Path) -> None:
    """basedpyright, which comes with the Node.js that it runs in, judges here as pyright does. It
    finds the two faults of a class that is wrong.
    """
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "include": [str(wrong), *(str(ROOT / each) for each in READ)],
                "extraPaths": [str(ROOT / "src"), str(ROOT)],
                "typeCheckingMode": "standard",
                "pythonVersion": "3.11",
            }
        )
    )
    pyright = (sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable)
    done = subprocess.run(
        [*pyright, "--project", str(tmp_path)], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 10
    assert [
        (Path(each["file"]).name, each["rule"], each["range"]["start"]["line"])
        for each in found["generalDiagnostics"]
        if each["severity"] == "error"
    ] == [("wrong.py", "reportArgumentType", 10), ("wrong.py", "reportAssertTypeFailure", 11)]
