"""`tenure entities`, against a manager and entities in this process."""

import asyncio
import json

import pytest

from tests.unit.cli.test_commands import to
from tests.unit.entities.test_inspecting import SECRET, rooms

pytestmark = pytest.mark.asyncio
Capture = pytest.CaptureFixture[str]


async def test_keys_are_listed_a_page_at_a_time(capsys: Capture) -> None:
    async with rooms() as it:
        await asyncio.gather(*(it.rooms[f"room-{i}"].say("hello") for i in range(5)))
        await it.rooms["\x1b[31mred"].say("hello")
        await it.rooms[7].say("hello")
        found: list[str] = []
        more: tuple[str, ...] = ()
        while True:
            await to(it.manager, "entities", "list", "rooms", "--most", "3", *more)
            said = capsys.readouterr()
            lines = said.out.splitlines()
            assert lines[0] == "key\tform"
            found += lines[1:]
            if not said.err:
                break
            more = ("--after", said.err.split()[-1])
        rows = [f"room-{i}\tkey" for i in range(5)]
        assert sorted(found) == sorted([*rows, "7\tint", "\\x1b[31mred\tkey"])
        await to(it.manager, "entities", "list", "rooms", "--prefix", "room-4", "--json")
        keys = json.loads(capsys.readouterr().out)["keys"]
        assert keys == [{"form": "key", "key": "room-4"}]
        await to(it.manager, "entities", "list", "rooms", "--after", "x", code=2)
        assert "no place in a list" in capsys.readouterr().err


async def test_one_is_shown_in_words_and_as_json(capsys: Capture) -> None:
    async with rooms() as it:
        await it.rooms["attic"].say("hello")
        await it.rooms["attic"].wake_me()
        await to(it.manager, "entities", "show", "rooms", "attic")
        said = capsys.readouterr().out.splitlines()
        owner = it.rooms.station.owner
        assert said[:2] == [
            "attic: awake",
            f"owner: {owner.name} at {owner.address}, lease number 2",
        ]
        assert '  {"count":1,"about":"hello"}' in said
        assert "history: 1 item" in said
        assert any(line.startswith(f"  {SECRET} at 20") for line in said)
        await to(it.manager, "entities", "show", "rooms", "attic", "--json")
        assert json.loads(capsys.readouterr().out)["state"] == {"count": 1, "about": "hello"}
        await to(it.manager, "entities", "show", "rooms", "attic", "--collection", "members")
        assert capsys.readouterr().out.splitlines() == ["ann: 1"]
        await to(it.manager, "entities", "show", "rooms", "cellar")
        assert capsys.readouterr().out.startswith("cellar: nothing is kept of it\n")


async def test_items_are_shown_a_page_at_a_time(capsys: Capture) -> None:
    async with rooms() as it:
        for i in range(3):
            await it.rooms["attic"].say(f"line {i}")
        history = ("entities", "show", "rooms", "attic", "--collection", "history", "--most", "2")
        await to(it.manager, *history)
        said = capsys.readouterr()
        assert [line.split(": ")[1] for line in said.out.splitlines()] == ['"line 0"', '"line 1"']
        await to(it.manager, *history, "--after", said.err.split()[-1])
        assert capsys.readouterr().out.split(": ")[1] == '"line 2"\n'
