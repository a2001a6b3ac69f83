"""What `tenure doctor` finds: in the answers of managers, and at a real one with real owners."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenure import Owner
from tenure.cli.app import run
from tenure.cli.checks import Examined, Finding, Port, examine
from tenure.cli.demo.ports import free_ports
from tenure.cli.status import AskedManager
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.manager.answers import JournalAnswer, RivalAnswer, StatusAnswer
from tenure.protocol.log.journal_health import MemberHealth
from tests.certificates import Authority
from tests.unit.cli.test_status import answer
from tests.unit.manager.serving import serving

A, B = "0c9e6679a1b24d3f", "1c9e6679a1b24d3f"


def leader(url: str, journal: str, *rivals: RivalAnswer) -> StatusAnswer:
    return replace(answer(url, proven=True, lsn=1), journal_id=journal, rivals=rivals)


def wrong(*answers: StatusAnswer) -> Iterator[Finding]:
    asked = [AskedManager(each.url, each) for each in answers]
    return not_ok(Examined(managers=asked))


def not_ok(seen: Examined) -> Iterator[Finding]:
    return (each for each in examine(seen) if each.result != "ok")


def test_where_all_is_well_nothing_is_wrong() -> None:
    assert list(wrong(leader("a", A))) == []


def test_two_living_leaders_of_two_journals_are_named_with_the_way_out() -> None:
    [finding] = wrong(leader("a", A), leader("b", B))
    assert finding.check == "one journal"
    assert f"a leads {A}" in finding.what
    assert f"b leads {B}" in finding.what
    assert "tenure resolve --keep" in finding.way_out


def test_a_leader_that_has_stopped_says_beside_whom_and_where() -> None:
    told = RivalAnswer(B, "http://other", pool="rooms")
    [finding] = wrong(leader("a", A, told))
    assert "a has stopped granting in the pool 'rooms': http://other leads" in finding.what
    [finding] = wrong(leader("a", A, RivalAnswer(B, "http://other")))
    assert "in all pools" in finding.what


def test_a_leader_whose_journal_is_over_is_nobodys_rival() -> None:
    over = replace(leader("b", B), is_over=True)
    assert list(wrong(leader("a", A), over)) == []


def test_nodes_that_were_not_believed_are_named() -> None:
    doubted = replace(leader("a", A), store_troubles={"mail": ("somebody speaks for n1",)})
    [finding] = wrong(doubted)
    assert (finding.check, finding.what) == (
        "nodes of the store",
        "mail: somebody speaks for n1",
    )


NOW = datetime(2026, 5, 1, tzinfo=UTC)
WELL = leader("a", A)
ILL_MEMBER = MemberHealth(endpoint="http://etcd-2", error="no answer")


@pytest.mark.parametrize(
    ("seen", "check", "result", "what"),
    [
        ({"managers": [AskedManager("a", error="refused")]}, "managers answer", "wrong", "a: re"),
        (
            {"managers": [AskedManager("a", WELL, ahead_seconds=7.0)]},
            "clocks agree",
            "wrong",
            "7.0 s ahead of",
        ),
        (
            {"managers": [AskedManager("a", WELL, ahead_seconds=-7.0)]},
            "clocks agree",
            "wrong",
            "7.0 s behind",
        ),
        (
            {"certificates": [("a", NOW + timedelta(days=13))]},
            "certificates last",
            "soon",
            "expires on 2026-05-14",
        ),
        (
            {"ports": [Port("rooms", "ann", "ann:80", "nothing listens there")]},
            "ports are open",
            "wrong",
            "ann of 'rooms'",
        ),
        ({"pools": [("rooms", [])]}, "owners are well", "soon", "'rooms' has no owner"),
    ],
)
def test_what_is_wrong_around_the_managers_is_named(
    seen: dict[str, object], check: str, result: str, what: str
) -> None:
    said: dict[str, object] = {"managers": [AskedManager("a", WELL)], "now": NOW, **seen}
    found = not_ok(Examined(**said))  # type: ignore[arg-type]
    [finding] = [each for each in found if each.check != "one leads"]
    assert (finding.check, finding.result) == (check, result)
    assert what in finding.what
    assert finding.way_out


@pytest.mark.parametrize(
    ("change", "check", "result", "what"),
    [
        ({"version": "0.2.0"}, "one version", "soon", "b is 0.2.0"),
        ({"oldest_token": "2025-04-30T00:00:00+00:00"}, "tokens are young", "soon", "2025-04-30"),
        ({"troubles": {"rooms": "it raised"}}, "pools are planned", "wrong", "rooms: it raised"),
        ({"journal_health": JournalAnswer(error="full")}, "journal is well", "wrong", "full"),
        ({"journal_health": JournalAnswer(alarms=("NOSPACE",))}, "journal is well", "wrong", "NOS"),
        (
            {"journal_health": JournalAnswer(members=(ILL_MEMBER,))},
            "journal is well",
            "wrong",
            "etcd-2",
        ),
        (
            {"journal_health": JournalAnswer(free_bytes=1 << 20)},
            "room on the disk",
            "soon",
            "1,048",
        ),
    ],
)
def test_what_a_manager_says_of_itself_is_judged(
    change: dict[str, object], check: str, result: str, what: str
) -> None:
    changed = replace(leader("b", A), **change)
    asked = [AskedManager("a", replace(WELL, proven=False)), AskedManager("b", changed)]
    [finding] = not_ok(Examined(managers=asked, now=NOW))
    assert (finding.check, finding.result) == (check, result)
    assert what in finding.what
    assert finding.way_out


async def doctor(capsys: pytest.CaptureFixture[str], url: str, *, code: int) -> dict[str, Finding]:
    assert await asyncio.to_thread(run, ["doctor", "-m", url, "--json"]) == code
    return {each["check"]: Finding(**each) for each in json.loads(capsys.readouterr().out)}


@pytest.mark.asyncio
async def test_a_real_set_up_is_looked_at_from_outside(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    shown = authority.sign("manager")
    tokens = TokenFile(tmp_path / "tokens")
    viewer, owner = new_token(AccessRole.VIEWER), new_token(AccessRole.OWNER, "rooms")
    for each in (viewer, owner):
        tokens.add(each.entry)
    monkeypatch.setenv("TENURE_CA", str(authority.file))
    monkeypatch.setenv("TENURE_TOKEN", viewer.text)
    manager = serving(tls_cert=shown.cert, tls_key=shown.key, tokens=tokens.path, create_pools=True)
    async with manager as it:
        [closed] = free_ports(1)
        found = await doctor(capsys, it.service.url, code=0)
        assert {each.result for each in found.values()} == {"ok"}
        assert {"clocks agree", "certificates last", "one version", "one journal"} <= found.keys()
        monkeypatch.setenv("TENURE_TOKEN", owner.text)
        there = f"127.0.0.1:{closed}"
        async with Owner(it.service.url, pool="rooms", address=there, name="ann") as ann:
            await ann.ready()
            monkeypatch.setenv("TENURE_TOKEN", viewer.text)
            found = await doctor(capsys, it.service.url, code=1)
    assert found["ports are open"].result == "wrong"
    assert f"ann of 'rooms' at {there}: connection refused" in found["ports are open"].what
