"""Gateways follow each other, and pass on what is open: no socket closes, no frame is missing."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tenure.gateway.passed_connection import MOST_AT_ONCE
from tenure.gateway.passing import LENGTH
from tenure.gateway.take_over import SERVES, TAKES
from tests.integration.gateway.house import House, house
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
ROOMS, PEOPLE = 5, 4
"""In each room there are so many people."""
EACH_SECONDS = 0.02


class Person:
    """Speaks again and again, and notes what it hears."""

    def __init__(self, name: str, socket: ClientConnection) -> None:
        self.name = name
        self._socket = socket
        self._said = 0
        self.heard: list[str] = []
        self._is_over = False

    async def speak(self) -> None:
        while not self._is_over:
            self._said += 1
            await self._socket.send(f"{self._said}")
            await asyncio.sleep(EACH_SECONDS)

    async def listen(self) -> None:
        async for text in self._socket:
            self.heard.append(str(text))

    def be_silent(self) -> None:
        self._is_over = True

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

    @property
    def has_all(self) -> bool:
        return len(self.own) == self._said


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
        await until(lambda: all(each.has_all for each in found))
        for task in listening:
            assert not task.done(), "the socket is open"
            task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110  # what people hear sets no event
            await asyncio.sleep(EACH_SECONDS)


async def until_heard(those: list[Person], more: int) -> None:
    """Wait until each has heard so many lines more."""
    wanted = [len(each.heard) + more for each in those]
    await until(lambda: all(len(x.heard) >= n for x, n in zip(those, wanted, strict=True)))


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


async def test_sockets_go_on_through_take_overs_and_miss_no_frame(tmp_path: Path) -> None:
    async with talking(tmp_path) as (it, those):
        for _ in range(3):
            await followed(it)
            await until_heard(those, 5)


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
        head, handles, _, _ = socket.recv_fds(it, LENGTH.size, MOST_AT_ONCE)
        assert len(handles) == ROOMS * PEOPLE
        if point == "has all":
            [size] = LENGTH.unpack(head)
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
