"""The store that `tenure run --store` runs beside a command: three nodes under its own manager."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tenure.cli.home_cluster import HomeCluster
from tenure.cli.output import remark
from tenure.cli.waiting import WaitingLine
from tenure.errors import TenureError

MANAGER_PORT = 7499
"""The manager's port beside a store, whose nodes are to be found again where they were."""
NODES = 3


@asynccontextmanager
async def store_beside(
    data: Path, manager: str, begun: Callable[[int], None]
) -> AsyncIterator[str]:
    """The store's URL. A node that ends is started again; `begun` is told the process of each."""
    port = int(manager.rpartition(":")[2])
    home = HomeCluster(data, "home", NODES, port, manager=manager)
    keeping: asyncio.Task[Any] = asyncio.create_task(asyncio.Event().wait())
    try:
        with WaitingLine(lambda: f"starting {NODES} nodes; their logs are in {data}"):
            await _unless_told_to_end(home.start())
        for pid in home.pids().values():
            begun(pid)
        remark(f"tenure: the store is kept in {data}")
        keeping = asyncio.create_task(home.keep(begun))
        yield home.url
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await home.end()


async def _unless_told_to_end(starting: Coroutine[Any, Any, None]) -> None:
    task, loop = asyncio.create_task(starting), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    if task.cancelled():
        raise TenureError("told to end while the store was being started")
    task.result()
