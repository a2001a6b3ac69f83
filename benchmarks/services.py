"""Services under restarts and kills: what their clients notice.

Four processes of a service, under load from this one. First they are restarted in turn, each
successor started when its predecessor has handed over and ended, until all requests are sent: no
request may fail, and no loss may be told. Then processes are killed at random instants, one by one,
and each starts anew: an acknowledged update of a document with a store may not be forgotten; what
was put into a queue arrives in order, or a loss is told in its place.

`--only NAME` is for one service, `--kills N` for another number of kills.
"""

import asyncio
import sys
from argparse import ArgumentParser
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

from benchmarks._quick import sized
from tenure.cli.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports
from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tenure.services.queues.client import QueueReader, QueuesClient

PROCESSES = 4
KILLS = sized(50, 1)
RESTART_SECONDS = sized(60, 5)
KEYS = 16
PAUSE = 0.02
DEADLINE = 60.0
NOT_FOUND = 404
BAD = ("failed", "losses", "again", "out of order", "silently lost")


class Load:
    """Clients of one service, and what became of what they did."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.over = False

    def fail(self, error: Exception) -> None:
        self.counts["failed"] += 1
        print(f"  failed: {error!r:.300}", flush=True)


class DocumentLoad(Load):
    """Each key has one writer, which makes every update depend on the version that it knows."""

    def __init__(self, client: DocumentsClient, *, has_store: bool) -> None:
        super().__init__()
        self.client = client
        self.has_store = has_store

    async def run(self, key: str) -> None:
        sent, version = 0, ""
        while not self.over:
            try:
                if version:
                    found = await self.client.read(key)
                    if (found.sections, found.version) != ({"n": sent}, version):
                        self.counts["silently lost"] += 1
                        print(f"  {key} is {found}, and {sent} at {version} was acknowledged")
                sent += 1
                body = {"n": sent}
                version = (await self.client.write(key, body, if_version=version)).version
                self.counts["done"] += 1
            except OutcomeUnknown as error:
                self.fail(error)
                sent, version = 0, await self._begin_again(key)
            except ServiceRefusal as error:
                if error.status == NOT_FOUND and not self.has_store:
                    self.counts["losses"] += 1
                else:
                    self.fail(error)
                sent, version = 0, await self._begin_again(key)
            await asyncio.sleep(PAUSE)

    async def _begin_again(self, key: str) -> str:
        while True:
            try:
                await self.client.delete(key)
            except ServiceRefusal:
                return ""
            except OutcomeUnknown as error:
                self.fail(error)


class QueueLoad(Load):
    """Each queue has one writer, which counts, and one reader, which looks for gaps."""

    def __init__(self, client: QueuesClient) -> None:
        super().__init__()
        self.client = client

    async def run(self, key: str) -> None:
        """Write and read, until all is read."""
        reader = self.client.reader(key)
        (first,) = await reader.next(wait=0)
        await reader.acknowledge(first.number)
        pending: deque[int] = deque()
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(self._write(key, pending))
            group.create_task(self._read(reader, writing, pending))

    async def _write(self, key: str, pending: deque[int]) -> None:
        for number in count(1):
            if self.over:
                return
            try:
                await self.client.enqueue(key, number)
                pending.append(number)
                self.counts["done"] += 1
            except ServiceRefusal as error:
                if error.status != NOT_FOUND:  # it was lost, and its reader begins it anew
                    self.fail(error)
            except OutcomeUnknown as error:
                self.fail(error)
            await asyncio.sleep(PAUSE)

    async def _read(
        self, reader: QueueReader, writing: "asyncio.Task[None]", pending: deque[int]
    ) -> None:
        received, acknowledged, was_told = 0, 0, False
        while True:
            was_over = writing.done()
            try:
                entries = await reader.next(wait=1.0)
                for each in entries:
                    if each.loss is not None:
                        self.counts["losses"] += 1
                        was_told = True
                        continue
                    self.counts["again"] += each.message <= acknowledged
                    self.counts["out of order"] += acknowledged < each.message < received
                    received = max(received, each.message)
                    missed = self._missed(pending, each.message)
                    self.counts["silently lost"] += 0 if was_told else missed
                    was_told = False
                if entries:
                    await reader.acknowledge(entries[-1].number)
                    acknowledged = received
                elif was_over:
                    self.counts["silently lost"] += 0 if was_told else len(pending)
                    return
            except (ServiceRefusal, OutcomeUnknown) as error:
                self.fail(error)

    @staticmethod
    def _missed(pending: deque[int], number: int) -> int:
        """Of what was acknowledged to the writer, what should have come before this."""
        missed = 0
        while pending and pending[0] <= number:
            missed += pending.popleft() < number
        return missed


@asynccontextmanager
async def running(name: str, *options: str) -> AsyncIterator[list[ServiceProcess]]:
    """A manager, and four processes of the service."""
    manager = ServiceProcess(
        "manager",
        ("manager", "--port", "0", "--journal", "memory", "--first-start", "--log-level", "error"),
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(manager.end)
        url = await manager.start()
        serve = ("serve", name, "--manager", url, *options)
        processes = []
        for number, port in enumerate(free_ports(PROCESSES)):
            each = ServiceProcess(f"{name}-{number}", (*serve, "--listen", f"127.0.0.1:{port}"))
            stack.push_async_callback(each.end)
            await each.start()
            processes.append(each)
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
    """At random instants, each of which meets something under way."""
    random = Random(1)
    for _ in range(most):
        await asyncio.sleep(0.5 + 2 * random.random())
        each = random.choice(processes)
        await each.kill()
        await asyncio.sleep(2 * random.random())
        await each.start()
        load.counts["kills"] += 1
    await asyncio.sleep(3.0)


async def trial(name: str, *options: str, killed: int) -> Counter[str]:
    """One service, one kind of end; what was counted."""
    async with running(name, *options) as processes, AsyncExitStack() as stack:
        urls = [each.url for each in processes]
        load: Load
        if name == "documents":
            documents = await stack.enter_async_context(DocumentsClient(urls, deadline=DEADLINE))
            load = DocumentLoad(documents, has_store=bool(options))
        else:
            queues = await stack.enter_async_context(QueuesClient(urls, deadline=DEADLINE))
            load = QueueLoad(queues)
        async with asyncio.TaskGroup() as group:
            for number in range(KEYS):
                group.create_task(load.run(f"key-{number}"))
            await (kills(load, processes, killed) if killed else restarts(load, processes))
            load.over = True
    return load.counts


def main() -> int:
    """Run them."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("documents", "queues"))
    parser.add_argument("--kills", type=int, default=KILLS)
    given = parser.parse_args()
    is_good = True
    for name in ("documents", "queues"):
        if given.only not in (None, name):
            continue
        for killed in (0, given.kills):
            with TemporaryDirectory() as place:
                store = ("--store", f"sqlite:{Path(place) / 'store'}")
                options = store if killed and name == "documents" else ()
                found = asyncio.run(trial(name, *options, killed=killed))
            print(f"{name}, {'kills' if killed else 'restarts'}: {dict(found)}", flush=True)
            allowed = "losses" if killed and name == "queues" else None
            bad = {each: n for each, n in found.items() if each in BAD and n and each != allowed}
            if bad or not found["done"]:
                print(f"  which is not good: {bad}")
                is_good = False
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
