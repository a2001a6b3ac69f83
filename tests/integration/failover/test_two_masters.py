"""Two managers on two journals, as when somebody forgot --journal: no key has two owners, and an
operator decides which one goes on (P25).
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tenure import Owner
from tenure.cli.demo.ports import free_ports
from tests.integration.processes import ManagerProcess, manager, run
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio

KEYS = [f"key-{number}" for number in range(100)]
ERROR = "another journal has a living leader"
WAIT_SECONDS = 65
"""How long a journal waits before it grants what another may have granted: the longest hold."""


class Pair:
    """Two managers that name each other, each on a file of its own."""

    def __init__(self, directory: Path, *more: str) -> None:
        self.ports = free_ports(2)
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.files = [directory / f"{name}.sqlite" for name in "ab"]
        self.more = more

    def start(self, stack: ExitStack, which: int, *more: str) -> ManagerProcess:
        other = "--others", self.urls[1 - which]
        started = manager(
            *other,
            *self.more,
            *more,
            journal=self.files[which],
            preset="default",
            port=self.ports[which],
        )
        return stack.enter_context(started)

    def named(self) -> list[str]:
        return [word for url in self.urls for word in ("--manager", url)]


@asynccontextmanager
async def owners(urls: Sequence[str], count: int) -> AsyncIterator[list[Owner]]:
    """Owners that list the managers."""
    async with AsyncExitStack() as stack:
        made = [
            Owner(urls, pool="rooms", address=f"http://o{number}", enter_timeout=DEADLINE_SECONDS)
            for number in range(count)
        ]
        for each in made:
            await stack.enter_async_context(each)
        yield made


def owned(made: Sequence[Owner]) -> list[int]:
    """How many owners each key has."""
    return [sum(each.check(key) is not None for each in made) for key in KEYS]


def is_whole(made: Sequence[Owner]) -> bool:
    """Whether each key has its one owner."""
    return owned(made) == [1] * len(KEYS)


class Judge:
    """Counts the keys with two owners, again and again."""

    def __init__(self, made: Sequence[Owner]) -> None:
        self.made = made
        self.looks = self.twice = 0

    async def until(self, is_so: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, "it does not come about"
            self.look()
            await asyncio.sleep(0.02)

    async def for_seconds(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        await self.until(lambda: time.monotonic() >= end, seconds + 1)

    def look(self) -> None:
        self.looks += 1
        self.twice += sum(count > 1 for count in owned(self.made))


async def command(*arguments: str) -> str:
    done = await asyncio.to_thread(run, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_first_starts_of_two_journals_grant_nothing_until_an_operator_decides(
    tmp_path: Path,
) -> None:
    pair = Pair(tmp_path, "--first-start")
    with ExitStack() as stack:
        both = [pair.start(stack, which) for which in (0, 1)]
        # Before owners come: what one granted while the other did not lead yet would go on.
        await Judge([]).until(lambda: all(ERROR in each.log for each in both))
        async with owners(pair.urls, 3) as made:
            judge = Judge(made)
            await judge.for_seconds(3)
            assert max(owned(made)) == 0
            assert "TWO JOURNALS" in await command("status", *pair.named())
            doctor = await asyncio.to_thread(run, "doctor", *pair.named(), "--json")
            assert doctor.returncode == 1
            wrong = [each["check"] for each in json.loads(doctor.stdout) if each["way_out"]]
            assert wrong == ["one journal"] * 3
            await command("resolve", "--keep", pair.urls[1], *pair.named())
            await judge.until(partial(is_whole, made))
            assert judge.twice == 0
            status = json.loads(await command("status", *pair.named(), "--json"))
            a, b = (each["status"] for each in status["managers"])
            assert (a["is_over"], b["is_over"], b["rivals"]) == (True, False, [])
            await command("doctor", *pair.named())


async def test_journals_that_have_granted_stop_and_go_on_when_an_operator_decides(
    tmp_path: Path,
) -> None:
    pair = Pair(tmp_path)
    for which in (0, 1):
        with ExitStack() as stack:
            pair.start(stack, which, "--first-start")
            async with owners(pair.urls[which : which + 1], 1) as made:
                await Judge(made).until(partial(is_whole, made))
    with ExitStack() as stack:
        both = [pair.start(stack, 0)]
        # Beside a rival, none of the two would even number them, so they come first.
        async with owners(pair.urls, 3) as made:
            judge = Judge(made)
            both.append(await asyncio.to_thread(pair.start, stack, 1))
            await judge.until(lambda: all(ERROR in each.log for each in both))
            await judge.for_seconds(15)
            assert max(owned(made)) == 0
            await command("resolve", "--keep", pair.urls[0], *pair.named())
            began = time.monotonic()
            await judge.until(partial(is_whole, made), WAIT_SECONDS + 30)
            assert time.monotonic() - began >= WAIT_SECONDS - 5
            assert judge.twice == 0
