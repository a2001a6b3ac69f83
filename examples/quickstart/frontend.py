"""A frontend: it shows how often a room was visited, from its own memory.

python examples/quickstart/frontend.py kitchen
"""

import asyncio
import os
import sys

from tenure import Cache, Lookup, Unreachable

MANAGERS = os.environ.get("TENURE_MANAGERS", "http://127.0.0.1:7400")


async def main(room: str) -> None:
    shown = ""
    async with (
        Lookup(MANAGERS, pool="rooms") as lookup,
        Cache(lookup, value_type=int) as cache,
    ):
        while True:
            try:
                now = f"{room} {await cache.get(room)} at {lookup.find(room)}"
            except Unreachable as error:
                now = str(error)
            if now != shown:
                print(f"{now}, {cache.stats()['hits']} reads from memory", flush=True)
                shown = now
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        print("left")
