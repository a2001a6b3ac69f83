"""Losses of other pools are told to each queue that watches, also to one that is busy."""

import asyncio
from collections import Counter

import pytest

from tenure.errors import Busy
from tenure.services.queues import watched_pools
from tenure.services.queues.watched_pools import WatchedPools
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
