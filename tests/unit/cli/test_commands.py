"""The commands that ask a manager, against one in this process."""

import asyncio
import json
import os

import pytest

from tenure.base.keys import hashed_key
from tenure.cli import reading
from tenure.cli.app import run
from tenure.cli.asking import urls
from tenure.cli.demo.ports import free_ports
from tenure.errors import ConfigurationError
from tenure.journals import MemoryJournal
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.manager.serving import Events, Serving, serving

Capture = pytest.CaptureFixture[str]


async def command(*arguments: str, code: int = 0) -> None:
    assert await asyncio.to_thread(run, arguments) == code


async def to(manager: Serving, *arguments: str, code: int = 0) -> None:
    await command(*arguments, "--manager", manager.service.url, code=code)


@pytest.fixture(autouse=True)
def no_managers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENURE_MANAGERS", raising=False)


@pytest.mark.asyncio
async def test_a_pool_is_created_and_listed(capsys: Capture) -> None:
    async with serving() as manager:
        create = ("pool", "create", "docs", "--kind", "ordered", "--split", "n", "--split", "g")
        await to(manager, *create)
        await to(manager, *create)
        said = capsys.readouterr().out.splitlines()
        assert said == [
            "pool docs (ordered, cut at 2 keys) created",
            "pool docs (ordered, cut at 2 keys) exists already, with these settings",
        ]
        await to(manager, "pool", "list")
        names, docs = (line.split("\t") for line in capsys.readouterr().out.splitlines())
        assert names == ["pool", "kind", "owners", "ranges", "free", "LSN"]
        assert docs[:5] == ["docs", "ordered", "0", "1", "1"]


@pytest.mark.asyncio
async def test_a_pool_is_deleted(capsys: Capture) -> None:
    async with serving() as manager:
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        await to(manager, "pool", "delete", "rooms", "--dry-run")
        await to(manager, "pool", "delete", "rooms")
        await to(manager, "pool", "delete", "rooms", code=2)
        said = capsys.readouterr()
        assert said.out.splitlines()[1:] == [
            "dry run, nothing was changed. Without --dry-run: pool rooms is deleted",
            "pool rooms is deleted",
        ]
        assert "there is no pool 'rooms'; there are: none yet" in said.err


@pytest.mark.asyncio
async def test_the_only_pool_need_not_be_named(capsys: Capture) -> None:
    async with serving() as manager:
        await to(manager, "owners", code=2)
        assert "of which pool? there is none yet" in " ".join(capsys.readouterr().err.split())
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        capsys.readouterr()
        await to(manager, "owners", "--json")
        assert json.loads(capsys.readouterr().out) == {"pool": "rooms", "owners": []}
        await to(manager, "pool", "create", "docs", "--kind", "hashed")
        await to(manager, "owners", code=2)
        said = " ".join(capsys.readouterr().err.split())
        assert "of which pool? there are docs, rooms: name one of them" in said


@pytest.mark.asyncio
async def test_a_conflict_and_a_pool_that_is_not_there_are_code_2(capsys: Capture) -> None:
    async with serving() as manager:
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        await to(manager, "pool", "create", "rooms", "--kind", "ordered", code=2)
        assert "'rooms' exists already" in capsys.readouterr().err
        await to(manager, "owners", "nope", code=2)
        assert "there is no pool 'nope'; there are: rooms" in capsys.readouterr().err
        for what in (["owners", ""], ["table", ""], ["locate", "", "a"]):
            await to(manager, *what, code=2)
            said = " ".join(capsys.readouterr().err.split())
            assert "'' cannot be a pool's name: it has 0 characters; choose a name of 1" in said
        await to(manager, "owners", "\udcff", code=2)
        assert "cannot be a pool's name" in " ".join(capsys.readouterr().err.split())


@pytest.mark.asyncio
async def test_the_table_is_shown_whole_or_since_an_lsn(capsys: Capture) -> None:
    async with serving() as manager:
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        capsys.readouterr()
        await to(manager, "table", "rooms")
        lines = capsys.readouterr().out.splitlines()
        assert lines == ["from\tto\towner\tnumber\tsince", "(first)\t(last)\t-\t1\t1"]
        await to(manager, "table", "rooms", "--since", "5")
        assert capsys.readouterr().out.splitlines() == lines[:1]


