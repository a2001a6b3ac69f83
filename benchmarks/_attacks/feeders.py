"""Who may write feeds: it has a token of their pool, and sends bodies and URLs that mean harm."""

import json

from benchmarks._attacks.attempt import Attempt, Family
from benchmarks._attacks.ears import ear
from tests.unit.services.feed_bodies import ENDLESS

HOSTS = (
    *(
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0",
        "127.0.0.1.",
    ),
    *("localhost", "[::ffff:127.0.0.1]", "127.0.0.1"),
)
"""Spellings of loopback, of which each is one to some parser."""


async def slow_bodies(it: Attempt) -> None:
    """S7: a body of which every comment is looked for to the end."""
    await it.open()
    where = f"/feeds/slow-{it.number}/bodies"
    await it.send(it.head("POST", where, f"Content-Length: {len(ENDLESS)}\r\n") + ENDLESS)
    await it.hear_answer()


async def inward_sources(it: Attempt) -> None:
    """S9: sources on this host, for the service to ask."""
    await it.open()
    async with ear(it) as port:
        for number, host in enumerate(HOSTS):
            said = json.dumps({"url": f"http://{host}:{port}/feed", "every": 60}).encode()
            size = f"Content-Length: {len(said)}\r\n"
            path = f"/feeds/inward-{it.number}-{number}/sources"
            await it.send(it.head("PUT", path, "Content-Type: application/json\r\n", size) + said)
            await it.hear_answer()


FAMILIES = (
    Family(slow_bodies, "feeds", 4, "owner feeds"),
    Family(inward_sources, "feeds", 3, "owner feeds"),
)
