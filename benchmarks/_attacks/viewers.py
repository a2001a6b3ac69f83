"""A viewer: it may read what a manager shows, and what a service keeps."""

import asyncio
import json

from benchmarks._attacks.attempt import Attempt, Family
from benchmarks._attacks.strangers import STAYS_SECONDS

QUEUE = "kept"
"""The queue of which others are the readers."""


async def follow(it: Attempt) -> None:
    """Everything that happens is to be told, and nothing of it is read."""
    await it.open()
    it.read_nothing()
    await it.send(it.head("GET", "/v1/live?level=debug"))
    await asyncio.sleep(STAYS_SECONDS)


async def read_much(it: Attempt) -> None:
    """Ask for all that there is, without end."""
    await it.open()
    paths = (
        "/v1/status",
        "/metrics",
        "/v1/pools/bench/table",
        "/v1/pools/bench/owners",
        "/v1/events",
    )
    await it.send_on(it.head("GET", it.random.choice(paths)) * 20)


async def read_nothing(it: Attempt) -> None:
    """Ask for all that there is, and take none."""
    await it.open()
    it.read_nothing()
    await it.send(it.head("GET", "/v1/pools/bench/table") * 500)
    await asyncio.sleep(STAYS_SECONDS)


async def sign_ins(it: Attempt) -> None:
    """S17: sign in at the dashboard's pages, until nobody else is."""
    await it.open()
    body = json.dumps({"token": it.token}).encode()
    head = it.head(
        "POST",
        "/v1/sign-in",
        "Content-Type: application/json\r\n",
        f"Content-Length: {len(body)}\r\n",
    )
    await it.send_on((head + body) * 20)


async def queue_sockets(it: Attempt) -> None:
    """S6: a socket of a queue, which would evict its reader and acknowledge what it has."""
    await it.upgrade(f"/queues/{QUEUE}/socket")
    await it.read_on()


async def read_service(it: Attempt) -> None:
    """Ask a service for a queue, without end."""
    await it.open()
    await it.send_on(it.head("GET", f"/queues/{QUEUE}") * 20)


FAMILIES = (
    Family(follow, "manager", 30, "viewer"),
    Family(read_much, "manager", 20, "viewer"),
    Family(read_nothing, "manager", 20, "viewer"),
    Family(sign_ins, "manager", 5, "viewer"),
    Family(queue_sockets, "service", 20, "viewer"),
    Family(read_service, "service", 10, "viewer"),
)
