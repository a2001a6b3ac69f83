"""`tenure status` of three managers on a real etcd of three members."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.failover.stage import Stage, on_etcd
from tests.integration.processes import run
from tests.patience import until

pytestmark = pytest.mark.asyncio


async def status(*managers: str) -> dict[str, Any]:
    """Return what it says as JSON."""
    named = [part for url in managers for part in ("--manager", url)]
    done = await asyncio.to_thread(run, "status", "--json", *named)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def by_url(said: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["url"]: each for each in said["managers"]}


async def all_caught_up(stage: Stage) -> dict[str, Any]:
    """The status when every standby has read all that was written."""
    said: dict[str, Any] = {}

    async def is_so() -> bool:
        said.update(await status(*stage.urls))
        return all(each["status"] and each["lag"] == 0 for each in said["managers"])

    await until(is_so, f"no standby lags: {said}")
    return said


async def test_the_leader_its_standbys_and_the_members_of_etcd_are_shown(tmp_path: Path) -> None:
    # The preset is the paper's: its leader leads on through a stall of a busy machine.
    async with on_etcd(tmp_path, managers=3, preset="paper") as stage:
        assert stage.etcd
        leader, (one, two) = await stage.leader(), stage.standbys
        create = ("pool", "create", "rooms", "--kind", "hashed", "--manager", one.url)
        assert (await asyncio.to_thread(run, *create)).returncode == 0
        said = await all_caught_up(stage)
        assert said["leader"] == leader.url
        statuses = {url: each["status"] for url, each in by_url(said).items()}
        assert {url: each["role"] for url, each in statuses.items()} == {
            leader.url: "leading",
            one.url: "standing by",
            two.url: "standing by",
        }
        assert {each["leadership"] for each in statuses.values()} == {1}
        assert {each["lsn"] for each in statuses.values()} == {3}  # took over, waited, the pool
        assert all(each["beat"] > 0 for each in statuses.values())
        for each in statuses.values():
            health = each["journal_health"]
            assert [member["endpoint"] for member in health["members"]] == stage.etcd.urls
            assert sum(member["is_leader"] for member in health["members"]) == 1
            assert {member["error"] for member in health["members"]} == {""}
            assert (health["alarms"], health["error"], health["file_bytes"]) == ([], "", None)


async def test_what_does_not_answer_is_shown_and_why(tmp_path: Path) -> None:
    """A standby that is stopped, a member of etcd that died; a standby names the leader."""
    async with on_etcd(tmp_path, managers=3, preset="paper") as stage:
        assert stage.etcd
        leader, (one, two) = await stage.leader(), stage.standbys
        await two.until_role("standing by")
        await all_caught_up(stage)
        one.send(signal.SIGSTOP)
        follower = (await stage.etcd.leader() + 1) % 3  # so that no election is held meanwhile
        dead = stage.etcd.members[follower]
        dead.kill()
        said = by_url(await status(one.url, two.url))
        assert said.keys() == {one.url, two.url, leader.url}
        assert (said[one.url]["status"], "no answer" in said[one.url]["error"]) == (None, True)
        assert said[leader.url]["status"]["proven"]
        members = said[leader.url]["status"]["journal_health"]["members"]
        assert dead.url in members[follower]["error"]
        assert sum(member["error"] == "" for member in members) == 2
