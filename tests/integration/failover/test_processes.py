"""Owners and lookups as processes, killed and stopped like any other."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tenure.base.instants import in_seconds
from tests.integration.failover.stage import Stage, on_sqlite
from tests.integration.failover.traffic import KEYS
from tests.patience import until

pytestmark = pytest.mark.asyncio
LONG, SHORT = "60", "1"
"""How many seconds an owner tries to enter."""


class Client:
    """One of them, from outside."""

    def __init__(self, stage: Stage, role: str, *arguments: str) -> None:
        program = [sys.executable, "-m", "tests.integration.failover.client", role]
        self.process = subprocess.Popen(
            [*program, stage.urls[0], *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stage.stack.callback(self._clean_up)

    async def says(self) -> Any:  # noqa: ANN401  # each test knows its type
        """The next line that it prints."""
        assert self.process.stdout
        return json.loads(await asyncio.to_thread(self.process.stdout.readline) or "null")

    async def asked(self) -> Any:  # noqa: ANN401
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return await self.says()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def _clean_up(self) -> None:
        self.process.kill()
        self.process.communicate()


async def ready(stage: Stage, role: str, *arguments: str) -> Client:
    made = Client(stage, role, *arguments)
    assert await made.says() == "ready"
    return made


async def all_found_at(lookup: Client, owners: set[str]) -> None:
    async def is_so() -> bool:
        found = (await lookup.asked())["found"]
        return set(found.values()) == owners

    await until(is_so, f"all keys are found at {sorted(owners)}")


@asynccontextmanager
async def staged(directory: Path, preset: str = "default") -> AsyncIterator[Stage]:
    async with on_sqlite(directory, preset=preset, managers=1) as stage:
        yield stage


async def test_a_lookup_process_is_told_of_an_owner_process_that_is_killed(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        owners = {name: await ready(stage, "owner", name, "host", LONG) for name in ("ann", "bob")}
        lookup = await ready(stage, "lookup")
        await all_found_at(lookup, {"http://ann.host", "http://bob.host"})
        before = (await lookup.asked())["lost"]  # more than 0 where a busy machine stopped an owner
        owners["ann"].send(signal.SIGKILL)
        await all_found_at(lookup, {"http://bob.host"})

        async def is_told() -> bool:
            return bool((await lookup.asked())["lost"] > before)

        await until(is_told, "the loss is signalled")  # once `find` knows the new places
        assert set(await owners["bob"].asked()) == set(KEYS)


async def test_a_lookup_process_that_was_stopped_routes_again(tmp_path: Path) -> None:
    """Stopped for longer than its contact, in a pool in which nothing moves."""
    async with staged(tmp_path, "test") as stage:
        await ready(stage, "owner", "ann", "host", LONG)
        lookup = await ready(stage, "lookup")
        await all_found_at(lookup, {"http://ann.host"})
        lookup.send(signal.SIGSTOP)
        await asyncio.sleep(in_seconds(3 * stage.timing.contact_ns))
        lookup.send(signal.SIGCONT)
        await all_found_at(lookup, {"http://ann.host"})


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
async def test_one_name_on_two_hosts_is_one_owner_at_a_time(
    tmp_path: Path, fault: signal.Signals
) -> None:
    """P8: the second waits for the hold of the first, which nobody on its host can see is dead."""
    async with staged(tmp_path) as stage:
        first = await ready(stage, "owner", "ann", "here", LONG)

        async def has_all() -> bool:
            return set(await first.asked()) == set(KEYS)

        await until(has_all, "the first holds every key")
        held = await first.asked()
        assert str(await Client(stage, "owner", "ann", "there", SHORT).says()).startswith("held: ")
        assert await first.asked() == held

        first.send(fault)
        ended = monotonic()
        second = await ready(stage, "owner", "ann", "there", LONG)
        waited = monotonic() - ended
        assert waited > in_seconds(stage.timing.term_ns - stage.timing.renew_ns) - 0.1

        async def has_them() -> bool:
            return set(await second.asked()) == set(KEYS)

        await until(has_them, "the second holds every key")
        now = await second.asked()
        assert all(now[key] > held[key] for key in KEYS)
        if fault is signal.SIGSTOP:
            first.send(signal.SIGCONT)
            assert await first.asked() == {}
            assert await second.asked() == now
