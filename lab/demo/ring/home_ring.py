"""The cluster of the demo: that of `tenure columns up`, and what is done to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar

from tenure.cli.asking import HttpReply, ask
from tenure.cli.demo.ports import free_ports
from tenure.cli.home_cluster import HomeCluster
from tenure.errors import TenureError
from tenure.protocol.topology.answers import MovesRead, NodeSummary, RingRead, UpkeepRead

T = TypeVar("T")
PATIENCE_SECONDS = 120.0
"""The longest wait for one step: a busy machine takes long to start a process."""
REPAIR_SECONDS = 2.0
"""The time between two weighings, so that the demo need not wait a minute for each."""
QUICK_REPAIR = ("--repair-every", f"{REPAIR_SECONDS:g}")


class HomeRing(HomeCluster):
    def __init__(
        self,
        data: Path,
        nodes: int,
        spares: int,
        options: Sequence[str] = QUICK_REPAIR,
        managing: Sequence[str] = (),
    ) -> None:
        port = free_ports(1 + nodes + spares)[0]
        super().__init__(data, "demo", nodes, port, options, managing)

    async def said(self, what: str, body: object = None) -> HttpReply:
        """Return the manager's answer."""
        path = f"/v1/clusters/{self.cluster}/{what}"
        return await asyncio.to_thread(ask, [self.manager], path, body)

    async def ring(self) -> RingRead:
        """Return the ring as it is now."""
        return (await self.said("ring")).read(RingRead)

    async def node(self, name: str) -> NodeSummary | None:
        """Return a node of the ring, or None if the manager does not know it."""
        ring = await self.ring()
        return next((node for node in ring.nodes if node.name == name), None)

    async def moves(self) -> MovesRead:
        """Return the moves that should be made."""
        return (await self.said("moves")).read(MovesRead)

    async def down(self) -> set[str]:
        """Return the names of the nodes that other nodes hold to be down."""
        seen = (await self.said("upkeep")).read(UpkeepRead).seen
        return {each.node for each in seen if each.is_convicted}

    async def settled(self) -> RingRead:
        """Wait until no change runs, and all nodes have weighed what they have since."""
        ring = await until(self.ring, lambda ring: not ring.change, "the change is not over")
        await asyncio.sleep(3 * REPAIR_SECONDS)
        await until(self.moves, lambda moves: moves.known, "no node says what it carries")
        return ring


async def until(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool], what: str) -> T:
    """Look again and again until it holds; what was found. Raises TenureError, saying `what`."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        with suppress(TenureError):
            found = await look()
            if holds(found):
                return found
        if monotonic() > deadline:
            raise TenureError(f"{what} after {PATIENCE_SECONDS:g} s")
        await asyncio.sleep(0.2)
