"""Services under restarts and kills: what their clients notice.

Four processes of a service are under load from this one. First they are restarted in turn, each
successor started when its predecessor has handed over and ended, until all requests are sent: no
request may fail, and no loss may be told. Then processes are killed at random instants. Each starts
again while others are killed, so that up to two are away. An acknowledged update of a document with
a store may not be forgotten; the messages of a queue arrive in order, or a loss is told in their
place; a subscriber of a topic receives what was published, or learns that it has missed some; a
feed answers.

`--only NAME` runs one service, `--kills N` sets another number of kills, `--no-restarts` does only
the kills.
"""

import asyncio
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

from benchmarks._quick import sized
from benchmarks._service_loads import (
    BAD,
    DocumentLoad,
    FeedLoad,
    Inboxes,
    Load,
    QueueLoad,
    TopicLoad,
)
from lab.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports
from tenure.services.documents.client import DocumentsClient
from tenure.services.feeds.client import FeedsClient
from tenure.services.pubsub.client import PubSubClient
from tenure.services.queues.client import QueuesClient

PROCESSES = 4
MOST_AWAY = 2
KILLS = sized(50, 1)
RESTART_SECONDS = sized(60, 5)
KEYS = 16
DEADLINE = 60.0
OPTIONS = {"pubsub": ("--inward",)}
"""The options with which each service is always started."""
TELLING = ("queues", "pubsub")
"""Services that tell of losses, of which a kill is one."""
SERVICES = ("documents", "queues", "pubsub", "feeds")


@asynccontextmanager
async def running(name: str, preset: str, *options: str) -> AsyncIterator[list[ServiceProcess]]:
    """A manager, and four processes of the service."""
    said = ("--port", "0", "--journal", "memory", "--first-start", "--log-level", "error")
    manager = ServiceProcess("manager", ("manager", *said, "--preset", preset))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(manager.end)
        url = await manager.start()
        serve = ("serve", name, "--manager", url, *options)
        processes = [
            ServiceProcess(f"{name}-{number}", (*serve, "--listen", f"127.0.0.1:{port}"))
            for number, port in enumerate(free_ports(PROCESSES))
        ]
        for each in processes:
            stack.push_async_callback(each.end)
        await asyncio.gather(*(each.start() for each in processes))
        yield processes


async def restarts(load: Load, processes: list[ServiceProcess]) -> None:
    """One after the other, again and again."""
    until = monotonic() + RESTART_SECONDS
    for each in cycle(processes):
        if monotonic() > until:
            return
        await each.leave()
        await each.start()
        load.counts["restarts"] += 1


async def kills(load: Load, processes: list[ServiceProcess], most: int) -> None:
    """Kill processes at random instants, each of which meets something under way.

    Waiting for processes that start is not measured here, so they start while others are killed.
    """
    random = Random(1)
    away: dict[asyncio.Task[str], ServiceProcess] = {}
    for _ in range(most):
        await asyncio.sleep(0.5 + 2 * random.random())
        while len(away) == MOST_AWAY:
            done, _ = await asyncio.wait(away, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                del away[each]
                each.result()
        victim = random.choice([it for it in processes if it not in away.values()])
        await victim.kill()
        away[asyncio.create_task(victim.start())] = victim
        load.counts["kills"] += 1
    await asyncio.gather(*away)
    await asyncio.sleep(3.0)


async def loaded(name: str, urls: list[str], stack: AsyncExitStack, has_store: bool) -> Load:  # noqa: FBT001  # as it was started
    """The clients of a service."""
    if name == "documents":
        documents = await stack.enter_async_context(DocumentsClient(urls, deadline=DEADLINE))
        return DocumentLoad(documents, has_store=has_store)
    if name == "queues":
        return QueueLoad(await stack.enter_async_context(QueuesClient(urls, deadline=DEADLINE)))
    if name == "feeds":
        return FeedLoad(await stack.enter_async_context(FeedsClient(urls, deadline=DEADLINE)))
    inboxes = Inboxes()
    stack.push_async_callback((await inboxes.open()).cleanup)
    topics = await stack.enter_async_context(PubSubClient(urls, deadline=DEADLINE))
    return TopicLoad(topics, inboxes)


async def trial(name: str, *options: str, killed: int) -> Counter[str]:
    """One service, one kind of end; what was counted."""
    options = (*options, *OPTIONS.get(name, ()))
    # Leases of a second bring the keys of who was killed back at once; restarts need no such haste.
    preset = "test" if killed else "default"
    async with running(name, preset, *options) as processes, AsyncExitStack() as stack:
        load = await loaded(name, [each.url for each in processes], stack, "--store" in options)
        async with asyncio.TaskGroup() as group:
            for number in range(KEYS):
                group.create_task(load.run(f"key-{number}"))
            await (kills(load, processes, killed) if killed else restarts(load, processes))
            load.over = True
    return load.counts


def main() -> int:
    """Run them."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SERVICES)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--no-restarts", action="store_true")
    given = parser.parse_args()
    is_good = True
    for name in SERVICES:
        if given.only not in (None, name):
            continue
        for killed in (given.kills,) if given.no_restarts else (0, given.kills):
            with TemporaryDirectory() as place:
                store = ("--store", f"sqlite:{Path(place) / 'store'}")
                options = store if killed and name == "documents" else ()
                found = asyncio.run(trial(name, *options, killed=killed))
            print(f"{name}, {'kills' if killed else 'restarts'}: {dict(found)}", flush=True)
            allowed = "losses" if killed and name in TELLING else None
            bad = {each: n for each, n in found.items() if each in BAD and n and each != allowed}
            if bad or not found["done"]:
                print(f"  which is not good: {bad}")
                is_good = False
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
