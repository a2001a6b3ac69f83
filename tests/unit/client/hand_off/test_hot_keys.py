"""A hot key that gets a range of its own takes its state along, and brings it back when it is cold.

By the policy `weighted`: the ring moves whole ranges only.
"""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tenure import KeyRange
from tenure.protocol.lease.answers import KeyExplained
from tenure.protocol.lease.steering_events import ExplainKey
from tests.unit.client.hand_off.stage import Member, Stage, on_stage

pytestmark = pytest.mark.asyncio
TICK = 0.3
"""Seconds between two writes: as often as load is told."""
LONG_TICK = 3 * TICK
TICKS = 400
"""Two minutes: what is told is smoothed over seconds, and what moved rests for twenty. Six minutes
of long ones: a key that stands alone goes back when it has been cold for five."""
HOT, USUAL = 60.0, 1.0
"""Load of a key in a tick. Of two hot keys of one owner, another with less to do has room for one,
and neither fills an owner."""


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage("weighted") as stage:
        yield stage


async def serve_until(
    stage: Stage, condition: Callable[[], bool], hot: tuple[str, ...], tick: float = TICK
) -> None:
    """Write, and tell load, until it has come to that and everything is served."""
    for _ in range(TICKS):
        if condition() and stage.is_served():
            return
        stage.write()
        for key in stage.acknowledged:
            amount = (HOT if key in hot else USUAL) * tick / TICK
            for member in stage.members:
                member.owner.record_load(key, amount)
        await stage.cluster.turn(tick)
    raise AssertionError("it never came to that")


async def isolated(stage: Stage) -> tuple[Member, Member, str]:
    """An owner, another that has a hot key of the first alone, and that key."""
    first = await stage.first()
    second = await stage.join()
    await stage.until(lambda: stage.share(second) > 0 and stage.has_settled())
    hot = tuple(key for key in stage.acknowledged if first.owner.check(key))[:2]
    await serve_until(stage, lambda: any(map(second.owner.check, hot)), hot)
    (moved,) = [key for key in hot if second.owner.check(key)]
    return first, second, moved


async def check_moved(stage: Stage, source: Member, taker: Member, user_key: str) -> None:
    """It moved alone, with its state, and everybody was told of a move, not of a loss."""
    await stage.cluster.turn(TICK)  # until lookups have heard of it
    key = taker.owner.key(user_key)
    alone = KeyRange(key, key + b"\0")
    granted = taker.granted[-1]
    assert tuple(granted) == granted.with_state == (alone,)
    assert source.revoked[-1] == alone
    assert taker.state[user_key] == stage.acknowledged[user_key]
    assert user_key not in source.state
    assert stage.missing() == []
    assert stage.lost == []
    told = stage.cluster.ask(ExplainKey("rooms", key))
    assert isinstance(told, KeyExplained)
    assert told.owner
    assert stage.lookup.find(user_key) == told.owner.address
    latest, before = told.moves[:2]
    assert (latest.how, latest.taker) == ("handed over", told.owner.name)
    assert latest.since == before.since < before.number < latest.number


async def test_a_hot_key_moves_alone_with_its_state_and_nothing_is_lost(stage: Stage) -> None:
    source, taker, key = await isolated(stage)
    await check_moved(stage, source, taker, key)


async def test_a_key_that_is_cold_again_goes_back_with_its_state(stage: Stage) -> None:
    home, host, key = await isolated(stage)
    await serve_until(stage, lambda: home.owner.check(key) is not None, (), LONG_TICK)
    await check_moved(stage, host, home, key)
