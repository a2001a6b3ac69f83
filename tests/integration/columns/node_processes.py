"""Nodes of a ring that was formed before, in processes of their own, of some release."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from tenure.columns.backends.cluster import STORE_ROLE, ClusterBackend
from tenure.columns.node.node_service import NodeSettings
from tenure.columns.opening import StoreOpening
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, by_name
from tenure.transport.websocket import WebSocketTransport
from tests.patience import DEADLINE_SECONDS
from tests.versions.old import HERE, NEW, Release, environment
from tests.versions.store_node import SETTINGS

PROGRAM = str(HERE / "store_node.py")


async def started(
    release: Release, *said: str, settings: Mapping[str, float | str] | None = None
) -> asyncio.subprocess.Process:
    """The program of `tests/versions/store_node.py`."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, PROGRAM, *said),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment(release) | {SETTINGS: json.dumps({**(settings or {})})},
    )


class NodeProcesses:
    """See above."""

    def __init__(self, nodes: Sequence[NodeSettings], settings: Mapping[str, float | str]) -> None:
        self.nodes = nodes
        self._settings = settings
        self.running: dict[int, asyncio.subprocess.Process] = {}

    def url(self, *places: int) -> str:
        """Return the URL of the store that these nodes serve."""
        return "columns:" + ",".join(f"http://127.0.0.1:{self.nodes[at].port}" for at in places)

    def opening(self, place: int, table: Table) -> StoreOpening:
        """An opening of a store that asks this node alone, whatever it is told of others."""
        url = self.url(place).removeprefix("columns:")
        backend = ClusterBackend([url], [table], WebSocketTransport(STORE_ROLE))
        backend._known.learn = lambda *_: None  # type: ignore[method-assign]
        return StoreOpening(ColumnStore(backend, by_name([table])))

    async def start(self, *places: int, release: Release = NEW) -> None:
        """Start all nodes, and wait until they take part."""
        for place in places:
            node = self.nodes[place]
            said = "node", str(node.data), str(node.port), str(node.secret), *node.seeds
            self.running[place] = await started(release, *said, settings=self._settings)
        for place in places:
            stdout = self.running[place].stdout
            assert stdout is not None
            async with asyncio.timeout(DEADLINE_SECONDS):
                assert await stdout.readline() == b"takes part\n"

    async def kill(self, place: int) -> None:
        """Kill nodes as a power failure of one host does, except that its disk loses nothing."""
        process = self.running.pop(place)
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def processes(
    nodes: Sequence[NodeSettings], settings: Mapping[str, float | str] | None = None
) -> AsyncIterator[NodeProcesses]:
    """All end at the end."""
    found = NodeProcesses(nodes, settings or {})
    try:
        yield found
    finally:
        for place in list(found.running):
            await found.kill(place)
