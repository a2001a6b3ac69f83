"""One owner with several states: they move with their ranges, each to the one of its name."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tenure import ConfigurationError, KeyedState, KeyRange, OwnedState, Owner
from tenure.base.ranges import WHOLE
from tenure.client.hand_off.several_states import SeveralStates, one_handler
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio


async def ended(cluster: InProcessCluster, what: Awaitable[Any]) -> None:
    doing = asyncio.ensure_future(what)
    while not doing.done():
        await cluster.turn(0.05)
    await doing


def states() -> dict[str, Any]:
    return {
        "carts": OwnedState[list[str]](value_type=list[str]),
        "orders": OwnedState[int](value_type=int),
        "hits": KeyedState[int](value_type=int),
    }


async def test_all_of_them_move_when_their_owner_leaves() -> None:
    ours, theirs = states(), dict(reversed(states().items()))
    async with InProcessCluster(["shop"], clock=TurnedClock()) as cluster:
        first, second = cluster.owner(hand_off=ours), cluster.owner(hand_off=theirs)
        await ended(cluster, first.__aenter__())
        await cluster.turn(1)
        for user in map(str, range(50)):
            async with ours["carts"].at(user) as cart, ours["orders"].at(user) as order:
                cart.value, order.value = ["tea"], int(user)
            ours["hits"][user] = 1
        await ended(cluster, second.__aenter__())
        await ended(cluster, first.close())
        for user in map(str, range(50)):
            async with theirs["carts"].at(user) as cart, theirs["orders"].at(user) as order:
                assert (cart.value, order.value) == (["tea"], int(user))
        assert len(theirs["hits"]) == 50
        assert [len(each) for each in ours.values()] == [0, 0, 0]
        await ended(cluster, second.close(drain=0))


async def test_a_chunk_for_a_state_that_is_not_here_is_refused() -> None:
    several = SeveralStates({"carts": KeyedState()})
    for chunk in (b"\x04hits\x90", b"\x90", b"\x05\xff\xff\xff\xff\xff"):
        with pytest.raises(ValueError, match="this owner has carts"):
            await several.import_chunk(WHOLE, chunk)


async def test_settling_asks_those_that_settle() -> None:
    asked: list[object] = []

    class Settles(KeyedState[int]):
        async def settle_range(self, key_range: KeyRange, deadline: float) -> None:
            asked.append((key_range, deadline))

        def resume_range(self, key_range: KeyRange) -> None:
            asked.append(key_range)

    several = SeveralStates({"a": Settles(), "b": KeyedState(), "c": Settles()})
    await several.settle_range(WHOLE, 3.0)
    await several.resume_range(WHOLE)
    assert asked == [(WHOLE, 3.0)] * 2 + [WHOLE] * 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([KeyedState(), KeyedState()], 'as a dict, like hand_off={"carts"'),
        ({}, "without states"),
        ({"": KeyedState()}, "the name ''"),
        ({3: KeyedState()}, "the name 3"),
        ({"x" * 256: KeyedState()}, "1 to 255"),
        ({"a": KeyedState, "b": KeyedState()}, "not the class"),
        ({"a": 3}, "has no"),
    ],
)
async def test_what_is_no_state_is_refused_when_the_owner_is_made(wrong: Any, said: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError) as raised:
        Owner("http://a:1", pool="rooms", address="http://a", hand_off=wrong)
    assert said in str(raised.value)


async def test_one_state_has_one_name() -> None:
    state = KeyedState[int]()
    with pytest.raises(ConfigurationError, match="two names: a, b"):
        one_handler({"a": state, "b": state})
    assert one_handler(state) is state
