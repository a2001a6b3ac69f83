"""Gateways follow each other, and pass on what is open: no socket closes, no frame is missing."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tenure.gateway.passed_connection import MOST_AT_ONCE
from tenure.gateway.passing import LENGTH_BYTES
from tenure.gateway.take_over import SERVES, TAKES
from tests.integration.gateway.house import House, house
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
ROOMS, PEOPLE = 5, 4
"""In each room there are so many people."""
ON_THE_WAY = 3
"""How many lines of each are on the way at a time."""


class Person:
    """Speaks again and again, and notes what it hears."""

    def __init__(self, name: str, socket: ClientConnection) -> None:
        self.name = name
        self._socket = socket
        self._said = 0
        self._may_speak = asyncio.Semaphore(ON_THE_WAY)
        self._is_over = False
        self.heard: list[str] = []
        self.hears = asyncio.Event()

    async def speak(self) -> None:
        while True:
            await self._may_speak.acquire()
            if self._is_over:
                return
            self._said += 1
            await self._socket.send(f"{self._said}")

    async def listen(self) -> None:
        async for text in self._socket:
            self.heard.append(str(text))
            self.hears.set()
            if f" {self.name}: " in str(text):
                self._may_speak.release()

    def be_silent(self) -> None:
        self._is_over = True

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self.hears.clear()
                await self.hears.wait()

    @property
    def own(self) -> list[int]:
        """What it has heard of itself."""
        said = (each.partition(" ")[2] for each in self.heard)
        return [int(each.split(": ")[1]) for each in said if each.startswith(f"{self.name}:")]

    def check(self) -> None:
        """Each frame has come once, in order, both ways."""
        numbers = [int(each.partition(" ")[0]) for each in self.heard]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert self.own == list(range(1, self._said + 1))

    async def until_all(self) -> None:
        """Wait until it has heard all that it has said."""
        await self.until(lambda: len(self.own) == self._said)


@asynccontextmanager
async def people(it: House) -> AsyncIterator[list[Person]]:
    """People in rooms, who talk until the block ends; then everybody has heard everything."""
    url = it.gateway.url.replace("http", "ws")
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        found = []
        for n in range(ROOMS * PEOPLE):
            path = f"{url}/rooms/room-{n % ROOMS}/p{n}"
            opening = connect(path, open_timeout=DEADLINE_SECONDS, compression=None)
            found.append(Person(f"p{n}", await stack.enter_async_context(opening)))
        listening = [group.create_task(each.listen()) for each in found]
        speaking = [group.create_task(each.speak()) for each in found]
        yield found
        for each in found:
            each.be_silent()
        await asyncio.gather(*speaking)
        for each in found:
            await each.until_all()
        for task in listening:
            assert not task.done(), "the socket is open"
            task.cancel()


async def until_heard(those: list[Person], more: int) -> None:
    """Wait until each has heard so many lines more."""

    async def of_one(one: Person, wanted: int) -> None:
        await one.until(lambda: len(one.heard) >= wanted)

    await asyncio.gather(*(of_one(each, len(each.heard) + more) for each in those))


@asynccontextmanager
async def talking(tmp_path: Path) -> AsyncIterator[tuple[House, list[Person]]]:
    """People in a house with two workers. In the end no frame has been missing."""
    with house(f"--take-over={tmp_path / 'socket'}") as it:
        await asyncio.to_thread(it.worker, it.port)
        await asyncio.to_thread(it.worker)
        async with people(it) as those:
            await until_heard(those, 5)
            yield it, those
            await until_heard(those, 5)
        for each in those:
            each.check()


async def followed(it: House) -> None:
    """Another gateway follows."""
    before, it.gateway = it.gateway, await asyncio.to_thread(it.another_gateway)
    assert await asyncio.to_thread(before.process.wait, DEADLINE_SECONDS) == 0


async def echoed(it: House, ends: asyncio.Event) -> int:
    """Talk over a socket of the application's own; each text comes back once, in order."""
    count = 0
    url = f"{it.gateway.url.replace('http', 'ws')}/echo"
    async with connect(url, subprotocols=[Subprotocol("chat")]) as own:
        while not ends.is_set():
            texts = [f"{count} {n} " + "x" * 1000 * n for n in range(ON_THE_WAY)]
            for each in texts:
                await own.send(each)
            async with asyncio.timeout(DEADLINE_SECONDS):
                assert [await own.recv() for _ in texts] == texts
            count += 1
    return count


async def test_sockets_go_on_through_take_overs_and_miss_no_frame(tmp_path: Path) -> None:
    """Those of entities, and those that end in a worker."""
    ends = asyncio.Event()
    async with talking(tmp_path) as (it, those), asyncio.TaskGroup() as group:
        echoes = [group.create_task(echoed(it, ends)) for _ in range(3)]
        for _ in range(3):
            await until_heard(those, 5)
            await followed(it)
        await until_heard(those, 5)
        ends.set()
    assert min(each.result() for each in echoes) > 1


def _fails(path: Path, point: str) -> None:
    """A successor that ends there: when all listens, when it serves, when it has the first bytes
    about clients, or all of them, and has not said so.
    """
    with socket.socket(socket.AF_UNIX) as it:
        it.settimeout(DEADLINE_SECONDS)
        it.connect(str(path))
        _close(socket.recv_fds(it, 4096, 8)[1])
        if point == "listens":
            return
        it.sendall(SERVES + TAKES)
        if point == "serves":
            return
        head, handles, _, _ = socket.recv_fds(it, LENGTH_BYTES, MOST_AT_ONCE)
        assert len(handles) == ROOMS * PEOPLE
        if point == "has all":
            size = int.from_bytes(head, "big")
            assert len(it.recv(size, socket.MSG_WAITALL)) == size
        _close(handles)


def _close(handles: list[int]) -> None:
    for each in handles:
        socket.socket(fileno=each).close()


@pytest.mark.parametrize("point", ["listens", "serves", "has some", "has all"])
async def test_a_successor_that_ends_in_the_middle_costs_nobody_a_frame(
    tmp_path: Path, point: str
) -> None:
    async with talking(tmp_path) as (it, those):
        for _ in range(2):
            await asyncio.to_thread(_fails, tmp_path / "socket", point)
            await asyncio.to_thread(it.gateway.until_logged, "this gateway goes on")
            await until_heard(those, 5)
        await followed(it)
