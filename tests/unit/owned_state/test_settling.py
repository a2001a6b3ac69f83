"""Turns that are under way when their range is handed over finish first, and what they store goes
along.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tenure import LeaseLost, NotOwner, OwnedState, Owner
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio

USERS = [f"user-{i}" for i in range(60)]
STEP = 0.02


class Stage:
    """Two owners of carts."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.cluster = cluster
        self.states: list[OwnedState[list[str]]] = [OwnedState(), OwnedState()]
        self.owners: list[Owner] = [cluster.owner(hand_off=each) for each in self.states]

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(1_000):
            if condition():
                return
            await self.cluster.turn(STEP)
        raise AssertionError("it never came to that")

    async def enter(self, i: int) -> None:
        entering = asyncio.create_task(self.owners[i].__aenter__())
        await self.until(entering.done)
        await entering

    async def leave(self, i: int, drain: float) -> None:
        leaving = asyncio.ensure_future(self.owners[i].close(drain=drain))
        await self.until(leaving.done)
        await leaving

    def moved(self) -> list[str]:
        return [user for user in USERS if self.owners[1].check(user)]

    async def found(self, user: str) -> list[str] | None:
        for state in self.states:
            try:
                async with state.at(user) as cart:
                    return cart.value
            except NotOwner:
                pass
        raise AssertionError(f"nobody has {user}")


@asynccontextmanager
async def on_stage() -> AsyncIterator[Stage]:
    async with InProcessCluster(["carts"], clock=TurnedClock()) as cluster:
        stage = Stage(cluster)
        await stage.enter(0)
        await stage.until(lambda: bool(stage.owners[0].ranges))
        yield stage
        for i in (1, 0):
            await stage.leave(i, drain=0)


async def test_what_is_under_way_finishes_before_its_range_moves_and_goes_along() -> None:
    async with on_stage() as stage:
        go_on = asyncio.Event()

        async def add(user: str) -> None:
            async with stage.states[0].at(user) as cart:
                cart.value = [user]
                await go_on.wait()

        adding = [asyncio.create_task(add(user)) for user in USERS]
        await come_to_rest()
        await stage.enter(1)
        for _ in range(20):
            await stage.cluster.turn(STEP)
        assert stage.moved() == [], "the bodies are not done"
        go_on.set()
        await asyncio.gather(*adding)  # none has lost its lease
        await stage.until(lambda: len(stage.moved()) > 10)
        await stage.until(lambda: all(any(o.check(u) for o in stage.owners) for u in USERS))
        assert [await stage.found(user) for user in USERS] == [[user] for user in USERS]
        assert len(stage.states[1]) == len(stage.moved())


async def test_a_body_that_takes_too_long_loses_its_lease_and_stores_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with on_stage() as stage:
        never = asyncio.Event()

        async def add(user: str) -> None:
            async with stage.states[0].at(user) as cart:
                cart.value = [user]
                await never.wait()

        adding = {user: asyncio.create_task(add(user)) for user in USERS}
        await come_to_rest()
        await stage.enter(1)
        await stage.until(lambda: len(stage.moved()) > 10)
        moved = stage.moved()
        results = await asyncio.gather(*(adding[user] for user in moved), return_exceptions=True)
        assert {type(each) for each in results} == {LeaseLost}
        for task in adding.values():
            task.cancel()
        await asyncio.gather(*adding.values(), return_exceptions=True)
        assert [await stage.found(user) for user in USERS] == [None] * len(USERS)


async def test_an_owner_that_is_closed_in_a_body_leaves_and_the_body_is_told() -> None:
    async with on_stage() as stage:
        closed: list[Any] = []

        async def close() -> None:
            async with stage.states[0].at("ann") as cart:
                cart.value = ["tea"]
                closing = asyncio.ensure_future(stage.owners[0].close(drain=0.2))
                await closing
                closed.append("closed")

        body = asyncio.create_task(close())
        await stage.until(body.done)
        with pytest.raises(LeaseLost):
            await body
        assert len(stage.states[0].turns) == 0
        assert len(stage.states[0]) == 0
