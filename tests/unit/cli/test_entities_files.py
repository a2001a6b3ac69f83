"""`tenure entities export` and `import`, against a manager and entities in this process."""

import asyncio
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

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
