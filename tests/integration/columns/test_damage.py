"""Disks of real nodes lose something, and the cluster heals without anybody doing anything."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import Family, Table, open_store
from tenure.cli.asking import ask
from tenure.cli.demo.ports import free_ports
from tenure.columns.engines.log_watch import NOTE, LogNote
from tenure.columns.store import ColumnStore
from tenure.errors import TenureError
from tenure.protocol.topology.answers import RingRead, UpkeepRead
from tests.integration.columns.test_cluster import TENURE, home_cluster
from tests.patience import DEADLINE_SECONDS, until

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))
ROWS = 200
MARK = b"to be found in the file"
WHOLE = bytes.fromhex("f7cff485b741e288")
"""The end of a file that RocksDB has finished. Each family has its own, and that of the rows need
not be the first.
"""


async def mended(home: dict[str, Any]) -> list[int]:
    """How often each node says that others have mended what its disk had lost."""
    reply = await asyncio.to_thread(ask, [home["manager"]], "/v1/clusters/home/upkeep")
    return [each.mended for each in reply.read(UpkeepRead).scrubs]


async def ring_of(home: dict[str, Any]) -> RingRead:
    reply = await asyncio.to_thread(ask, [home["manager"]], "/v1/clusters/home/ring")
    return reply.read(RingRead)


async def until_healed(home: dict[str, Any], removed: int) -> None:
    async def is_so() -> bool:
        ring = await ring_of(home)
        names = sorted(node.name for node in ring.nodes)
        is_settled = len(ring.removed) == removed and not ring.change
        is_settled = is_settled and names == ["node-1", "node-2", "node-3"]
        return is_settled and sum(await mended(home)) == removed

    await until(is_so, seconds=2 * DEADLINE_SECONDS)


@asynccontextmanager
async def started(home: dict[str, Any], place: Path, number: int) -> AsyncIterator[None]:
    """Run a node that has ended again, as its supervisor does."""
    port = int(home["manager"].rpartition(":")[2]) + number
    command = [
        *(*TENURE, "columns", "node", "--cluster", "home", "--name", f"node-{number}", "--json"),
        *("--data", str(place / f"node-{number}"), "--port", str(port)),
        *("--secret", str(place / "secret"), "--manager", home["manager"]),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as node:  # noqa: ASYNC220 - at once
        try:
            yield
            assert node.poll() is None
        finally:
            node.kill()


async def kill(home: dict[str, Any], number: int) -> None:
    pid = home["pids"][f"node-{number}"]
    os.kill(pid, signal.SIGKILL)

    def is_gone() -> bool:  # when the command that has started it knows
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    await until(is_gone)


def cut_log(rows: Path) -> None:
    """The disk of a node that does not run loses the end of what it has synced of its log."""
    synced = msgspec.json.decode((rows / NOTE).read_bytes(), type=LogNote).logs
    name = max(synced, key=lambda each: synced[each])
    with (rows / name).open("r+b") as file:
        file.truncate(synced[name] - 300)


def marked(rows: Path) -> dict[Path, bytearray]:
    """The finished files that have rows."""
    found = {each: bytearray(each.read_bytes()) for each in rows.glob("*.sst")}
    return {each: data for each, data in found.items() if MARK in data and data.endswith(WHOLE)}


def flip_bits(files: dict[Path, bytearray]) -> None:
    """The disk of a node that runs changes some bits of its rows."""
    for path, data in files.items():
        while (at := data.find(MARK)) >= 0:
            data[at] ^= 0x10
        with path.open("r+b") as file:
            file.write(data)


@asynccontextmanager
async def used(store: ColumnStore, until: asyncio.Event) -> AsyncIterator[asyncio.Task[None]]:
    """Use a store until then, and never once it is closed: it would refuse each call at once, and
    no other task would run.
    """
    using = asyncio.create_task(use(store, until))
    try:
        yield using
    finally:
        using.cancel()
        await asyncio.wait([using])


async def use(store: ColumnStore, until: asyncio.Event) -> None:
    """Read all rows again and again: what is found must be right."""
    while not until.is_set():
        for number in range(ROWS):
            with suppress(TenureError):
                found = await store.get(MAIL, f"row-{number}", "profile", "name")
                assert found is not None
                assert found.value.endswith(MARK + b"%d" % number)


async def test_a_cut_log_and_flipped_bits_are_mended_by_the_others(tmp_path: Path) -> None:
    port, *_ = free_ports(4)
    place, stop = tmp_path / "home", asyncio.Event()
    with home_cluster(place, port) as home:
        async with open_store(home["url"], MAIL) as store:
            for number in range(ROWS):
                value = os.urandom(300) + MARK + b"%d" % number
                await store.insert(MAIL, f"row-{number}", {"profile": {"name": value}})
            async with used(store, stop) as using:
                await kill(home, 1)
                cut_log(place / "node-1" / "rows")
                async with started(home, place, 1):
                    await until_healed(home, removed=1)
                    await kill(home, 2)
                    async with started(home, place, 2):  # which writes its log into files
                        flip_bits(await until(lambda: marked(place / "node-2" / "rows")))
                        await until_healed(home, removed=2)
                        await kill(home, 3)
                        stop.set()
                        await using
                        for number in range(ROWS):
                            found = await store.get(MAIL, f"row-{number}", "profile", "name")
                            assert found is not None
        for number in (1, 2):
            assert len([*(place / f"node-{number}").glob("damaged-*/rows/*")]) > 3
