"""A cluster of processes: a node is killed under load, and comes back; no request fails."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure import Family, Table, open_store
from tenure.cli.asking import ask
from tenure.cli.demo.ports import free_ports
from tenure.cli.ordering import AUTO_BYTES
from tenure.protocol.topology.answers import RingRead
from tests import patience
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))
TENURE = [sys.executable, "-m", "tenure"]


@contextmanager
def home_cluster(data: Path, port: int) -> Iterator[dict[str, Any]]:
    """Yield what `tenure columns up` reports; the command is ended at the end."""
    command = [*TENURE, "columns", "up", "--nodes", "3", "--data", str(data), "--port", str(port)]
    options = ("--first-start", "--balance", "auto", "--json")
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        try:
            yield json.loads(up.stdout.readline())
        finally:
            up.send_signal(signal.SIGTERM)
            assert up.wait(DEADLINE_SECONDS) == 0


async def test_people_are_told_how_to_go_on_and_how_a_node_ended(
    tmp_path: Path,
) -> None:
    port, *_ = free_ports(2)
    command = [*TENURE, "columns", "up", "--nodes", "1", "--data", str(tmp_path), "--port"]
    with subprocess.Popen([*command, str(port)], stdout=subprocess.PIPE, text=True) as up:  # noqa: ASYNC220
        assert up.stdout is not None
        try:
            told = [up.stdout.readline() for _ in range(6)]
            assert f"the store is at columns:http://127.0.0.1:{port + 1}\n" == told[0]
            assert f"of the cluster home is at http://127.0.0.1:{port}: open it in" in told[1]
            assert f"--name node-2 --data {tmp_path}/node-2" in told[5]
            assert f"--manager http://127.0.0.1:{port} --port {port + 2}" in told[5]
            os.kill(int(told[3].split()[-1]), signal.SIGKILL)  # node-1 is the last
            assert "node-1 has ended (killed by signal 9); " in up.stdout.readline()
            assert "--name node-1" in up.stdout.readline()
        finally:
            up.send_signal(signal.SIGTERM)
            assert up.wait(DEADLINE_SECONDS) == 0


async def test_a_node_is_killed_under_load_and_comes_back(tmp_path: Path) -> None:
    port, *_ = free_ports(4)
    with home_cluster(tmp_path / "home", port) as home:
        ring = await asyncio.to_thread(ask, [home["manager"]], "/v1/clusters/home/ring")
        assert ring.read(RingRead).balance_bytes == AUTO_BYTES
        async with open_store(home["url"], MAIL) as store:
            done = 0

            async def work(worker: int, until: asyncio.Event) -> None:
                nonlocal done
                count = 0
                while not until.is_set():
                    value = f"{worker}-{count}".encode()
                    await store.insert(MAIL, f"user-{worker}", {"profile": {"n": value}})
                    found = await store.get(MAIL, f"user-{worker}", "profile", "n")
                    assert found.value == value
                    count, done = count + 1, done + 1

            async def until_done(more: int) -> None:
                wanted = done + more

                async def is_done() -> bool:
                    for each in workers:
                        if each.done():
                            await each  # which says why
                    return done >= wanted

                await patience.until(is_done)

            stop = asyncio.Event()
            workers = [asyncio.create_task(work(number, stop)) for number in range(4)]
            await until_done(40)
            os.kill(home["pids"]["node-1"], signal.SIGKILL)
            await until_done(40)
            again = [
                *(*TENURE, "columns", "node", "--cluster", "home", "--name", "node-1", "--json"),
                *("--data", str(tmp_path / "home" / "node-1"), "--port", str(port + 1)),
                *("--secret", str(tmp_path / "home" / "secret"), "--manager", home["manager"]),
            ]
            with subprocess.Popen(again, stdout=subprocess.PIPE, text=True) as node:  # noqa: ASYNC220 - at once
                assert node.stdout is not None
                assert json.loads(node.stdout.readline())["event"] == "listening"
                await until_done(40)
                stop.set()
                await asyncio.gather(*workers)
                async with open_store(f"columns:http://127.0.0.1:{port + 1}", MAIL) as back:
                    for number in range(4):
                        mine = await store.get(MAIL, f"user-{number}", "profile", "n")
                        theirs = await back.get(MAIL, f"user-{number}", "profile", "n")
                        assert mine == theirs
                node.send_signal(signal.SIGTERM)
                assert node.wait(DEADLINE_SECONDS) == 0
