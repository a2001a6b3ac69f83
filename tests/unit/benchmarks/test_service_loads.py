"""Checkers of services under kills notice a loss of which nobody was told, and report no loss that
was told.

The services here are not ours: they speak the same HTTP, and lose what they are told to lose.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from time import time
from typing import Any, TypeAlias

import pytest
from aiohttp import web

from benchmarks import _service_loads
from benchmarks._service_loads import DocumentLoad, QueueLoad
from tenure.services.documents.client import DocumentsClient
from tenure.services.queues.client import QueuesClient, ReceivedEntry
from tests.patience import DEADLINE_SECONDS, until

pytestmark = pytest.mark.asyncio
MESSAGES = 30
Lose: TypeAlias = Callable[["QueueThatLoses", int], None]


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_service_loads, "PAUSE", 0.001)


class QueueThatLoses:
    """One queue. `lose` is called when a message is in it, and before it is acknowledged."""

    def __init__(self, lose: Lose, *, is_lost_at_last: bool = False) -> None:
        self.entries: list[dict[str, Any]] = []
        self.is_over = False
        self._lose = lose
        self._last = 0
        self._is_lost_at_last = is_lost_at_last
        self.tell()

    def tell(self) -> None:
        """Lose everything, and say so."""
        self.entries = []
        self._add(loss={"began": True})

    def _add(self, **what: object) -> int:
        self._last += 1
        self.entries.append({"number": self._last, "at": time(), **what})
        return self._last

    async def enqueue(self, request: web.Request) -> web.Response:
        message = (await request.json())["message"]
        number = self._add(message=message)
        self._lose(self, message)
        return web.json_response({"number": number, "is_repeat": False}, status=201)

    async def drain(self, _: web.Request) -> web.Response:
        shown = self.entries[:]
        if self._is_lost_at_last and self.is_over:
            self._is_lost_at_last, shown = False, []
            self.tell()
        elif self._is_lost_at_last:  # until then, it keeps the last ones back
            shown = [each for each in shown if each.get("message", 0) < MESSAGES - 5]
        if not shown:
            await asyncio.sleep(0.01)
        return web.json_response({"reader": "1.1", "entries": shown})

    async def acknowledge(self, request: web.Request) -> web.Response:
        upto = (await request.json())["number"]
        self.entries = [each for each in self.entries if each["number"] > upto]
        return web.json_response({})


async def counted(queue: QueueThatLoses) -> Counter[str]:
    """Use the queue, and return what is counted in that time."""
    app = web.Application()
    for name in ("drain", "acknowledge"):
        app.router.add_post(f"/queues/a/{name}", getattr(queue, name))
    app.router.add_post("/queues/a/entries", queue.enqueue)
    async with asyncio.timeout(DEADLINE_SECONDS), served(app) as url, QueuesClient(url) as client:
        load = QueueLoad(client)
        running = asyncio.create_task(load.run("a"))
        await until(lambda: load.counts["done"] >= MESSAGES)
        load.over = queue.is_over = True
        await running
    return load.counts


class served:  # noqa: N801  # as the services' own
    """An application at a free port."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def nothing(queue: QueueThatLoses, message: int) -> None: ...


def all_with_a_word(queue: QueueThatLoses, message: int) -> None:
    if message % 5 == 0:
        queue.tell()


def one_in_silence(queue: QueueThatLoses, message: int) -> None:
    if message == 5:
        del queue.entries[-1]


def one_more_in_silence(queue: QueueThatLoses, message: int) -> None:
    """The first message after a loss that is told: that loss says nothing of it."""
    if message == 5:
        queue.tell()
    if message == 6:
        del queue.entries[-1]


def the_last_in_silence(queue: QueueThatLoses, message: int) -> None:
    if message >= MESSAGES - 3:
        del queue.entries[-1]


def the_last_after_a_loss_in_silence(queue: QueueThatLoses, message: int) -> None:
    if message == MESSAGES - 3:
        queue.tell()
    if message > MESSAGES - 3:
        del queue.entries[-1]


@pytest.mark.parametrize(
    "lose",
    [
        one_in_silence,
        one_more_in_silence,
        the_last_in_silence,
        the_last_after_a_loss_in_silence,
    ],
)
async def test_a_message_that_is_lost_without_a_word_is_counted(lose: Lose) -> None:
    assert (await counted(QueueThatLoses(lose)))["silently lost"] >= 1


async def test_what_was_told_is_not_counted_as_silent() -> None:
    counts = await counted(QueueThatLoses(all_with_a_word))
    assert counts["losses"] >= 1  # one that comes before the last one was read takes its place
    assert counts["silently lost"] == counts["out of order"] == counts["again"] == 0


async def test_a_queue_that_loses_nothing_counts_nothing() -> None:
    counts = await counted(QueueThatLoses(nothing))
    assert {name for name, count in counts.items() if count} == {"done"}


async def test_a_queue_that_is_lost_while_it_is_drained_last_may_say_so_with_the_next_drain() -> (
    None
):
    """It answers nothing, because what it was about to answer is gone."""
    counts = await counted(QueueThatLoses(nothing, is_lost_at_last=True))
    assert counts["losses"] == 1
    assert counts["silently lost"] == 0


async def test_an_older_message_after_a_newer_one_is_counted() -> None:
    """This also counts a message that was acknowledged, and comes again."""
    counts = Counter[str]()
    load = QueueLoad(QueuesClient("http://127.0.0.1:1"))
    load.counts = counts
    received = _service_loads.QueueReceived(load)
    for number in (1, 3, 2):
        received.take(ReceivedEntry(number, time(), message=number))
    assert counts["out of order"] == 1
    received.acknowledged = 3
    received.take(ReceivedEntry(4, time(), message=3))
    assert counts["again"] == 1


class DocumentsThatForget:
    """Documents of which one update is acknowledged and forgotten."""

    def __init__(self, forgotten: int) -> None:
        self._forgotten = forgotten
        self._there: tuple[dict[str, Any], int] | None = None

    async def write(self, request: web.Request) -> web.Response:
        sections = (await request.json())["sections"]
        version = 1 if self._there is None else self._there[1] + 1
        if sections["n"] != self._forgotten:
            self._there = sections, version
        return web.json_response({"version": str(version), "expires": 0.0, "is_new": False})

    async def read(self, _: web.Request) -> web.Response:
        assert self._there is not None
        sections, version = self._there
        shown = {"version": str(version), "expires": 0.0, "sections": sections}
        return web.json_response(shown)


@pytest.mark.parametrize(("forgotten", "silent"), [(5, True), (0, False)])
async def test_an_update_that_is_acknowledged_and_forgotten_is_counted(
    forgotten: int,
    silent: bool,
) -> None:
    documents, app = DocumentsThatForget(forgotten), web.Application()
    app.router.add_get("/documents/a", documents.read)
    app.router.add_put("/documents/a", documents.write)
    async with asyncio.timeout(DEADLINE_SECONDS), served(app) as url, DocumentsClient(url) as asked:
        load = DocumentLoad(asked, has_store=True)
        running = asyncio.create_task(load.run("a"))
        await until(lambda: load.counts["done"] >= 10)
        load.over = True
        await running
    assert bool(load.counts["silently lost"]) is silent
