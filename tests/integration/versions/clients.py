"""Owners and lookups in processes of their own, of either release, and what they all see."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tenure import KeyRange
from tests.patience import DEADLINE_SECONDS, until
from tests.versions.client import KEYS
from tests.versions.old import HERE, Release, environment


def ranges(said: Iterable[tuple[str, str | None]]) -> list[KeyRange]:
    """Read what `in_hex` of a client has written."""
    return [
        KeyRange(bytes.fromhex(start), bytes.fromhex(end) if end else None) for start, end in said
    ]


class Client:
    """One owner and one lookup."""

    def __init__(self, address: str, process: asyncio.subprocess.Process) -> None:
        self.address = address
        self.process = process

    async def state(self) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(b"\n")
        async with asyncio.timeout(DEADLINE_SECONDS):
            line = await self.process.stdout.readline()
        assert line, f"{self.address} has ended"
        return dict(json.loads(line))


class Clients:
    """Clients that share the keys of one pool among them."""

    def __init__(self, managers: Sequence[str]) -> None:
        self.managers = managers
        self.clients: list[Client] = []
        self.numbers: dict[str, int] = {}
        """The lease number under which each key was last seen served."""
        self._settled: list[tuple[int, int]] = []
        """How many ranges each client had been told of as revoked and lost by then."""

    async def start(self, release: Release) -> None:
        """One client more."""
        address = f"http://client-{len(self.clients)}"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(HERE / "client.py"), release.package, address, *self.managers),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(release),
            limit=1 << 20,
        )
        self.clients.append(Client(address, process))

    async def share(self, leadership: int = 0) -> list[dict[str, Any]]:
        """Wait until the keys are shared under that leadership; return what each client says.

        Every client has keys, no two have the same, and every lookup finds every key where it is.
        """
        last: list[dict[str, Any]] = []

        async def is_so() -> bool:
            before = last[:]
            last[:] = await asyncio.gather(*(each.state() for each in self.clients))
            self._check_one_owner(before, last)
            return self._agree(last) and min(each["seen"] for each in last) >= leadership

        await until(is_so, f"the keys are shared under leadership {leadership}: {last}")
        return last

    @staticmethod
    def _check_one_owner(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> None:
        """Clients are asked at different instants, between which a key may move. A client that has
        it under the same number twice running has had it in between, while all the others were
        asked.
        """
        holders: dict[str, int] = {}
        for client, (earlier, later) in enumerate(zip(before, now, strict=False)):
            for key, number in later["leases"].items():
                if earlier["leases"].get(key) == number:
                    assert key not in holders, f"{key} has two owners: {holders[key]} and {client}"
                    holders[key] = client

    def _agree(self, states: Sequence[dict[str, Any]]) -> bool:
        holders: dict[str, str] = {}
        for client, said in zip(self.clients, states, strict=True):
            if not said["leases"] or not holders.keys().isdisjoint(said["leases"]):
                return False
            holders |= dict.fromkeys(said["leases"], client.address)
        return len(holders) == len(KEYS) and all(each["found"] == holders for each in states)

    async def grow(self, release: Release) -> None:
        """Start one more, and wait until it has its share; no number has gone back meanwhile."""
        await self.start(release)
        states = await self.share()
        self._settled = [(len(each["revoked"]), len(each["lost"])) for each in states]
        for said in states:
            for key, number in said["leases"].items():
                assert number >= self.numbers.get(key, 0), f"the number of {key} went back"
                self.numbers[key] = number

    async def check_undisturbed(self, leadership: int) -> None:
        """Check that under that leadership everything is as when it settled: nothing revoked,
        nothing lost.

        What the newest client has was revoked and lost when it came. A callback may say so after
        the keys are shared, because it waits for its turn; and a range without any of the keys
        may move after all that have some.
        """
        states = await self.share(leadership)
        moved = ranges(states[-1]["ranges"])
        for said, (revoked, lost) in zip(states, self._settled, strict=True):
            late = ranges([*said["revoked"][revoked:], *said["lost"][lost:]])
            strange = [str(one) for one in late if not any(it.covers(one) for it in moved)]
            assert not strange, f"revoked or lost after all had settled: {strange}"
        numbers: dict[str, int] = {}
        for said in states:
            numbers |= said["leases"]
        assert numbers == self.numbers

    async def stop(self) -> None:
        for each in self.clients:
            assert each.process.stdin
            each.process.stdin.close()
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                codes = [await each.process.wait() for each in self.clients]
        finally:
            for each in self.clients:
                if each.process.returncode is None:
                    each.process.kill()
        assert codes == [0] * len(codes)


@asynccontextmanager
async def clients_of(managers: Sequence[str], *releases: Release) -> AsyncIterator[Clients]:
    """Yield one client of each of these releases, which share the keys."""
    made = Clients(managers)
    try:
        for each in releases:
            await made.grow(each)
        yield made
    finally:
        await made.stop()
