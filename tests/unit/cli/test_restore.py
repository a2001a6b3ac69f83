"""`tenure restore`: what it says, and that a dry run or a refusal changes nothing."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tenure.cli.app import run
from tenure.cli.demo.ports import free_ports
from tenure.journals import open_journal
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import Changed, Joined, PoolCreated
from tenure.protocol.log.journal import Mandate
from tenure.protocol.topology.history import TopologySet
from tenure.testing.contracts.journal import lead
from tenure.testing.contracts.records import A_TOPOLOGY
from tenure.wire.lease_records import LEASE_RECORDS

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A file that a manager has led on."""
    path = tmp_path / "journal.sqlite"

    async def write() -> None:
        opened = open_journal(f"sqlite:{path}", LEASE_RECORDS)
        records = (
            PoolCreated(pool="rooms", kind="hashed"),
            Joined(pool="rooms", incarnation=1, name="a", nonce=7, address="http://10.0.0.7"),
            Changed(
                pool="rooms",
                entries=(
                    Entry(start=b"", end=b"g", owner=1, number=2, since=1),
                    Entry(start=b"p", end=None, owner=1, number=2, since=1),
                ),
            ),
        )
        await opened.append(await lead(opened), 0, records)
        await opened.close()

    asyncio.run(write())
    return path


def told(capsys: Capture) -> list[list[str]]:
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(
    capsys: Capture, journal: Path
) -> None:
    before = journal.read_bytes()
    assert run(["restore", "--journal", f"sqlite:{journal}", "--dry-run"]) == 0
    lines = told(capsys)
    with closing(sqlite3.connect(journal)) as connection:
        (identity,) = connection.execute("SELECT journal FROM seat").fetchone()
    assert lines[:6] == [
        ["what", "in the copy"],
        ["journal", f"sqlite:{journal}"],
        ["identity", f"{identity:016x}"],
        ["LSN", "3"],
        ["leadership", "1 of http://a"],
        ["pool rooms", "hashed, 1 owner, 2 leases"],
    ]
    assert lines[6:] == [
        ["what", "restored"],
        ["identity", "a new one, drawn then"],
        ["LSN", "3, in a snapshot"],
        ["leadership", "1000000001 of nobody"],
        ["pool rooms", "hashed, 0 owners, 0 leases, numbers from 1000000000004"],
        ["nothing was changed; without --dry-run it is watched for 17 s, then restored"],
    ]
    assert journal.read_bytes() == before
    assert list(journal.parent.iterdir()) == [journal]


def test_numbers_go_on_above_those_of_a_lost_journal(capsys: Capture, journal: Path) -> None:
    begun = ["restore", "--journal", f"sqlite:{journal}", "--dry-run", "--above"]
    assert run([*begun, "97"]) == 0
    assert any("numbers from 1000000000098" in cell for line in told(capsys) for cell in line)
    for wrong in ("-1", "9000000000000000", "x"):
        assert run([*begun, wrong]) == 2
        assert "--above" in capsys.readouterr().err


def test_a_cluster_of_a_lost_journal_is_named_and_replaces_none_that_has_a_ring(
    capsys: Capture, journal: Path
) -> None:
    begun = ["restore", "--journal", f"sqlite:{journal}", "--dry-run", "--cluster"]
    assert run([*begun, "home=7f35bfffa6672bbf@12"]) == 0
    assert ["cluster home", "its topology is read back from its nodes"] in told(capsys)
    for wrong in ("home", "home=7f@1", "=7f35bfffa6672bbf@1", "home=7f35bfffa6672bbf@x"):
        assert run([*begun, wrong]) == 2
        assert "is not NAME=ID@VERSION" in capsys.readouterr().err

    async def have_a_ring() -> None:
        opened = open_journal(f"sqlite:{journal}", LEASE_RECORDS)
        mandate = Mandate((await opened.load()).journal, 1)
        await opened.append(mandate, 3, (TopologySet(A_TOPOLOGY),))
        await opened.close()

    asyncio.run(have_a_ring())
    assert A_TOPOLOGY.ranges
    name = A_TOPOLOGY.cluster
    assert run([*begun, f"{name}={A_TOPOLOGY.id:016x}@12"]) == 0
    assert run([*begun, f"{name}={A_TOPOLOGY.id + 1:016x}@12"]) == 2
    assert "with a ring of its own" in capsys.readouterr().err


def test_a_manager_that_beats_is_named_and_nothing_is_changed(
    capsys: Capture, journal: Path
) -> None:
    async def beaten() -> int:
        opened = open_journal(f"sqlite:{journal}", LEASE_RECORDS)
        mandate = Mandate((await opened.load()).journal, 1)
        arguments = ["restore", "--journal", f"sqlite:{journal}"]
        ended = asyncio.create_task(asyncio.to_thread(run, arguments))
        beat = 0
        while not ended.done():
            beat += 1
            assert await opened.beat(mandate, beat)
            await asyncio.sleep(0.01)
        await opened.close()
        return await ended

    assert asyncio.run(beaten()) == 1
    captured = capsys.readouterr()
    assert "watching for 17 s whether a manager has it" in captured.out
    assert "the manager http://a beats (leadership 1, beat " in captured.err


def another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a journal of tenure"),
        (b"Dear diary, " * 1_000, "file is not a database"),
        (None, "is not a journal of tenure"),
    ],
    ids=["empty", "no database", "another program's"],
)
def test_what_is_no_journal_is_left_as_it_was(
    capsys: Capture, tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "notes"
    if content is None:
        another_program(path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    assert run(["restore", "--journal", f"sqlite:{path}"]) == 1
    said = capsys.readouterr().err
    assert why in said
    assert str(path) in said
    assert path.read_bytes() == before


def test_an_etcd_that_does_not_answer_is_named(capsys: Capture) -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    assert run(["restore", "--journal", f"etcd:{url}"]) == 1
    said = capsys.readouterr().err
    assert "no member of etcd answered" in said
    assert url in said


@pytest.mark.parametrize("url", ["memory", "sqlite:/nowhere/journal.sqlite", "redis:localhost"])
def test_what_was_asked_wrongly_is_code_2(capsys: Capture, url: str) -> None:
    assert run(["restore", "--journal", url]) == 2
    assert url.removeprefix("sqlite:") in capsys.readouterr().err


def test_a_journal_of_a_cluster_alone_can_be_restored(tmp_path: Path, capsys: Capture) -> None:
    url = f"sqlite:{tmp_path}/journal.sqlite"

    async def write() -> None:
        opened = open_journal(url, LEASE_RECORDS)
        await opened.append(await lead(opened), 0, (TopologySet(A_TOPOLOGY),))
        await opened.close()

    asyncio.run(write())
    assert run(["restore", "--journal", url, "--dry-run"]) == 0
    lines = told(capsys)
    assert ["cluster chat", "version 17, 3 nodes, 1 table"] in lines
    assert ["cluster chat", "its topology is read back from its nodes"] in lines
