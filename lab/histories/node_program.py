"""A node of the store, which runs until a signal ends it."""

import asyncio
from pathlib import Path
from typing import Any

from lab.histories.program import arguments
from tenure.columns.node.node_lives import NodeLives
from tenure.columns.node.node_service import NodeSettings

CLUSTER = "histories"


def settings(said: dict[str, Any]) -> NodeSettings:
    """Quick to convict and to give up: a minute should have many of both."""
    return NodeSettings(
        cluster=CLUSTER,
        data=Path(said["data"]),
        managers=(said["manager"],),
        secret=Path(said["secret"]),
        host=said["host"],
        port=said["port"],
        name=said["name"],
        patience_seconds=1.5,
        gossip_seconds=0.3,
        repair_seconds=5.0,
    )


async def main(said: dict[str, Any]) -> None:
    """Run the node."""
    async with NodeLives(settings(said)) as node:
        await node.wait()


if __name__ == "__main__":
    asyncio.run(main(arguments()))
