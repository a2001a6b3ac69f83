"""A node of the store, which runs until a signal ends it. A file is there while it takes part."""

import asyncio
from pathlib import Path
from typing import Any

from lab.histories.outages import PATIENCE_SECONDS
from lab.histories.program import arguments
from tenure.columns.node.node_lives import NodeLives
from tenure.columns.node.node_service import NodeSettings

CLUSTER = "histories"
LOOK_SECONDS = 0.2


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
        patience_seconds=PATIENCE_SECONDS,
        gossip_seconds=0.3,
        repair_seconds=5.0,
    )


async def main(said: dict[str, Any]) -> None:
    """Run the node."""
    async with NodeLives(settings(said)) as node:
        telling = asyncio.create_task(_tell(node, Path(said["tells"])))
        try:
            await node.wait()
        finally:
            telling.cancel()


async def _tell(node: NodeLives, file: Path) -> None:
    while True:
        takes_part = node.service is not None and node.service.has_ring
        await asyncio.to_thread(_mark, file, is_there=takes_part)
        await asyncio.sleep(LOOK_SECONDS)


def _mark(file: Path, *, is_there: bool) -> None:
    if is_there:
        file.touch()
    else:
        file.unlink(missing_ok=True)


if __name__ == "__main__":
    asyncio.run(main(arguments()))
