"""The commands that steer a pool and explain it, against a manager in this process."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tenure.cli import waiting
from tenure.cli.app import run
from tenure.cli.steering import in_words
from tenure.manager.operator_verbs import POOL_VERBS, RING_VERBS
from tenure.protocol.balance.policy import Plan, Situation
from tenure.protocol.lease.answers import Flow
from tests.integration.owner import WireOwner
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.reading import ROOT
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("verb", POOL_VERBS)
async def test_every_verb_is_a_command_a_path_and_an_order(verb: str, capsys: Capture) -> None:
    words = ["pool", verb] if verb == "policy" else [verb]
    assert run([*words, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert POOL_VERBS[verb].help in said
    async with serving() as manager:
        _, index = await manager.get("/")
        assert f"/v1/pools/{{pool}}/{verb}" in index["paths"]
        status, problem = await manager.post(f"/v1/pools/rooms/{verb}", {"nonsense": 1})
        assert (status, "unknown field `nonsense`" in problem["error"]) == (400, True)


@pytest.mark.parametrize("verb", [*POOL_VERBS, *RING_VERBS])
async def test_every_verb_is_in_the_reference(verb: str) -> None:
    text = (ROOT / "docs" / "reference" / "http-api.md").read_text("utf-8")
    assert f"`{verb}`" in text


@asynccontextmanager
async def with_ann() -> AsyncIterator[tuple[Serving, WireOwner]]:
    """Yield a manager, and ann, who has all of the hashed pool `rooms`."""
    async with serving() as manager:
        owner = WireOwner("ann")
        async with owner.connected(manager.service.url):
            await owner.own_everything()
            yield manager, owner


async def to(manager: Serving, *arguments: str, code: int = 0) -> None:
    arguments = (*arguments, "--manager", manager.service.url)
    assert await asyncio.to_thread(run, arguments) == code


async def test_why_and_status_say_that_a_policy_fails(capsys: Capture) -> None:
    def fails(situation: Situation) -> Plan:
        del situation
        raise ZeroDivisionError("division by zero")

    async with with_ann() as (manager, _):
        leader = manager.service.engine._machine.leader
        assert leader is not None
        leader.pools["rooms"].planner.policy = fails
        await to(manager, "freeze", "rooms")
        trouble = "ZeroDivisionError: division by zero"
        _, status = await manager.get("/v1/status")
        assert status["troubles"] == {"rooms": trouble}
        capsys.readouterr()
        await to(manager, "why", "rooms", "a")
    assert f"the pool is not balanced: {trouble}" in " ".join(capsys.readouterr().out.split())


async def test_commands_say_what_they_did(capsys: Capture) -> None:
    async with with_ann() as (manager, _):
        await to(manager, "cordon", "rooms", "ann")
        await to(manager, "cordon", "rooms", "ann")
        await to(manager, "uncordon", "rooms", "ann")
        await to(manager, "pin", "rooms", "room-42", "ann")
        await to(manager, "unpin", "rooms", "room-42")
        await to(manager, "freeze", "rooms")
        await to(manager, "unfreeze", "rooms")
        await to(manager, "pool", "policy", "rooms", "ring")
        still = "  no range moves because of this"
        assert capsys.readouterr().out.splitlines() == [
            "ann is cordoned: it gets no new ranges",
            still,
            "no change: ann is already cordoned",
            "ann can be given ranges again",
            still,
            "room-42 is pinned to ann",
            still,
            "room-42 is no longer pinned",
            still,
            "rooms is frozen: only ranges without an owner are granted",
            still,
            "rooms is balanced again",
            still,
            "rooms is planned by ring",
            still,
        ]


async def test_a_dry_run_says_what_would_move(capsys: Capture) -> None:
    async with with_ann() as (manager, _):
        await to(manager, "drain", "rooms", "ann", "--dry-run")
        drained = "ann is drained: all of its ranges move to other owners"
        assert capsys.readouterr().out.splitlines() == [
            f"dry run, nothing was changed. Without --dry-run: {drained}",
            "  no range moves because of this",
            "  no other owner can take its ranges, so ann keeps them",
        ]
        await to(manager, "plan", "rooms")
        assert "drained" not in capsys.readouterr().out


async def test_a_drain_waits_until_nothing_is_left(capsys: Capture) -> None:
    async with with_ann() as (manager, owner):
        await to(manager, "drain", "rooms", "ann", "--no-wait")
        capsys.readouterr()
        waiting = asyncio.create_task(to(manager, "drain", "rooms", "ann"))
        owner.leases = ()
        await owner.renew()  # it lists nothing: it has nothing left
        await waiting
        assert capsys.readouterr().out.splitlines()[-1].startswith("ann has nothing left, after ")


@pytest.mark.parametrize(
    ("has_other", "is_cordoned"), [(False, False), (True, False), (True, True)]
)
async def test_a_drain_says_where_no_other_owner_can_take_the_ranges(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, has_other: bool, is_cordoned: bool
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    async with with_ann() as (manager, ann), AsyncExitStack() as others:
        if has_other:
            bob = await others.enter_async_context(WireOwner("bob").connected(manager.service.url))
            await bob.join()
        if is_cordoned:
            await to(manager, "cordon", "rooms", "bob")
        draining = asyncio.create_task(to(manager, "drain", "rooms", "ann"))
        said = ""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while "ann still has" not in said:
                said += await until(lambda: capsys.readouterr().err)
        ann.leases = ()
        await ann.renew()
        await draining
    can_take = has_other and not is_cordoned
    words = "; no other owner can take them: start another owner"
    assert (words in said) is not can_take


async def test_an_eviction_says_after_how_long_ranges_are_free(capsys: Capture) -> None:
    async with with_ann() as (manager, _):
        await to(manager, "evict", "rooms", "ann")
        first, *_, last = capsys.readouterr().out.splitlines()
        assert first == "ann, incarnation 1, is evicted"
        assert last.startswith("its ranges are free in 1")
        await to(manager, "owners", "rooms")
        assert capsys.readouterr().out.splitlines()[1].endswith("evicted")


async def test_a_death_is_confirmed_by_whoever_sits_there(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_ann() as (manager, _):
        evict = ("evict", "rooms", "ann", "--confirmed-dead")
        monkeypatch.setattr("sys.stdin", io.StringIO())
        await to(manager, *evict, code=2)
        assert "there is no terminal to confirm on" in capsys.readouterr().err
        monkeypatch.setattr("sys.stdin", Terminal("n\n"))
        await to(manager, *evict, code=2)
        said = capsys.readouterr()
        assert "ann at http://ann, incarnation 1, of rooms: still connected, 1 range" in said.out
        assert "nothing was done: not confirmed" in said.err
        await to(manager, *evict, "--incarnation", "7", code=2)
        assert "ann is incarnation 1 now, and not 7" in capsys.readouterr().err
        monkeypatch.setattr("sys.stdin", Terminal("y\n"))
        await to(manager, *evict)
        said = capsys.readouterr()
        assert "is evicted" in said.out
        assert "warning: ann was heard within its hold (" in " ".join(said.err.split())
        assert "and is still connected: if its process is alive, keys have two owners" in " ".join(
            said.err.split()
        )
        await to(manager, *evict, "--yes", code=2)
        assert "there is no owner 'ann' in the pool 'rooms'" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_why_and_plan_are_told_in_words_and_as_json(capsys: Capture) -> None:
    async with with_ann() as (manager, _):
        await to(manager, "why", "rooms", "room-42")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("ann at http://ann: key 0x")
        assert lines[1].startswith("lease number 2, unbroken since 1; it moved there ")
        assert lines[-2] == "ago\twhat\tfrom\tto\tnumber\tsince\twhy"
        assert lines[-1].split("\t")[1:6] == ["granted", "-", "ann", "2", "1"]
        assert lines[-1].split("\t")[6].startswith("nobody had it; ")  # no word of the code
        await to(manager, "freeze", "rooms")
        capsys.readouterr()
        await to(manager, "plan", "rooms")
        assert capsys.readouterr().out.splitlines()[1:] == [
            "frozen: only ranges without an owner are granted",
            "no range is to move",
            "held back: balance: the pool is frozen",
        ]
        await to(manager, "plan", "rooms", "--json")
        assert json.loads(capsys.readouterr().out)["steering"]["frozen"] is True


async def test_of_a_key_that_did_not_move_that_is_said(capsys: Capture) -> None:
    async with serving() as manager:
        await to(manager, "pool", "create", "rooms", "--kind", "hashed")
        capsys.readouterr()
        await to(manager, "why", "rooms", "room-42")
        *_, remembered, last = capsys.readouterr().out.splitlines()
        assert remembered.startswith("the leader remembers moves of the last ")
        assert last == "it has not moved in that time"


@pytest.mark.parametrize("what", ["drain", "cordon", "uncordon", "evict"])
async def test_an_owner_that_is_not_there_is_refused_with_those_that_are(
    what: str, capsys: Capture
) -> None:
    async with with_ann() as (manager, _):
        await to(manager, what, "rooms", "bob", code=2)
        said = " ".join(capsys.readouterr().err.split())
        assert "there is no owner 'bob' in the pool 'rooms'; there are: ann. To fix it: " in said


async def test_ranges_that_nobody_has_or_can_have_are_told_without_a_name() -> None:
    words = in_words(Flow(None, None, ranges=512, share=1.0, with_state=False))
    assert words == "512 ranges (100.0%) without an owner, which no owner can be given"
