"""A web service that is attacked, in one process: two members, each behind a uvicorn that reads
HTTP with h11, and a cache server.

The first line of its input says where its manager is, and its only line of output where it listens.
"""

import asyncio
import socket
import sys
from contextlib import AsyncExitStack

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tenure import CacheServer, Credentials, Member, Relay, Volume

POOL = "carts"
NAMES = ("first", "second")


class Told(msgspec.Struct, frozen=True):
    """What the process is told."""

    manager: str
    token: str


class Listens(msgspec.Struct, frozen=True):
    """Where it listens."""

    shops: list[str]
    """For visitors."""
    members: list[str]
    """For other members."""
    cache: str


def cart_shop(name: str) -> Starlette:
    """An application that says by whom a cart is served."""

    async def cart(request: Request) -> PlainTextResponse:
        del request
        return PlainTextResponse("a cart", headers={"Served-By": name})

    async def talk(talking: WebSocket) -> None:
        await talking.accept()
        async for said in talking.iter_text():
            await talking.send_text(said)

    routes = [Route("/carts/{user}", cart), WebSocketRoute("/carts/{user}/talk", talk)]
    return Starlette(routes=routes)


async def _serve(stack: AsyncExitStack, told: Told, name: str) -> tuple[str, str]:
    """Run a member; its two addresses."""
    member = Member(POOL, told.manager, drain=0, credentials=Credentials(token=told.token))
    relay = Relay(cart_shop(name), member=member, key="/carts/{user}")
    await stack.enter_async_context(member.serving(relay))
    await member.owner.ready()
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(relay, http="h11", lifespan="off", log_level="critical")
    serving = asyncio.ensure_future(uvicorn.Server(config).serve([listening]))
    stack.callback(serving.cancel)
    return f"http://127.0.0.1:{listening.getsockname()[1]}", member.owner.address


async def main() -> None:
    told = msgspec.json.decode(sys.stdin.readline(), type=Told)
    async with AsyncExitStack() as stack:
        served = [await _serve(stack, told, name) for name in NAMES]
        volume = Volume(str, value_type=str)
        cache = await stack.enter_async_context(CacheServer(volume, listen="127.0.0.1:0"))
        shops, members = map(list, zip(*served, strict=True))
        said = Listens(shops=shops, members=members, cache=cache.url)
        print(msgspec.json.encode(said).decode(), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
