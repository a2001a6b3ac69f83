"""The service behind `workers` and `relay`: carts, in the memory of the workers of one uvicorn."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, NamedTuple

import aiohttp
import msgspec
from fastapi import Depends, FastAPI, WebSocket

from tenure import (
    Entities,
    Entity,
    Lease,
    Lookup,
    Member,
    OwnedState,
    Relay,
    Socket,
    owned,
    reading,
)

POOL = "carts"
KEY = "/carts/{user}"
START_SECONDS = 180.0

carts: OwnedState[list[str]] = OwnedState(value_type=list[str])
member = Member(POOL, hand_off=carts)
app = FastAPI(lifespan=member.lifespan)
app.add_middleware(Relay, member=member, key=KEY)


@app.get("/pid")
async def pid() -> int:
    """The worker that a connection leads to."""
    return os.getpid()


@app.get("/carts/{user}/pid")  # its dependency reads the user
async def owner_pid(_: Annotated[Lease, Depends(owned("user"))]) -> int:
    """The worker that has a cart."""
    return os.getpid()


@app.get("/carts/{user}")
async def get(user: str) -> list[str]:
    """Answer what is in a cart."""
    async with carts.at(user) as cart:
        return cart.value or []


@app.post("/carts/{user}")
async def post(user: str, article: str) -> int:
    """Put an article in, once, however often it is asked for."""
    async with carts.at(user) as cart:
        kept = cart.value or []
        if article not in kept:
            cart.value = [*kept, article]
        return len(cart.value or [])


# --- the same with a class for each cart, which is called wherever it lives ---


class Articles(msgspec.Struct):
    """The contents of a cart, as they are kept."""

    kept: list[str] = []


class Cart(Entity[Articles]):
    """A cart."""

    async def put(self, article: str) -> int:
        """Put an article into the cart, once, however often that is asked for."""
        if article not in self.state.kept:
            self.state.kept.append(article)
        return len(self.state.kept)

    @reading
    async def articles(self) -> list[str]:
        """Return the articles in it."""
        return self.state.kept

    @reading
    async def pid(self) -> int:
        """Return the process in which it lives."""
        return os.getpid()

    async def on_message(self, socket: Socket[None], text: str) -> None:
        """Answer a word with the same."""
        socket.send(text)


entities = Entities(Cart, POOL)
app_of_entities = FastAPI(lifespan=entities.lifespan)
app_of_entities.get("/pid")(pid)


@app_of_entities.get("/carts/{user}/pid")
async def entity_pid(user: str) -> int:
    """The worker that has a cart."""
    return await entities[user].pid()


@app_of_entities.get("/carts/{user}")
async def entity_get(user: str) -> list[str]:
    """Answer what is in a cart."""
    return await entities[user].articles()


@app_of_entities.post("/carts/{user}")
async def entity_post(user: str, article: str) -> int:
    """Put an article in."""
    return await entities[user].put(article)


@app_of_entities.websocket("/carts/{user}/live")
async def live(websocket: WebSocket, user: str) -> None:
    """A socket to a cart."""
    await entities[user].attach(websocket)


class Shop(NamedTuple):
    """The running service."""

    url: str
    process: Process
    lookup: Lookup
    manager: str
    """The manager's URL."""

    async def owners(self) -> set[str]:
        """The addresses of the members that have keys."""
        return {address for _, address in self.lookup.table() if address}

    async def settled(self, workers: int) -> None:
        """Wait until so many members share the keys."""
        async with asyncio.timeout(START_SECONDS):
            while len(await self.owners()) != workers:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.05)


@asynccontextmanager
async def shop(workers: int, served: str = "app") -> AsyncIterator[Shop]:
    """The service, with a manager beside it, until the block ends; `served` names the one of both
    applications.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    server = (
        "-m",
        "uvicorn",
        f"{__name__}:{served}",
        "--port",
        str(port),
        "--workers",
        str(workers),
    )
    tenure = (sys.executable, "-m", "tenure", "run", "--", sys.executable)
    process = await asyncio.create_subprocess_exec(
        *(*tenure, *server, "--no-access-log", "--log-level", "error"),
        *("--timeout-worker-healthcheck", "60"),  # on a busy machine a worker starts slowly
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        assert process.stderr is not None
        manager = (await process.stderr.readline()).split()[-1].decode()
        draining = asyncio.ensure_future(process.stderr.read())
        url = f"http://127.0.0.1:{port}"
        await _answers(url)
        async with Lookup(manager, pool=POOL) as lookup:
            found = Shop(url, process, lookup, manager)
            await found.settled(workers)
            yield found
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
        await draining


async def _answers(url: str) -> None:
    async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/pid"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
