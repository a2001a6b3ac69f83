"""A node of the store, or a client of one, of whichever release runs this.

    python store_node.py node DATA PORT SECRET SEED...
    python store_node.py client URL WRITTEN READ...

A node prints a line when it takes part, and ends with its input. Other settings are in STORE_NODE
of its environment, as JSON. A client writes one row, reads others, and prints what it has found.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tenure import Family, Table, open_store
from tenure.columns.node.node_service import NodeService, NodeSettings

MAIL = Table("mail", profile=Family(columns=str))
CLUSTER = "mail"
PATIENCE_SECONDS = 30.0
SETTINGS = "STORE_NODE"


async def node(data: str, port: str, secret: str, *seeds: str) -> None:
    """Run one until nobody wants it any more."""
    others = {"patience_seconds": PATIENCE_SECONDS, **json.loads(os.environ.get(SETTINGS, "{}"))}
    settings = NodeSettings(
        cluster=CLUSTER,
        data=Path(data),
        seeds=seeds,
        secret=Path(secret),
        port=int(port),
        **others,
    )
    async with NodeService(settings) as service:
        while not service.has_ring:  # noqa: ASYNC110 - of every release, and it can be looked at
            await asyncio.sleep(0.02)
        print("takes part", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def client(url: str, written: str, *wanted: str) -> None:
    """Write one row and read some."""
    async with open_store(f"columns:{url}", MAIL) as store:
        await store.insert(MAIL, written, {"profile": {"name": written.encode()}})
        await store.warm(MAIL, written)
        await store.warmed()
        found = [await store.get(MAIL, each, "profile", "name") for each in wanted]
    print(json.dumps([each and each.value.decode() for each in found]))


if __name__ == "__main__":
    asyncio.run((node if sys.argv[1] == "node" else client)(*sys.argv[2:]))
