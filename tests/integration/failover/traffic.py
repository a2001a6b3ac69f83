"""Owners and a lookup under a steady load, with a record of what was served to judge them by.

They are the library's own, in the test's process. A request goes where `Lookup.find` says, and is
done under one lease: check, some work, holds. What was done is put down as in the demo, and judged
by the demo's judge. Beside that, the lease number of a key may never go back, and while nothing was
lost it may not change at all.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

import pytest

from tenure import KeyRange, Lookup, Owner
from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.judge import RecordJudge
from tenure.cli.demo.record import Served
from tenure.protocol.balance.load import share_of
from tenure.protocol.lease.timing import Timing
from tenure.runtime.clock import boot_clock
from tests.patience import until

POOL = "rooms"
KEYS = tuple(f"room-{n}" for n in range(60))
STREAMS = 4
WORK_SECONDS = 0.002
PAUSE_SECONDS = 0.01
"""The pause between two attempts of a request."""
HOLDS_IN_A_DEADLINE = 2
"""A deadline as in the demo: a request that takes longer has failed."""
UNANSWERED_NS = seconds(0.8)


class Traffic:
    """All clients of one service."""

    def __init__(self, managers: str | Sequence[str], timing: Timing) -> None:
        self.managers = managers
        self.timing = timing
        self.owners: dict[str, Owner] = {}
        self.judge = RecordJudge()
        self.requests = 0
        self.failed = 0
        self.interrupted = 0
        """Reachability that found no owner, no lease, or a lease that ended meanwhile."""
        self.lost: list[KeyRange] = []
        self.revoked: list[KeyRange] = []
        self.slowest_ns = 0
        self.went_back: list[str] = []
        self._numbers: dict[str, int] = {}
        self._settled_numbers: dict[str, int] = {}
        self._names = count(1)
        self._stack = AsyncExitStack()
        self._streams: list[asyncio.Task[None]] = []
        self.lookup = Lookup(self.managers, pool=POOL, on_loss=self.lost.extend)

    # --- clients ---

    async def start(self, owners: int) -> None:
        """Start owners that share all keys, and send requests."""
        await asyncio.gather(*(self.join() for _ in range(owners)))
        await self._stack.enter_async_context(self.lookup)
        await until(self.is_settled, "the owners share the keys, and the lookup knows")
        self._streams = [
            asyncio.create_task(self._stream(KEYS[n::STREAMS])) for n in range(STREAMS)
        ]
        await self.have_served()
        self.settle()

    async def join(self) -> Owner:
        """One owner more."""
        address = f"http://owner-{next(self._names)}"
        owner = Owner(self.managers, pool=POOL, address=address, on_revoke=self.revoked.extend)
        self.owners[address] = owner
        return await self._stack.enter_async_context(owner)

    async def is_settled(self) -> bool:
        """Whether every owner has its share, all keys have an owner, and the lookup knows it.

        Owners share the load, and few keys are asked for here. What is even by load may be a
        twentieth of the space for one of four.
        """
        table = self.lookup.table()
        held = {each: sum(map(share_of, it.ranges)) for each, it in self.owners.items()}
        known = {each: sum(share_of(part) for part, it in table if it == each) for each in held}
        is_told = all(it for _, it in table) and held == pytest.approx(known)
        return is_told and min(held.values()) > 1 / (12 * len(held))

    def settle(self) -> None:
        """Begin to count again: from here on nothing may be lost."""
        self.failed = self.interrupted = self.slowest_ns = 0
        self.lost.clear()
        self.revoked.clear()
        self._settled_numbers = dict(self._numbers)

    def abandon(self) -> None:
        """No manager is left to which owners could return their ranges: let those lapse now."""
        for owner in self.owners.values():
            owner._engine.on_reader_lapsed()

    async def stop(self) -> None:
        for stream in self._streams:
            stream.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)
        await self._stack.aclose()

    # --- requests ---

    async def _stream(self, keys: Sequence[str]) -> None:
        while True:
            for key in keys:
                await self._request(key)

    async def _request(self, key: str) -> None:
        began = boot_clock()
        deadline = began + HOLDS_IN_A_DEADLINE * self.timing.hold_ns
        while not await self._attempt(key):
            self.interrupted += 1
            if boot_clock() > deadline:
                self.failed += 1
                return
            await asyncio.sleep(PAUSE_SECONDS)
        self.requests += 1
        self.slowest_ns = max(self.slowest_ns, boot_clock() - began)

    async def _attempt(self, key: str) -> bool:
        address = self.lookup.find(key)
        owner = self.owners[address] if address else None
        lease = owner.check(key) if owner else None
        if owner is None or lease is None:
            return False
        began = boot_clock()
        await asyncio.sleep(WORK_SECONDS)
        ended = boot_clock()
        if not owner.holds(lease):
            return False
        self.judge.add(Served(owner.name, lease.key, lease.number, began, ended))
        if lease.number < self._numbers.get(key, 0):
            self.went_back.append(f"{key}: {lease.number} after {self._numbers[key]}")
        self._numbers[key] = lease.number
        return True

    # --- what is waited for ---

    async def have_served(self) -> None:
        """Every key was served once more from now on."""
        wanted = self.requests + 2 * len(KEYS)

        async def is_so() -> bool:
            return self.requests >= wanted

        await until(is_so, "requests are served")

    async def renewed(self, since: Instant, leadership: int = 0) -> None:
        """Every owner asked after `since` and was renewed, by this leadership or a later one.

        And the lookup was answered by it.
        """

        async def is_so() -> bool:
            return self.lookup._engine.machine.view().leadership >= leadership and all(
                owner._engine.machine.view().leadership >= leadership
                and owner._board.current.expires_at - self.timing.term_ns > since
                for owner in self.owners.values()
            )

        await until(is_so, f"all are renewed by leadership {leadership}")

    async def is_left_alone(self) -> None:
        """Some owner has asked, and was not answered for longer than any answer takes."""

        async def is_so() -> bool:
            asked = [owner._engine.machine.unanswered_since for owner in self.owners.values()]
            return any(at is not None and boot_clock() - at > UNANSWERED_NS for at in asked)

        await until(is_so, "an owner is not answered")

    @property
    def leadership(self) -> int:
        """The highest leadership that any client has seen."""
        machines = [owner._engine.machine for owner in self.owners.values()]
        return max(machine.leadership for machine in machines)

    # --- what must be so ---

    def check_safe(self) -> None:
        """Check what must hold under every fault: no key had two owners, and no lease number went
        back.
        """
        assert list(map(str, self.judge.found)) == []
        assert self.went_back == []

    def check_unharmed(self) -> None:
        """Check that it is safe, and that nothing was or seemed lost or refused since `settle`."""
        self.check_safe()
        assert self.lost == []
        assert self.revoked == []
        assert (self.failed, self.interrupted) == (0, 0)
        assert self._numbers == self._settled_numbers

    async def newcomer(self) -> None:
        """One owner more gets its share: the leader grants, so the journal takes records."""
        await self.join()
        await until(self.is_settled, "the newcomer has its share")
        await self.have_served()
        self.check_safe()

    @property
    def slowest_seconds(self) -> float:
        """The longest that a request took."""
        return in_seconds(self.slowest_ns)


@asynccontextmanager
async def traffic(
    managers: str | Sequence[str], timing: Timing, owners: int = 3
) -> AsyncIterator[Traffic]:
    """Traffic that is settled, and gone at the end."""
    made = Traffic(managers, timing)
    try:
        await made.start(owners)
        yield made
    finally:
        await made.stop()
