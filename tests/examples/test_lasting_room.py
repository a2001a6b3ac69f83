"""The example `lasting_room.py`: a topic outlasts its owner, and a former owner is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.lasting_room import ROOMS, Rooms
from tenure import LeaseLost, OwnedRows, Owner, open_store
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tests.integration.processes import manager
from tests.repo.reading import ROOT

PAST_HOLD = 5.0


@pytest.mark.asyncio
async def test_a_former_owner_is_refused_when_it_is_past_its_term() -> None:
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        open_store("memory:", ROOMS) as store,
    ):
        former: Owner = cluster.owner("http://one")
        async with former:
            await cluster.turn(PAST_HOLD)
            one = Rooms(former, OwnedRows(store, ROOMS))
            await one.talk_about("attic", "tea")
            async with former.guard("attic") as lease:
                row = await one.row(lease, "attic")
            cluster.crash(former)
        async with cluster.owner("http://two") as successor:
            await cluster.turn(PAST_HOLD)
            two = Rooms(successor, OwnedRows(store, ROOMS))
            assert await two.topic("attic") == "tea"
            with pytest.raises(LeaseLost):
                await row.insert({"state": {"topic": "coffee"}})
            await two.talk_about("attic", "milk")
            assert await two.topic("attic") == "milk"


def test_a_topic_outlasts_kill_9_of_its_owner(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "lasting_room.py")]
    with manager("--first-start", journal=tmp_path / "journal") as service:
        url = service.wait_for("listening")["url"]
        environment = {**os.environ, "TENURE_MANAGERS": str(url)}
        for before, after in (("None", "tea at four"), ("tea at four", "milk")):
            with subprocess.Popen(
                [*command, f"rocksdb:{tmp_path / 'rooms'}", "attic"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            ) as owner:
                assert owner.stdin
                assert owner.stdout
                assert owner.stdout.readline() == f"topic: {before}\n"
                print(after, file=owner.stdin, flush=True)
                assert owner.stdout.readline() == f"topic: {after}\n"
                owner.kill()
