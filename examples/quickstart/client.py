"""A client: it visits five rooms, wherever they are, and reports what was lost.

python examples/quickstart/client.py
"""

import asyncio
import os
import sys
from http import HTTPStatus

from aiohttp import ClientError, ClientSession

from tenure import KeyRange, Lookup

MANAGERS = os.environ.get("TENURE_MANAGERS", "http://127.0.0.1:7400")
ROOMS = sys.argv[1:] or ["attic", "cellar", "hall", "kitchen", "study"]


async def main() -> None:
    def lost(ranges: tuple[KeyRange, ...]) -> None:
        for room in ROOMS:
            if any(lookup.key(room) in each for each in ranges):
                print(f"lost: {room}", flush=True)  # publish it again, if you can

    async def visit(room: str) -> str:
        while True:
            address = lookup.find(room)
            if address is not None:
                try:
                    async with session.post(f"{address}/rooms/{room}") as response:
                        if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
                            return f"{room}: the owner lost it meanwhile, the visit may not count"
                        if response.status != HTTPStatus.MISDIRECTED_REQUEST:
                            answer = await response.json()
                            return f"{room} {answer['visits']} at {address}"
                except ClientError:
                    pass  # the owner is gone, and the manager does not know it yet
            await asyncio.sleep(0.1)

    async def keep_visiting(room: str) -> None:
        while True:
            print(await visit(room), flush=True)
            await asyncio.sleep(1)

    async with (
        Lookup(MANAGERS, pool="rooms", on_loss=lost) as lookup,
        ClientSession() as session,
        asyncio.TaskGroup() as tasks,
    ):
        for room in ROOMS:
            tasks.create_task(keep_visiting(room))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("left")
