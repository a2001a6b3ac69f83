"""Documents are read at every process while they move, while owners and readers die or are cut off:
never older than an answer that was sent before the reading began.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from time import monotonic

import aiohttp
import pytest

from lab.demo.mesh.service_processes import ServiceProcess
from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tests.integration.failover.four_processes import FourProcesses, four_processes
from tests.patience import until

pytestmark = pytest.mark.asyncio
KEYS = [f"score-{n}" for n in range(6)]
SECTION = "amount"
WITHIN_SECONDS = 2.0
GONE = 404
LOST = -1
"""What is read where there is nothing."""


class Scores:
    """One writer for each document, and one reader at each process."""

    def __init__(
        self, there: FourProcesses, writer: DocumentsClient, clients: list[DocumentsClient]
    ) -> None:
        self.readings: Counter[DocumentsClient] = Counter()
        self.writings: Counter[str] = Counter()
        self.may_be_lost = False
        self._there = there
        self._writer = writer
        self._clients = clients
        self._written: dict[str, int] = {}
        """The last number of each document that was answered."""

    async def write(self, key: str) -> None:
        """Each number until it is answered: an attempt that was given up might come later."""
        for number in count():
            await self._writer.write_section(key, SECTION, number)
            self._writer.go_on()
            self._written[key] = number
            self.writings[key] += 1

    async def read(self, client: DocumentsClient) -> None:
        while True:
            for key in KEYS:
                before = self._written.get(key, LOST)
                try:
                    found = await self._value(client, key)
                except OutcomeUnknown:
                    continue
                if found is LOST and self.may_be_lost:
                    continue
                assert found >= before, f"{key} was {before} before, and {found} was read"
                self.readings[client] += 1

    async def _value(self, client: DocumentsClient, key: str) -> int:
        try:
            found: int = await client.read_section(key, SECTION, deadline=WITHIN_SECONDS)
        except ServiceRefusal as refused:
            if refused.status == GONE:
                return LOST
            raise
        return found

    async def go_on(self) -> None:
        """Each document is written, and each process that lives reads, a few times more."""
        written, read = dict(self.writings), dict(self.readings)

        def has_gone_on() -> bool:
            living = [
                each
                for each, process in zip(self._clients, self._there.processes.values(), strict=True)
                if process.process.returncode is None
            ]
            return all(self.writings[key] > written.get(key, 0) + 5 for key in KEYS) and all(
                self.readings[each] > read.get(each, 0) + 5 * len(KEYS) for each in living
            )

        await until(has_gone_on, "all documents are written and read")


@asynccontextmanager
async def scores(there: FourProcesses) -> AsyncIterator[Scores]:
    async with AsyncExitStack() as stack:
        urls = [each.url for each in there.processes.values()]
        writer, *clients = [
            await stack.enter_async_context(DocumentsClient(each)) for each in (urls, *urls)
        ]
        found = Scores(there, writer, clients)
        async with asyncio.TaskGroup() as tasks:
            work = [*map(found.write, KEYS), *map(found.read, clients)]
            running = [tasks.create_task(each) for each in work]
            await found.go_on()
            yield found
            for each in running:
                each.cancel()


def as_before(number: int) -> tuple[str, ...]:
    """Two of the four processes read as those of the release before do, which knew no copies."""
    return ("--reads", "owner") if number % 2 else ()


def everywhere(_: int) -> tuple[str, ...]:
    return ()


@pytest.mark.parametrize(
    ("has_store", "each"), [(False, everywhere), (True, everywhere), (True, as_before)]
)
async def test_no_process_reads_older_than_an_answer_over_moves_and_the_death_of_an_owner(
    tmp_path: Path, *, has_store: bool, each: Callable[[int], tuple[str, ...]]
) -> None:
    store = ("--store", f"sqlite:{tmp_path / 'store'}") if has_store else ()
    async with four_processes("documents", *store, each=each) as there, scores(there) as written:
        leaving = there.processes[there.owner(KEYS[0])]
        await leaving.leave()
        await written.go_on()
        await leaving.start()
        await there.each_has_ranges()
        await written.go_on()
        written.may_be_lost = not has_store
        await there.processes[there.owner(KEYS[1])].kill()
        await written.go_on()


async def owned_by(there: FourProcesses, key: str) -> tuple[ServiceProcess, list[ServiceProcess]]:
    return there.processes[there.owner(key)], there.others(key)


async def until_read(process: ServiceProcess, key: str, value: object) -> None:
    async with DocumentsClient(process.url) as client:
        for _ in range(20):  # the first readings ask the owner for a copy
            assert await client.read_section(key, SECTION) == value


async def test_a_process_that_was_stopped_with_a_copy_does_not_read_it_when_it_wakes_up() -> None:
    async with four_processes("documents") as there, aiohttp.ClientSession() as session:
        owner, (reader, writer, _) = await owned_by(there, "d")
        async with DocumentsClient(writer.url) as client:
            await client.write_section("d", SECTION, 1)
            await until_read(reader, "d", 1)
            reader.stop()
            try:
                asking = asyncio.ensure_future(
                    session.get(f"{reader.url}/documents/d/sections/{SECTION}")
                )
                await client.write_section("d", SECTION, 2)
            finally:
                reader.wake()
            async with await asking as answer:
                assert (answer.status, await answer.json()) == (200, 2)
        assert owner.process.returncode is None


async def test_while_the_owner_is_cut_off_readings_are_refused_or_told_what_was_known() -> None:
    """Every second process allows an old state."""

    def said(number: int) -> tuple[str, ...]:
        return ("--stale-after", "60") if number % 2 else ()

    async with (
        four_processes("documents", each=said, preset="paper") as there,
        aiohttp.ClientSession() as session,
    ):
        allowing = [each for n, each in enumerate(there.processes.values()) if n % 2]
        key = next(k for k in map(str, range(1000)) if there.processes[there.owner(k)] in allowing)
        owner, others = await owned_by(there, key)
        [allows] = [each for each in others if each in allowing]
        strict = next(each for each in others if each not in allowing)
        async with DocumentsClient(allows.url) as client:
            await client.write_section(key, SECTION, 1)
        for each in (allows, strict):
            await until_read(each, key, 1)
        owner.stop()
        try:
            cut = monotonic()
            paths = [f"{each.url}/documents/{key}/sections/{SECTION}" for each in (allows, strict)]

            async def is_refused() -> bool:
                async with session.get(paths[1]) as answer:
                    problem = await answer.json()
                    return answer.status == 503 and problem["error"] == "Unreachable"

            await until(is_refused, "the copy may not be read any longer")
            assert monotonic() - cut < 30, "the owner's keys have not been given to another yet"
            async with session.get(paths[0]) as answer:
                assert (answer.status, await answer.json()) == (200, 1)
        finally:
            owner.wake()
