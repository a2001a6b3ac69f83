"""`tenure status`: every manager and their journal, also those that do not answer."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenure.cli.app import run
from tenure.cli.demo.ports import free_ports
from tenure.cli.status import AskedManager, _journal_rows, _show_managers, _show_rest, with_lags
from tenure.journals import MemoryJournal, open_journal
from tenure.manager.answers import JournalAnswer, RivalAnswer, StatusAnswer
from tenure.protocol.lease.leader.view import ManagerRole
from tenure.protocol.log.journal_health import MemberHealth
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.manager.serving import Events, serving

Capture = pytest.CaptureFixture[str]


async def status(*arguments: str) -> None:
    assert await asyncio.to_thread(run, ["status", *arguments]) == 0


@pytest.mark.asyncio
async def test_it_shows_the_leader_the_standby_and_who_does_not_answer(capsys: Capture) -> None:
    journal, gone = MemoryJournal(LEASE_RECORDS), f"http://127.0.0.1:{free_ports(1)[0]}"
    async with serving(journal) as one, serving(journal) as two:
        await Events(one.service.observer).wait_for("leading")
        await status("-m", one.service.url, "-m", gone, "-m", two.service.url)
        lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert [line[:3] for line in lines[1:4]] == [
            [one.service.url, "leading", "1"],
            [gone, "does not answer", "-"],
            [two.service.url, "standing by", "1"],
        ]
        assert ["leader", one.service.url] in lines
        assert ["journal", "memory"] in lines


@pytest.mark.asyncio
async def test_the_leader_is_asked_though_only_a_standby_was_named(capsys: Capture) -> None:
    journal = MemoryJournal(LEASE_RECORDS)
    async with serving(journal) as leader, serving(journal) as standby:
        await Events(leader.service.observer).wait_for("leading")
        while not standby.service.engine.view.leader:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        await status("-m", standby.service.url, "--json")
        said = json.loads(capsys.readouterr().out)
        assert said["leader"] == leader.service.url
        assert [each["status"]["role"] for each in said["managers"]] == ["standing by", "leading"]


@pytest.mark.asyncio
async def test_the_size_of_the_journals_file_is_told(capsys: Capture, tmp_path: Path) -> None:
    journal = open_journal(f"sqlite:{tmp_path}/journal.sqlite", LEASE_RECORDS)
    async with serving(journal) as manager:
        await Events(manager.service.observer).wait_for("leading")
        await status("-m", manager.service.url, "--json")
        [asked] = json.loads(capsys.readouterr().out)["managers"]
        assert asked["status"]["journal_health"]["file_bytes"] > 4096
        assert asked["lag"] == 0


def answer(url: str, *, proven: bool, lsn: int, leadership: int = 1) -> StatusAnswer:
    role: ManagerRole = "leading" if proven else "standing by"
    return StatusAnswer(
        url, "1", role, proven, None, leadership, lsn, 0.0, "paper", "memory", 0, {}, 7
    )


def test_lags_are_counted_from_the_latest_leader() -> None:
    asked = [
        AskedManager("a", answer("a", proven=True, lsn=90, leadership=3)),
        AskedManager("b", answer("b", proven=False, lsn=100)),
        AskedManager("c", answer("c", proven=True, lsn=107, leadership=4)),
        AskedManager("d", error="connection refused"),
    ]
    overview = with_lags(asked)
    assert overview.leader == "c"
    assert [each.lag for each in overview.managers] == [17, 7, 0, None]


def test_where_nobody_leads_no_lag_is_known() -> None:
    overview = with_lags([AskedManager("b", answer("b", proven=False, lsn=5))])
    assert (overview.leader, overview.managers[0].lag) == (None, None)


def test_members_and_alarms_of_etcd_are_shown() -> None:
    members = (
        MemberHealth(endpoint="http://a", version="3.5.9", is_leader=True, db_bytes=4096),
        MemberHealth(endpoint="http://b", error="it does not answer"),
    )
    assert list(_journal_rows(JournalAnswer(members=members, alarms=("NOSPACE",)))) == [
        ("etcd http://a", "leader, etcd 3.5.9, 4,096 bytes"),
        ("etcd http://b", "it does not answer"),
        ("etcd alarm", "NOSPACE"),
    ]


def test_pools_that_are_not_planned_by_their_policies_are_shown(capsys: Capture) -> None:
    why = "the policy weighted has not returned after 36 s"
    leads = replace(answer("a", proven=True, lsn=1), troubles={"p": why})
    _show_rest(with_lags([AskedManager("a", leads)]))
    shown = capsys.readouterr().out
    assert "pool p is not balanced" in shown
    assert why in shown


@pytest.mark.parametrize(
    ("rival", "stops"),
    [
        (RivalAnswer("1f", "http://b", granted=True), "grants and renews nothing; decide"),
        (RivalAnswer("1f", "http://b", granted=False), "grants nothing; decide"),
        (
            RivalAnswer("1f", "http://b", "rooms", granted=False),
            "grants nothing in the pool rooms;",
        ),
    ],
)
def test_a_rival_is_shown_with_what_stops_and_the_way_out(
    capsys: Capture, rival: RivalAnswer, stops: str
) -> None:
    asked = AskedManager("a", replace(answer("a", proven=True, lsn=1), rivals=(rival,)))
    _show_rest(with_lags([asked]))
    shown = capsys.readouterr().out
    assert "TWO JOURNALS" in shown
    assert f"http://b leads another, 1f, so a {stops}" in shown
    assert "tenure resolve --keep URL" in shown
    _show_managers([asked])
    assert "nothing" in capsys.readouterr().out.splitlines()[1].split("\t")


def test_a_journal_that_is_over_is_said_to_be(capsys: Capture) -> None:
    asked = AskedManager("a", replace(answer("a", proven=True, lsn=1), is_over=True))
    _show_rest(with_lags([asked]))
    shown = capsys.readouterr().out
    assert "journal is over" in shown
    assert "start it on the one that goes on" in shown
    _show_managers([asked])
    assert "nothing" in capsys.readouterr().out.splitlines()[1].split("\t")
