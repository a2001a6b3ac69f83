"""A ring of the store is upgraded node by node, and serves all the while, clients of both releases.

The older release is that in `tests/versions/tenure-store.zip`.
"""

import asyncio
import json
from pathlib import Path

import pytest

from tests.integration.columns.node_processes import NodeProcesses, processes, started
from tests.patience import DEADLINE_SECONDS
from tests.unit.columns.node.ringed import form_ring, settings_of
from tests.versions.old import HERE, NEW, Release
from tests.versions.store_node import MAIL

pytestmark = pytest.mark.asyncio
BEFORE = Release("tenure", (HERE / "tenure-store.zip",))


class Asked:
    """Rows that clients of both releases have written, and so must find."""

    def __init__(self, ring: NodeProcesses) -> None:
        self._ring = ring
        self._rows: list[str] = []

    async def by(self, release: Release, place: int) -> None:
        """One writes a row by one node, and reads all that there are."""
        wanted = [*self._rows, f"row-{len(self._rows)}"]
        url = self._ring.url(place).removeprefix("columns:")
        client = await started(release, "client", url, wanted[-1], *wanted)
        async with asyncio.timeout(DEADLINE_SECONDS):
            said, _ = await client.communicate()
        assert json.loads(said) == wanted
        self._rows = wanted


async def test_a_ring_is_upgraded_node_by_node_and_serves_all_the_while(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with processes(nodes) as ring:
        asked = Asked(ring)
        await ring.start(0, 1, 2, release=BEFORE)
        await asked.by(BEFORE, 0)
        for place in range(3):
            await ring.kill(place)
            await asked.by(BEFORE, (place + 1) % 3)  # two of three are up
            await ring.start(place, release=NEW)
            await asked.by(BEFORE, place)
        await asked.by(NEW, 2)  # programs come after all nodes: they have versions drawn (R4)