@pytest.mark.asyncio
async def test_owners_are_listed_again_and_again_until_interrupted(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    async with serving() as manager:
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        monkeypatch.setattr("tenure.cli.reading.time.sleep", pause)
        capsys.readouterr()
        await to(manager, "owners", "rooms", "--watch", code=130)
    assert pauses == [reading.WATCH_SECONDS] * 3
    assert [line[:5] for line in capsys.readouterr().out.splitlines()] == ["owner"] * 3


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["docs", "a b&c=ä"], "a b&c=ä"),
        (["docs", "-x"], "-x"),
        (["docs", "ff00", "--hex"], "0xff00"),
        (["docs", os.fsdecode(b"\xff\x01")], "0xff01"),
        (["rooms", "room-42"], "0x" + hashed_key("room-42").hex()),
        (["rooms", "513", "--int"], "0x0000000000000201"),
    ],
)
async def test_a_key_is_located_however_it_is_given(
    arguments: list[str], key: str, capsys: Capture
) -> None:
    async with serving() as manager:
        await to(manager, "pool", "create", "docs", "--kind", "ordered")
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        capsys.readouterr()
        await to(manager, "locate", *arguments)
        place = f"nobody: key {key}, in the range from (first) to (last), "
        assert capsys.readouterr().out == f"{place}free under number 1\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("arguments", [["pool", "list"], ["owners", "rooms"], ["table", "rooms"]])
async def test_json_is_what_the_manager_said(arguments: list[str], capsys: Capture) -> None:
    async with serving() as manager:
        await to(manager, "pool", "create", "rooms", "--kind", "hashed", "--json")
        created = json.loads(capsys.readouterr().out)
        assert created == {"name": "rooms", "kind": "hashed", "created": True}
        await to(manager, *arguments, "--json")
        path = {"pool": "/v1/pools"}
        said = json.loads(capsys.readouterr().out)
        expected = path.get(arguments[0], f"/v1/pools/rooms/{arguments[0]}")
        assert said == (await manager.get(expected))[1]


@pytest.mark.asyncio
async def test_a_standby_sends_on_to_the_leader(capsys: Capture) -> None:
    journal = MemoryJournal(LEASE_RECORDS)
    async with serving(journal) as leader, serving(journal) as standby:
        await Events(leader.service.observer).wait_for("leading")
        await to(standby, "pool", "create", "rooms", "--kind", "hashed")
        assert capsys.readouterr().out == "pool rooms (hashed) created\n"


@pytest.mark.asyncio
async def test_a_manager_that_is_gone_is_passed_over(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving() as manager:
        gone = f"http://127.0.0.1:{free_ports(1)[0]}"
        monkeypatch.setenv("TENURE_MANAGERS", f"{gone}, {manager.service.url}")
        await command("pool", "list")
        assert capsys.readouterr().out.startswith("pool\tkind")


def test_where_nobody_answers_all_that_were_tried_are_named(capsys: Capture) -> None:
    gone = [f"http://127.0.0.1:{port}" for port in free_ports(2)]
    assert run(["status", "-m", gone[0], "-m", gone[1]]) == 1
    said = capsys.readouterr().err
    for url in gone:
        assert f"{url}: connection refused, nothing listens there" in said
    assert "Start one with `tenure manager`" in said


@pytest.mark.asyncio
async def test_what_is_no_manager_is_told_apart(capsys: Capture) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await command("status", "-m", f"http://127.0.0.1:{port}", code=1)
        assert "it does not speak HTTP" in capsys.readouterr().err


def test_managers_are_those_given_else_the_variable_else_the_usual_one() -> None:
    variable = {"TENURE_MANAGERS": "http://a:1, http://b:2"}
    assert urls(["http://c"], variable) == ["http://c"]
    assert urls(None, variable) == ["http://a:1", "http://b:2"]
    assert urls(None, {}) == ["http://127.0.0.1:7400"]
    with pytest.raises(ConfigurationError, match=r"\$TENURE_MANAGERS is 'a:1'"):
        urls(None, {"TENURE_MANAGERS": "a:1"})
