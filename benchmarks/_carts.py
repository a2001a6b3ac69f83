"""Carts over HTTP, twice: in a dict under locks, and in owned state; for `request`."""

import asyncio
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

from aiohttp import web

from tenure import LeaseLost, NotOwner, OwnedState, Owner, refusal

KEPT = 10
POOL = "carts"

Handler = Callable[[web.Request], Awaitable[web.Response]]


def on_a_dict() -> Handler:
    """The carts without tenure, on one process."""
    carts: dict[str, list[str]] = {}
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def post(request: web.Request) -> web.Response:
        user = request.match_info["user"]
        async with locks[user]:
            carts[user] = cart = [*carts.get(user, []), request.query["article"]][-KEPT:]
        return web.json_response(len(cart))

    return post


def on_owned_state(carts: OwnedState[list[str]]) -> Handler:
    """The carts with tenure, on any of several processes."""

    async def post(request: web.Request) -> web.Response:
        try:
            async with carts.at(request.match_info["user"]) as cart:
                cart.value = kept = [*(cart.value or []), request.query["article"]][-KEPT:]
        except (NotOwner, LeaseLost) as error:
            answer = refusal(error)
            assert answer is not None
            return web.Response(status=answer.status, headers=answer.headers, text=answer.text)
        return web.json_response(len(kept))

    return post


async def serve(manager: str) -> None:
    """Serve both services, until nobody reads any longer."""
    carts: OwnedState[list[str]] = OwnedState(value_type=list[str], ttl=3600, limit=100_000)

    async def cpu(_: web.Request) -> web.Response:
        return web.json_response(time.process_time())

    app = web.Application()
    app.router.add_post("/dict/{user}", on_a_dict())
    app.router.add_post("/owned/{user}", on_owned_state(carts))
    app.router.add_get("/cpu", cpu)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    async with Owner(manager, pool=POOL, address=address, hand_off=carts) as owner:
        await owner.ready()
        await web.SockSite(runner, listening).start()
        print(address, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
