"""`tenure entities export` and `import`, against a manager and entities in this process."""

import asyncio
import hashlib
import json
import os
import stat
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.export_file import ExportFile
from tenure.errors import UsageError
from tests.unit.cli.test_commands import to
from tests.unit.entities.test_inspecting import rooms

pytestmark = pytest.mark.asyncio
Capture = pytest.CaptureFixture[str]
KEYS = [f"room-{i}" for i in range(12)]


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in file.read_text().splitlines()]


def kept_in(file: Path) -> list[dict[str, Any]]:
    """What a file says of entities; the answers that they remember are other ones each time."""
    return [each for each in lines_of(file) if each["line"] not in ("export", "answer", "end")]


def ended(lines: list[dict[str, Any]]) -> bytes:
    """A file of these lines, with a last one."""
    data = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    end = {
        "line": "end",
        "entities": sum(each["line"] == "entity" for each in lines),
        "lines": len(lines),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return data + json.dumps(end).encode() + b"\n"


async def test_a_pool_goes_out_and_in_and_is_the_same(tmp_path: Path, capsys: Capture) -> None:
    out, again = tmp_path / "rooms.jsonl", tmp_path / "again.jsonl"
    async with rooms() as it:
        await asyncio.gather(*(it.rooms[key].say(f"hello {key}") for key in KEYS))
        await it.rooms[7].say("a number")
        await it.rooms["room-0"].wake_me()
        await to(it.manager, "entities", "export", "rooms", str(out))
        assert "13 entities" in capsys.readouterr().err
    assert lines_of(out)[0]["kind"] == "Room"
    async with rooms() as it:
        await to(it.manager, "entities", "import", "rooms", str(out))
        assert capsys.readouterr().out == "13 of 13 entities imported, 0 were there\n"
        assert await it.rooms["room-3"].say("more") == 2
        await to(it.manager, "entities", "export", "rooms", str(again))
        await to(it.manager, "entities", "import", "rooms", str(again))
        said = capsys.readouterr().out
        assert said == "0 of 13 entities imported, 13 were there\n"
        await to(it.manager, "entities", "import", "rooms", str(out), code=2)
        left = capsys.readouterr()
        assert left.out == "0 of 13 entities imported, 12 were there, 1 left out\n"
        assert "'room-3' (line " in left.err
        await to(it.manager, "entities", "import", "rooms", str(out), "--replace")
        assert capsys.readouterr().out == "1 of 13 entities imported, 12 were there\n"
        await to(it.manager, "entities", "export", "rooms", str(again))
        key = {"line": "entity", "key": 7}
        assert [each for each in lines_of(again) if each.items() >= key.items()]
        assert sorted(map(str, kept_in(again))) == sorted(map(str, kept_in(out)))


async def test_a_file_that_cannot_be_written_is_no_fault_of_a_manager(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other manager is asked, and nothing that is there is replaced."""
    file = tmp_path / "rooms.jsonl"
    file.write_text("of yesterday")
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr("tempfile.mkstemp", lambda *_: (full, str(tmp_path / "begun")))
    async with rooms() as it:
        await it.rooms["attic"].say("x" * 60_000)  # more than is gathered before it is written
        await to(it.manager, "entities", "export", "rooms", str(file), code=2)
        said = capsys.readouterr().err
        assert f"{file} cannot be written: No space left on device" in said
        monkeypatch.undo()
        for place in (Path("/dev/full"), tmp_path):  # and is not replaced by a file
            await to(it.manager, "entities", "export", "rooms", str(place), code=2)
            assert f"{place} is no file" in capsys.readouterr().err
    assert file.read_text() == "of yesterday"


async def test_only_its_user_reads_an_export_whatever_was_there(tmp_path: Path) -> None:
    """An earlier export was killed, and somebody has made its file readable."""
    file = tmp_path / "rooms.jsonl"
    for left in (file, tmp_path / "rooms.jsonl.part"):
        left.touch(mode=0o644)
    async with rooms() as it:
        await it.rooms["attic"].say("hello")
        await to(it.manager, "entities", "export", "rooms", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


# --- bad input ---


HEAD = {"line": "export", "layout": 1, "pool": "rooms", "kind": "Room"}


def entity(key: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"line": "entity", "key": key, "state": {"count": 3}, **more}


GOOD = ended([HEAD, entity("a"), entity("b")])
LONG = b'{"line":"entity","key":"a","state":"' + b"x" * (3 << 19) + b'"}\n'


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (b"", "is cut: its last line is missing"),
        (GOOD[:-20], "line 4 of FILE is damaged: it is cut"),
        (GOOD[: GOOD.index(b'{"line": "end"')], "is cut: its last line is missing"),
        (GOOD.replace(b'"count": 3', b'"count": 4'), "has changed since it was made"),
        (GOOD.replace(b'"count": 3', b'"count" 3'), "line 2 of FILE is damaged"),
        (GOOD + b'{"line":"again","key":"a"}\n', "line 5 of FILE is damaged: it comes after"),
        (ended([entity("a")]), "line 1 of FILE is damaged: the first line"),
        (ended([HEAD, HEAD]), "line 2 of FILE is damaged: the first line"),
        (ended([HEAD, entity("a", state={"$what": 1})]), "line 2 of FILE is damaged: '$what'"),
        (ended([HEAD, {"line": "what"}]), "line 2 of FILE is damaged: Invalid value 'what'"),
        (ended([HEAD, {"line": "alarm", "name": "x", "due": 1.0}]), "no line of an entity"),
        (ended([HEAD, entity("a"), {"line": "item", "at": 1}]), "no line of a collection"),
        (
            ended([HEAD, entity("a"), *({"line": "alarm", "name": x, "due": 1.0} for x in "ba")]),
            "line 4 of FILE is damaged: it is out of order",
        ),
        (ended([{**HEAD, "layout": 2}]), "has the layout 2 of a later version"),
        (ended([{**HEAD, "pool": "halls"}]), "an export of the pool 'halls', and not of 'rooms'"),
        (
            ended([HEAD, {"line": "cut", "why": "it went", "way_out": "wait"}]),
            "was cut when it was",
        ),
        (
            GOOD.replace(b'{"line": "entity", "key": "a"', LONG),
            "line 2 of FILE is damaged: it has over",
        ),
    ],
)
async def test_a_file_that_is_not_whole_changes_nothing(
    tmp_path: Path, capsys: Capture, file: bytes, says: str
) -> None:
    path = tmp_path / "rooms.jsonl"
    path.write_bytes(file)
    async with rooms() as it:
        await to(it.manager, "entities", "import", "rooms", str(path), code=2)
        assert says.replace("FILE", str(path)) in capsys.readouterr().err
        assert (await it.get("entities"))[1]["keys"] == []


async def test_a_file_that_changes_while_it_is_imported_is_not_said_to_have_done_nothing(
    tmp_path: Path,
) -> None:
    opened = BytesIO(GOOD)
    file = ExportFile(opened, tmp_path / "export")
    file.check()
    opened.truncate(len(GOOD) - 20)
    with pytest.raises(UsageError, match="was changed while it was imported") as refused:
        list(file.each())
    assert "Nothing was imported" not in str(refused.value)


async def test_a_file_of_another_pool_is_taken_where_it_is_named(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "rooms.jsonl"
    path.write_bytes(ended([{**HEAD, "pool": "halls"}, entity("a")]))
    async with rooms() as it:
        named = ("--from-pool", "halls")
        await to(it.manager, "entities", "import", "rooms", str(path), *named)
        assert await it.rooms["a"].value() == 3
        await to(it.manager, "entities", "import", "rooms", str(path), "--from-pool", "x", code=2)
        await to(it.manager, "entities", "import", "none", str(path), *named, code=2)
        await to(it.manager, "entities", "export", "none", str(path), code=2)
        await to(it.manager, "entities", "import", "rooms", str(tmp_path / "no"), code=2)
        assert "cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([entity("bad", state={"count": "many"})], "Expected `int`, got `str`"),
        ([entity("bad", version=2)], "was kept by version 2 of the class"),
        ([entity("bad", version=1 << 62)], "is being imported"),
        ([entity("bad", state=[1], version=2)], "has named fields"),
        ([entity("bad", state={"about": "x" * (1 << 20)})], "the limit is 1,048,576"),
        (
            [
                entity("bad"),
                {"line": "collection", "name": "history", "last": 1},
                {"line": "item", "at": 2, "value": "x"},
            ],
            "has no number from 1 to 1",
        ),
        (
            [
                entity("bad"),
                {"line": "collection", "name": "members"},
                {"line": "item", "at": "ann", "value": "x"},
            ],
            "cannot read",
        ),
        (
            [
                entity("bad"),
                {"line": "collection", "name": "members"},
                {"line": "item", "at": 7, "value": 1},
            ],
            "a name is a text",
        ),
        (
            [
                entity("bad"),
                {"line": "collection", "name": "unknown"},
                {"line": "item", "at": "00", "value": 1},
            ],
            "the class has no such collection",
        ),
    ],
)
async def test_an_entity_that_cannot_be_kept_is_left_out_alone(
    tmp_path: Path, capsys: Capture, lines: list[dict[str, Any]], says: str
) -> None:
    path = tmp_path / "rooms.jsonl"
    path.write_bytes(ended([HEAD, entity("a"), *lines, entity("b")]))
    async with rooms() as it:
        await to(it.manager, "entities", "import", "rooms", str(path), code=2)
        said = capsys.readouterr()
        assert said.out == "2 of 3 entities imported, 0 were there, 1 left out\n"
        assert says in said.err
        assert "'bad' (line 3)" in said.err
        assert [await it.rooms[key].value() for key in ("a", "bad", "b")] == [3, 0, 3]


async def test_another_class_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rooms.jsonl"
    path.write_bytes(ended([{**HEAD, "kind": "Hall"}, entity("a")]))
    async with rooms() as it:
        await to(it.manager, "entities", "import", "rooms", str(path), code=2)
        assert "of the class Hall, and rooms has the class Room" in capsys.readouterr().err
        assert await it.rooms["a"].value() == 0


async def test_what_was_said_before_the_line_again_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "rooms.jsonl"
    again = {"line": "again", "key": "a"}
    lines = [HEAD, entity("a", state={"count": 1}), again, entity("a"), again, entity("b")]
    data = ended(lines)
    data = data.replace(b'"entities": 3', b'"entities": 1')
    path.write_bytes(data)
    async with rooms() as it:
        await to(it.manager, "entities", "import", "rooms", str(path))
        assert [await it.rooms[key].value() for key in ("a", "b")] == [0, 3]
