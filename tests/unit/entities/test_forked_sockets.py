"""An owner that has found less than its predecessor has sent numbers other frames as those which
have come: the socket is closed with 1012, and its client misses none of them silently.
"""

import asyncio
from pathlib import Path

import pytest

from tenure import StoreFailed
from tenure.entities import edge_watch
from tenure.protocol.entity.messages import MOVE, SocketMoved
from tenure.transport.link import Unconnected
from tenure.wire.entity import packed
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


async def test_a_socket_that_has_moved_on_is_not_ended_with_its_former_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By an owner that has its key again, and has looked at nothing since."""
    async with on_stage(4, kind=Radio) as stage:
        one, two, three, four = stage.members
        key, other = stage.key_of(one), stage.key_of(one, "other")
        await stage.move(other, to=one)  # and it stays there
        _, task = attached(two, other)
        ann, _ = attached(two, key)
        await stage.until(lambda: ann.received)
        await stage.move(key, to=three)
        [socket] = [each for each in two.station.edge._sockets.values() if each.key == key]
        four.station.edge._sockets[socket.id] = two.station.edge._sockets.pop(socket.id)
        moved = packed(SocketMoved(socket.id, four.station.owner.address))
        assert await stage.done(four.station.edge._caller.call(key, MOVE, moved))
        assert three.station.host._live[key].sockets_at(four.station.owner.address)
        await stage.move(key, to=one)

        async def fail(_: str) -> None:
            raise Unconnected("nobody listens there")

        with monkeypatch.context() as patched:
            patched.setattr(one.station._links, "link", fail)
            patched.setattr(edge_watch, "PAUSES", (0.0,))
            one.station._watch.look(two.station.owner.address)
            for _ in range(10):
                one.station.host._live.move_to_end(other, last=False)  # it is asked for first
                await stage.cluster.turn(0.1)
        await stage.done(one[key].say("to the edge of now"))
        await stage.until(lambda: len(ann.received) > 1 or ann.code)
        assert (ann.received[1:], ann.code) == (["to the edge of now"], None)
        ann.leave()
        task.cancel()
