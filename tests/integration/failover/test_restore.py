"""An old copy is put back, noticed and refused; then it is restored, and everything goes on.

The commands are those of docs/operating/backup.md, except for the places that they name.
"""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tenure.base.ranges import WHOLE
from tests.integration.etcd.servers import Cluster, etcdctl_binary
from tests.integration.failover.stage import Manager, Stage, on_etcd, on_sqlite
from tests.integration.failover.traffic import Traffic
from tests.integration.processes import command, run
from tests.patience import until
from tests.repo.reading import ROOT

pytestmark = pytest.mark.asyncio

GUIDE = ROOT / "docs" / "operating" / "backup.md"
ETCDCTL = etcdctl_binary()
LONGEST_HOLD_SECONDS = 65
"""How long a restored journal waits before it grants, whatever the preset."""
WATCHING_SECONDS = 17


def scripts(heading: str, under: str) -> Iterator[str]:
    """The shell programs in a section of the guide."""
    text = GUIDE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    text = text.split(f"\n### {under}\n")[1].split("\n### ")[0]
    program = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return (found[1] for found in program.finditer(text))


def translated(script: str, places: Mapping[str, str]) -> str:
    for theirs, ours in places.items():
        assert "10.0.0.1" in theirs or theirs in GUIDE.read_text("utf-8"), theirs
        script = script.replace(theirs, ours)
    return script


async def sh(script: str, directory: Path) -> str:
    """Run the program; what it said."""
    bin_directory = directory / "bin"
    bin_directory.mkdir(exist_ok=True)
    if not (bin_directory / "tenure").exists():
        (bin_directory / "tenure").write_text(f'#!/bin/sh\nexec {" ".join(command())} "$@"\n')
        (bin_directory / "tenure").chmod(0o755)
    path = f"{bin_directory}:{ETCDCTL.parent}:{os.environ['PATH']}"
    done = await asyncio.to_thread(
        subprocess.run,
        ["sh", "-e", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


async def refused(manager: Manager) -> None:
    """It ends by itself, and says why."""
    assert await manager.ended() == 1
    said = ("the journal has gone back", "put back", "deleted or replaced", "earlier state")
    assert any(each in manager.log for each in said), manager.log
    assert "Traceback" not in manager.log


def again(stage: Stage, manager: Manager) -> Manager:
    """Start a new manager where clients know it."""
    return stage.start(manager.journal, "--port", str(urlsplit(manager.url).port))


async def is_refused_cold(stage: Stage, manager: Manager) -> None:
    """A manager that is started on the copy cannot know. Owners and lookups do, and tell it."""
    await refused(again(stage, manager))


async def goes_on(stage: Stage, traffic: Traffic, managers: list[Manager]) -> None:
    """Check that managers which are started on the restored journal go on: owners join again,
    everything is lost once, and lookups are told so.
    """
    traffic.lost.clear()  # it has been out of contact for long
    numbers = dict(traffic._numbers)
    for each in managers:
        again(stage, each)
    await stage.listening()
    await until(traffic.is_settled, "all keys are granted anew", LONGEST_HOLD_SECONDS + 30)
    await traffic.have_served()
    traffic.check_safe()
    assert WHOLE in traffic.lost
    assert all(traffic._numbers[key] > 10**12 > number for key, number in numbers.items())
    assert {owner._engine.machine.view().journal for owner in traffic.owners.values()} == {
        traffic.lookup._engine.machine.view().journal
    }
    traffic.settle()
    await traffic.newcomer()


def check_progress(said: str) -> None:
    """It told how long it watches, and then ever less."""
    assert f"watching for {WATCHING_SECONDS} s" in said
    left = [int(each) for each in re.findall(r"(\d+) s left", said)]
    assert len(left) > 2  # one every five seconds, where there is no terminal
    assert all(a > b for a, b in pairwise(left))
    assert "restored: it is journal " in said


async def is_refused_under(managers: list[Manager]) -> None:
    """While a manager beats, nothing is restored, and it is named."""
    tried = await asyncio.to_thread(run, "restore", "--journal", managers[0].journal)
    assert tried.returncode == 1
    assert any(f"the manager {each.url} beats" in tried.stderr for each in managers), tried.stderr


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 command is not installed")
@pytest.mark.parametrize("way", [0, 1], ids=["VACUUM INTO", ".backup"])
async def test_an_sqlite_journal_put_back_is_refused_then_restored(
    tmp_path: Path, way: int
) -> None:
    places = {"/var/lib/tenure": str(tmp_path), "/var/backups": str(tmp_path / "backups")}
    (tmp_path / "backups").mkdir()
    take = translated(list(scripts("SQLite", "Taking a copy"))[way], places)
    (put_back,) = (translated(each, places) for each in scripts("SQLite", "Putting it back"))
    moving, restoring = put_back.split("tenure restore", 1)
    async with on_sqlite(tmp_path, preset="test") as stage, stage.traffic() as traffic:
        await sh(take, tmp_path)
        await is_refused_under(stage.managers)
        await traffic.newcomer()
        managers = list(stage.managers)
        await sh(moving, tmp_path)
        for each in managers:
            await refused(each)
        await is_refused_cold(stage, managers[0])
        check_progress(await sh(f"tenure restore{restoring}", tmp_path))
        await goes_on(stage, traffic, managers)


def etcd_places(etcd: Cluster, tmp_path: Path) -> dict[str, str]:
    (member,) = etcd.members
    return {
        ",m1=http://10.0.0.2:2380,m2=http://10.0.0.3:2380": "",
        "http://10.0.0.1:2379": member.url,
        "http://10.0.0.1:2380": member.peer_url,
        "/var/backups": str(tmp_path),
        "/var/lib/etcd/restored": str(tmp_path / "restored"),
    }


@pytest.mark.skipif(not ETCDCTL.exists(), reason="there is no etcdctl beside etcd")
async def test_an_etcd_put_back_is_refused_then_restored(tmp_path: Path) -> None:
    async with (
        on_etcd(tmp_path, size=1, preset="test") as stage,
        stage.traffic() as traffic,
    ):
        assert stage.etcd
        (member,) = stage.etcd.members
        places = etcd_places(stage.etcd, tmp_path)
        (take,) = (translated(each, places) for each in scripts("etcd", "Taking a copy"))
        make, restoring = (translated(each, places) for each in scripts("etcd", "Putting it back"))
        await sh(take, tmp_path)
        await is_refused_under(stage.managers)
        await traffic.newcomer()
        managers = list(stage.managers)
        member.kill()
        await sh(make, tmp_path)
        shutil.rmtree(member.directory / member.name)
        (tmp_path / "restored").rename(member.directory / member.name)
        member.start()
        await until(stage.etcd.ready, "etcd answers")
        create = ("pool", "create", "docs", "--kind", "hashed")
        urls = [part for each in managers for part in ("--manager", each.url)]
        await asyncio.to_thread(run, *create, *urls)  # a leader that has to write something
        for each in managers:
            await refused(each)
        await is_refused_cold(stage, managers[0])
        check_progress(await sh(restoring, tmp_path))
        await goes_on(stage, traffic, managers)
