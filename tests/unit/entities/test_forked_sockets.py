"""An owner that has found less than its predecessor has sent numbers other frames as those which
have come: the socket is closed with 1012, and its client misses none of them silently.
"""

import asyncio
from pathlib import Path

import pytest

from tenure import StoreFailed
from tests.unit.entities.socket_stories import Radio
from tests.unit.entities.stage import attached, on_stage

pytestmark = pytest.mark.asyncio


async def test_frames_that_left_before_a_crash_are_not_mistaken_for_later_ones(
    tmp_path: Path,
) -> None:
    async with on_stage(2, kind=Radio, store=f"sqlite:{tmp_path / 'store'}") as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, task = attached(two, key)
        await stage.until(lambda: ann.received)
        saying = asyncio.ensure_future(one[key].say_early("news"))
        await stage.until(lambda: len(ann.received) > 1)
        await stage.crash(one)
        saying.cancel()
        await stage.done(two[key].say("and other news"))
        await stage.done(task)
        assert (ann.received, ann.code) == (["at 0", "news"], 1012)


async def test_frames_that_left_before_the_store_failed_are_not_mistaken_for_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(2, kind=Radio, store=f"sqlite:{tmp_path / 'store'}") as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, task = attached(two, key)
        await stage.until(lambda: ann.received)

        async def fail(*_: object) -> None:
            raise StoreFailed("on purpose")

        with monkeypatch.context() as patched:
            patched.setattr(one.station.host.gate.store, "save", fail)
            with pytest.raises(StoreFailed):
                await stage.done(one[key].say_early_and_change("news"))
        await stage.until(lambda: len(ann.received) > 1)
        await stage.done(one[key].say("and other news"))
        await stage.done(task)
        assert (ann.received, ann.code) == (["at 0", "news"], 1012)


@pytest.mark.parametrize("is_at_its_entity", [True, False])
async def test_what_is_sent_early_to_a_socket_that_connects_comes_with_the_commit(
    is_at_its_entity: bool,
) -> None:
    async with on_stage(2, kind=Radio) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, _ = attached(one if is_at_its_entity else two, key, "early")
        await stage.until(lambda: ann.received)
        await stage.done(two[key].say("more"))
        await stage.until(lambda: len(ann.received) > 1)
        assert (ann.received, ann.code) == (["at 0", "more"], None)
        ann.leave()


async def test_an_owner_that_has_a_key_again_asks_its_edge_with_the_numbers_of_now() -> None:
    async with on_stage(3, kind=Radio) as stage:
        one, two, three = stage.members
        key = stage.key_of(one)
        ann, task = attached(two, key)
        await stage.until(lambda: ann.received)
        await stage.move(key, to=three)
        await stage.done(three[key].say("from another"))
        await stage.until(lambda: len(ann.received) > 1)
        await stage.move(key, to=one)
        stage.cluster.channels.cut()
        await stage.cluster.turn(0.1)  # it asks the edge behind each broken link for its sockets
        await stage.done(one[key].say("from the first again"))
        await stage.until(lambda: len(ann.received) > 2 or ann.code)
        assert (ann.received[1:], ann.code) == (["from another", "from the first again"], None)
        ann.leave()
        await stage.done(task)
