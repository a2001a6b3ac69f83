"""Owners with state in one cluster, a lookup that hears of losses, and writers meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import pytest

from tenure import Granted, KeyedState, KeyRange, Owner
from tenure.base.instants import in_seconds
from tenure.client.guard import Guards
from tenure.client.hand_off.handler import Exported, Mark
from tenure.client.holdings import Board
from tenure.protocol.lease.answers import PlanRead
from tenure.protocol.lease.steering_events import ChoosePolicy, ReadPlan
from tenure.runtime.clock import boot_clock
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster

T = TypeVar("T")

KEYS = 300
STEP = 0.02
TURNS = 600


def guards() -> Guards:
    """Return the guards of an owner that holds nothing."""
    board = Board("hashed", boot_clock)
    return Guards(board, boot_clock, "an owner", lambda _: None)


class State(KeyedState[int]):
    """State as users have it; it also remembers what was asked of it, and may fail, or be slow."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails: set[str] = set()
        self.is_slow = False
        self.gate = asyncio.Event()
        """Imports wait for it."""
        self.gate.set()

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fails:
            raise ZeroDivisionError(name)

    def export_range(self, key_range: KeyRange, since: Mark | None) -> Exported:
        self._called("export_range")
        return super().export_range(key_range, since)

    async def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:  # type: ignore[override]
        await self.gate.wait()
        self._called("import_chunk")
        super().import_chunk(key_range, chunk)

    def discard_range(self, key_range: KeyRange) -> None:
        self._called("discard_range")
        super().discard_range(key_range)


class Member:
    """An owner, its state, and what it was told."""

    def __init__(
        self,
        cluster: InProcessCluster,
        state: State | None = None,
        watchdog: float | None = None,
    ) -> None:
        self.state = State() if state is None else state
        self.granted: list[Granted] = []
        self.revoked: list[KeyRange] = []
        self.owner: Owner = cluster.owner(
            hand_off=self.state,
            on_grant=self.granted.append,
            on_revoke=self.revoked.extend,
            watchdog=watchdog,
        )


class Stage:
    """A cluster by a turned clock."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.cluster = cluster
        self.members: list[Member] = []
        self.lost: list[KeyRange] = []
        self.acknowledged: dict[str, int] = {}
        self._exits = AsyncExitStack()
        self._writes = 0

    async def join(self, state: State | None = None, watchdog: float | None = None) -> Member:
        member = Member(self.cluster, state, watchdog)
        entering = asyncio.create_task(self._exits.enter_async_context(member.owner))
        await self.until(entering.done)
        await entering
        self.members.append(member)
        return member

    async def first(self, keys: int = KEYS, watchdog: float | None = None) -> Member:
        """An owner of everything, with state."""
        member = await self.join(watchdog=watchdog)
        await self.until(lambda: bool(member.owner.ranges))
        self.lookup = self.cluster.lookup(on_loss=self.lost.extend)
        entering = asyncio.create_task(self._exits.enter_async_context(self.lookup))
        await self.until(entering.done)
        self.write_all(keys)
        assert len(self.acknowledged) == keys
        return member

    def write(self, keys: int = KEYS) -> None:
        """One more write, acknowledged if its key is held by anyone, from check to end."""
        self._writes += 1
        key = f"user-{self._writes % keys}"
        for member in self.members:
            lease = member.owner.check(key)
            if lease is not None:
                member.state[key] = self._writes
                if member.owner.holds(lease):
                    self.acknowledged[key] = self._writes

    def write_all(self, keys: int = KEYS) -> None:
        """One more write to each key."""
        for _ in range(keys):
            self.write(keys)

    async def until(self, condition: Callable[[], bool], *, writing: bool = False) -> None:
        for _ in range(TURNS):
            if condition():
                return
            if writing:
                self.write()
            await self.cluster.turn(STEP)
            await asyncio.sleep(0)
        raise AssertionError("it never came to that")

    async def soon(self, wanted: Awaitable[T]) -> T:
        """Return the result of something that happens while the clock is turned."""
        future = asyncio.ensure_future(wanted)
        await self.until(future.done)
        return await future

    def missing(self) -> list[str]:
        """Return what was acknowledged, is not where its key is held now, and was not reported
        lost.
        """
        found = []
        for key, value in self.acknowledged.items():
            holder = next((m for m in self.members if m.owner.check(key) is not None), None)
            has = None if holder is None else holder.state.get(key)
            is_lost = any(self.members[0].owner.key(key) in each for each in self.lost)
            if has != value and not is_lost:
                found.append(f"{key}: {has}, not {value}")
        return found

    def is_served(self) -> bool:
        """Whether somebody has every key."""
        return all(
            any(member.owner.check(key) is not None for member in self.members)
            for key in self.acknowledged
        )

    def has_settled(self) -> bool:
        """Return whether everything is where it should be, so that no more hand-offs follow."""
        plan = self.cluster.ask(ReadPlan("rooms"))
        assert isinstance(plan, PlanRead)
        return not plan.flows

    def share(self, member: Member) -> int:
        return sum(member.owner.check(key) is not None for key in self.acknowledged)

    async def leave(self) -> None:
        leaving = asyncio.create_task(self._exits.aclose())
        while not leaving.done():
            await self.cluster.turn(STEP)
            await come_to_rest()
        await leaving


@asynccontextmanager
async def on_stage(policy: str = "ring") -> AsyncIterator[Stage]:
    """Yield a stage under a policy, the ring unless the test says otherwise: it hands a new owner
    many small ranges instead of one.
    """
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        cluster.ask(ChoosePolicy(pool="rooms", policy=policy))
        stage = Stage(cluster)
        try:
            yield stage
        finally:
            for member in stage.members:
                member.state.gate.set()
            cluster.channels.on_message = lambda _: None
            await stage.leave()


def turn_patience_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the turned clock govern from here on what otherwise goes by the time of the engines'
    event loop, and not by the protocol's clock: what the owners wait for on their own account.
    """
    clock = stage.cluster.clock
    monkeypatch.setattr(stage.cluster._loop, "time", lambda: in_seconds(clock()))
