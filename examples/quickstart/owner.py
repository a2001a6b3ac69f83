"""An owner: it counts the visits of the rooms that are its own, in memory.

python examples/quickstart/owner.py 8001
"""

import asyncio
import os
import signal
import sys

from aiohttp import web

from tenure import KeyRange, Lease, Owner

MANAGERS = os.environ.get("TENURE_MANAGERS", "http://127.0.0.1:7400")


async def main(port: int) -> None:
    visits: dict[str, tuple[Lease, int]] = {}

    async def visit(request: web.Request) -> web.Response:
        room = request.match_info["room"]
        lease = owner.check(room)
        if lease is None:  # (1) this room is somebody else's
            raise web.HTTPMisdirectedRequest
        stored, count = visits.get(room, (lease, 0))
        if not owner.holds(stored):  # (2) what we have of it is from an earlier time: discard it
            count = 0
        visits[room] = (lease, count + 1)  # (3) the work, and the lease beside it
        if not owner.holds(lease):  # (4) lost meanwhile: whether it counts is unknown
            raise web.HTTPServiceUnavailable(headers={"Tenure-Outcome": "unknown"})
        return web.json_response({"visits": count + 1})

    def granted(ranges: tuple[KeyRange, ...]) -> None:
        print(f"ranges granted: {len(ranges)}", flush=True)

    def revoked(ranges: tuple[KeyRange, ...]) -> None:
        print(f"ranges revoked: {len(ranges)}", flush=True)

    address = f"http://127.0.0.1:{port}"
    async with Owner(
        MANAGERS, pool="rooms", address=address, on_grant=granted, on_revoke=revoked
    ) as owner:
        told_to_end = asyncio.Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(each, told_to_end.set)
        app = web.Application()
        app.router.add_post("/rooms/{room}", visit)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        print(f"serving at {address}", flush=True)
        await told_to_end.wait()
    print("left")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
