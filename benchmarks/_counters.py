"""Carts behind FastAPI: in a dict under locks, as entities, and by hand with locks in Redis; for
the benchmark `entities` and the experiment `entity`.
"""

import asyncio
import sys
import time
from collections import defaultdict

import msgspec
import uvicorn
from fastapi import FastAPI

from tenure import Entities, Entity
from tenure.member.listener import bound
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

KEPT = 10


class Articles(msgspec.Struct):
    kept: list[str] = []


class Cart(Entity[Articles]):
    """The entity that is compared with a dict."""

    async def add(self, article: str) -> int:
        self.state.kept = [*self.state.kept, article][-KEPT:]
        return len(self.state.kept)


def by_hand(app: FastAPI, address: str) -> None:
    """Do what a user of Redis writes by hand: take a lock for each key, and keep the cart beside
    it.
    """
    from redis.asyncio import Redis  # noqa: PLC0415  # only where it is asked for

    host, _, port = address.rpartition(":")
    client = Redis(host=host, port=int(port))

    @app.post("/redis/{user}")
    async def lock(user: str, article: str) -> int:
        async with client.lock(f"lock:{user}", timeout=13):
            found = await client.get(f"cart:{user}")
            cart = [*(msgspec.json.decode(found) if found else []), article][-KEPT:]
            await client.set(f"cart:{user}", msgspec.json.encode(cart))
        return len(cart)


def service(carts: Entities[Cart]) -> FastAPI:
    """Serve in one process."""
    app = FastAPI()
    on_dict: dict[str, list[str]] = {}
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @app.post("/dict/{user}")
    async def post(user: str, article: str) -> int:
        async with locks[user]:
            on_dict[user] = cart = [*on_dict.get(user, []), article][-KEPT:]
        return len(cart)

    @app.post("/entity/{user}")
    async def call(user: str, article: str) -> int:
        return await carts[user].add(article)

    @app.get("/cpu")
    async def cpu() -> float:
        return time.process_time()

    return app


async def serve(redis: str) -> None:
    """All, until it is told to end; it prints its port first."""
    async with InProcessCluster(["carts"], timing=DEFAULT) as cluster:
        environment = ClusterEnvironment(cluster)
        carts = Entities(Cart, "carts", cluster.urls, watchdog=None, _environment=environment)
        async with carts:
            await carts.station.owner.ready()
            app = service(carts)
            if redis:
                by_hand(app, redis)
            config = uvicorn.Config(app, port=0, log_level="error", lifespan="off")
            server = uvicorn.Server(config)
            listening = bound("127.0.0.1:0")
            listening.listen()
            print(listening.getsockname()[1], flush=True)
            await server.serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1] if len(sys.argv) > 1 else ""))
