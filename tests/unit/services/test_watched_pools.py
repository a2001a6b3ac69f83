"""Losses of other pools are told to each queue that watches, also to one that is busy."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future
from typing import cast

import pytest

from tenure import KeyStanding, Lookup
from tenure.errors import Busy, ServiceRefusal
from tenure.services.queues import watched_pools
from tenure.services.queues.watched_pools import AT_ONCE, WatchedPools
from tenure.testing.clock import come_to_rest

pytestmark = pytest.mark.asyncio


async def test_a_queue_that_is_too_busy_to_look_for_losses_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watched_pools, "AGAIN_SECONDS", 0.0)
    asked, has_looked = Counter[str](), asyncio.Event()

    async def check(queue: str) -> None:
        asked[queue] += 1
        if queue == "busy" and asked[queue] < 3:
            raise Busy("1000 calls wait for it already")
        if queue == "busy":
            has_looked.set()

    pools = WatchedPools(None, (), check)
    async with pools.entered():
        pools.add("idle")
        pools.add("busy")
        await pools._on_loss(())
        await has_looked.wait()
        assert asked == {"idle": 1, "busy": 3}


async def test_who_ends_asks_no_queue_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_pools, "AGAIN_SECONDS", 0.0)
    asked, is_asked_again = Counter[str](), asyncio.Event()

    async def check(queue: str) -> None:
        asked[queue] += 1
        if asked[queue] == 3:
            is_asked_again.set()
        raise Busy("1000 calls wait for it already")

    pools = WatchedPools(None, (), check)
    async with pools.entered():
        pools.add("busy")
        await pools._on_loss(())
        await is_asked_again.wait()
    await come_to_rest()
    assert not pools._asking


class Standings:
    """A lookup that says how keys stand; None for keys of which it knows nothing."""

    def __init__(self, **standings: KeyStanding | None) -> None:
        self.now = standings

    def standings(self, keys: Iterable[str]) -> Future[list[KeyStanding | None]]:
        found: Future[list[KeyStanding | None]] = Future()
        found.set_result([self.now[key] for key in keys])
        return found


def following(pool: str, standings: Standings) -> WatchedPools:
    pools = WatchedPools(None, (), lambda _: asyncio.sleep(0))
    pools._lookups[pool] = cast("Lookup", standings)
    return pools


BEFORE, LOST = KeyStanding(1, 5, 5), KeyStanding(1, 9, 9)


async def test_what_was_lost_is_told_once() -> None:
    there = Standings(pc=BEFORE, phone=BEFORE)
    pools = following("devices", there)
    watched = await pools.watched({"devices": ["pc", "phone"]})
    assert await pools.lost(watched) == ({}, watched)
    there.now["pc"] = LOST
    lost, watched = await pools.lost(watched)
    assert lost == {"devices": ["pc"]}
    assert await pools.lost(watched) == ({}, watched)
    there.now["phone"] = LOST
    assert (await pools.lost(watched))[0] == {"devices": ["phone"]}


async def test_of_a_key_that_nobody_knows_anything_of_nothing_is_said_and_it_is_not_watched() -> (
    None
):
    there = Standings(pc=BEFORE, phone=None)
    pools = following("devices", there)
    with pytest.raises(ServiceRefusal) as refused:
        await pools.watched({"devices": ["pc", "phone"]})
    assert (refused.value.status, refused.value.error) == (503, "contact")
    watched = await pools.watched({"devices": ["pc"]})
    there.now["pc"] = None
    assert await pools.lost(watched) == ({}, watched)
    there.now["pc"] = LOST
    assert (await pools.lost(watched))[0] == {"devices": ["pc"]}


async def test_what_was_lost_of_a_pool_that_is_left_out_is_told_where_it_is_watched_again() -> None:
    there = Standings(pc=BEFORE)
    watched = await following("devices", there).watched({"devices": ["pc"]})
    without = following("others", there)
    assert await without.lost(watched) == ({}, watched)
    there.now["pc"] = LOST
    assert (await following("devices", there).lost(watched))[0] == {"devices": ["pc"]}


async def test_so_many_queues_are_asked_at_a_time() -> None:
    under_way, most, asked = 0, 0, Counter[str]()

    async def check(queue: str) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        asked[queue] += 1
        under_way -= 1

    pools = WatchedPools(None, (), check)
    names = [str(number) for number in range(3 * AT_ONCE + 1)]
    for name in names:
        pools.add(name)
    await pools._on_loss(())
    assert (most, asked) == (AT_ONCE, Counter(names))
    await pools._on_loss(())
    assert asked == Counter(names), "who is still here says so again"
