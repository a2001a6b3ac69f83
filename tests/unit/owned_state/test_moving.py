"""Refusals that are true: 200 carts, act, wait, and a second owner joins with a hand-off.

A client repeats only what was not begun. Then no cart has an article twice. If the owner says
instead that nothing was begun, although it acted (421 for everything), the client believes it, and
carts that had moved with the article get it once more.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from tenure import KeyedState, LeaseLost, NotOwner, OwnedState, Owner, TenureError, refusal
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio

USERS = [f"user-{i}" for i in range(200)]
STEP = 0.02

Add: TypeAlias = Callable[[str], Awaitable[None]]


class Plain:
    """A service on a KeyedState that acts, waits, and then asks whether it was the owner."""

    def __init__(self, go_on: asyncio.Event) -> None:
        self.state: KeyedState[list[str]] = KeyedState(value_type=list[str])
        self.owner: Owner
        self.go_on = go_on

    async def add(self, user: str) -> None:
        lease = self.owner.check(user)
        if lease is None:
            raise NotOwner(user)
        self.state[user] = [*self.state.get(user, []), "tea"]
        await self.go_on.wait()
        if not self.owner.holds(lease):
            raise LeaseLost(user)

    def cart(self, user: str) -> list[str]:
        return self.state.get(user, [])


class Owned:
    """The same on an OwnedState."""

    def __init__(self, go_on: asyncio.Event) -> None:
        self.state: OwnedState[list[str]] = OwnedState(value_type=list[str])
        self.owner: Owner
        self.go_on = go_on

    async def add(self, user: str) -> None:
        async with self.state.at(user) as cart:
            cart.value = [*(cart.value or []), "tea"]
            await self.go_on.wait()

    def cart(self, user: str) -> list[str]:
        stored = self.state.entries.get(user)
        return [] if stored is None else self.state.codec.decode(stored.data)


def truthful(error: TenureError) -> int:
    answer = refusal(error)
    assert answer is not None
    return answer.status


def always_421(error: TenureError) -> int:
    return 421


async def moved(
    make: Callable[[asyncio.Event], Any], status_of: Callable[[TenureError], int]
) -> tuple[Counter[int], Counter[int]]:
    """How often clients were answered what, and how many carts have how many articles."""
    go_on, answers = asyncio.Event(), Counter[int]()
    async with InProcessCluster(["carts"], clock=TurnedClock()) as cluster:
        shops = [make(go_on), make(go_on)]
        for shop in shops:
            shop.owner = cluster.owner(hand_off=shop.state)

        async def until(condition: Callable[[], bool]) -> None:
            for _ in range(600):
                if condition():
                    return
                await cluster.turn(STEP)
            raise AssertionError("it never came to that")

        async def buy(user: str) -> None:
            while True:
                for shop in shops:
                    try:
                        await shop.add(user)
                        answers[200] += 1
                        return
                    except (NotOwner, LeaseLost) as error:
                        status = status_of(error)
                        answers[status] += isinstance(error, LeaseLost)
                        if status != 421:
                            return
                await asyncio.sleep(0)

        async def enter(shop: Any) -> None:  # noqa: ANN401  # one of the two
            entering = asyncio.create_task(shop.owner.__aenter__())
            await until(entering.done)
            await until(lambda: bool(shop.owner.ranges))

        await enter(shops[0])
        buying = [asyncio.create_task(buy(user)) for user in USERS]
        await come_to_rest()
        await enter(shops[1])
        await until(lambda: all(any(s.owner.check(u) for s in shops) for u in USERS))
        go_on.set()
        await until(lambda: all(each.done() for each in buying))
        for each in buying:
            each.result()
        holders = [next(s for s in shops if s.owner.check(user)) for user in USERS]
        sizes = [len(s.cart(user)) for s, user in zip(holders, USERS, strict=True)]
        for shop in reversed(shops):
            leaving = asyncio.ensure_future(shop.owner.close(drain=0))
            await until(leaving.done)
            await leaving
        return answers, Counter(sizes)


async def test_nothing_is_done_twice_where_refusals_are_true() -> None:
    answers, sizes = await moved(Plain, truthful)
    assert answers[503] > 50
    assert sizes == {1: 200}, "what was refused at the end had moved along"


async def test_it_is_done_twice_where_what_was_done_is_answered_421() -> None:
    answers, sizes = await moved(Plain, always_421)
    assert answers[421] > 50
    assert sizes[2] == answers[421], "every one of them"
    assert sizes[1] == 200 - answers[421]


@pytest.mark.parametrize("status_of", [truthful, always_421])
async def test_owned_state_stores_at_the_end_so_what_is_refused_is_not_there(
    status_of: Callable[[TenureError], int],
) -> None:
    answers, sizes = await moved(Owned, status_of)
    assert sizes[2] == 0
    assert sizes[1] == answers[200]
