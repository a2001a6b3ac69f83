"""A process of many holders of one key, by hand: `URL KEY COUNT`, the key in hexadecimal.

At each line that it reads, all of them get the key; then it says `held`. They let go of it when it
is written.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

import aiohttp

from benchmarks._holders import Holder
from benchmarks._manager import allow_many_files
from tenure.cache.cache_engine import PATH
from tenure.wire.versions import NEWEST

MOST = 1000
WRITTEN_SECONDS = 30.0
"""The longest wait for the write: then its owner has not told somebody."""


async def enter(stack: AsyncExitStack, url: str, count: int) -> list[Holder]:
    """Holders on record."""
    no_limit = aiohttp.TCPConnector(limit=0)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=no_limit))
    holders = []
    for number in range(count):
        connecting = session.ws_connect(url + PATH, protocols=[f"tenure.{NEWEST}"])
        client = os.getpid() * MOST + number  # which no other process has had
        holders.append(Holder(await stack.enter_async_context(connecting), client))
        await holders[-1].come_on_record()
    return holders


async def serve(url: str, key: bytes, count: int) -> None:
    allow_many_files()
    async with AsyncExitStack() as stack:
        holders = await enter(stack, url, count)
        while await asyncio.to_thread(sys.stdin.readline):
            await asyncio.gather(*(each.fetch(key) for each in holders))
            print("held", flush=True)
            async with asyncio.timeout(WRITTEN_SECONDS):
                await asyncio.gather(*(each.acknowledge_one() for each in holders))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], bytes.fromhex(sys.argv[2]), int(sys.argv[3])))
