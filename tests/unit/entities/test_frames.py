"""Frames and names that cannot be sent are refused where they are given, and harm nobody else."""

import asyncio
from typing import Any

import pytest

from tenure import Alarm, Entity, Socket, UsageError
from tenure.entities import edge_socket
from tenure.entities.entity_turn import FRAME_BYTES
from tenure.protocol.entity.envelope import Push
from tenure.protocol.entity.socket_entry import SocketEntry
from tests.unit.entities.stage import Count, attached, on_stage

pytestmark = pytest.mark.asyncio

HALF = "\ud800"


class OwnText(str):
    __slots__ = ()


class OwnBytes(bytes):
    __slots__ = ()


class Speaker(Entity[Count]):
    async def on_connect(self, socket: Socket[Any]) -> None:
        socket.send("hello")

    async def on_message(self, socket: Socket[Any], text: Any) -> None:  # noqa: ANN401
        del text
        socket.send("heard")

    async def on_alarm(self, alarm: Alarm) -> None:
        del alarm

    async def add(self) -> int:
        self.state.value += 1
        return self.state.value

    async def say(self, times: int, text: str) -> None:
        for _ in range(times):
            self.broadcast(text)

    async def half(self, *, early: bool) -> None:
        self.state.value += 100
        self.broadcast(HALF, early=early)

    async def own_kinds(self) -> None:
        self.broadcast(OwnText("text"))
        self.broadcast(OwnBytes(b"bytes"))

    async def half_named(self) -> None:
        self.state.value += 100
        self.set_alarm(HALF, 9e9)


async def test_half_a_character_is_refused_and_the_range_moves_whole() -> None:
    async with on_stage(2, kind=Speaker) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, _ = attached(two, key)
        await stage.until(lambda: ann.received)
        assert await stage.done(two[key].add()) == 1
        for early in (False, True):
            with pytest.raises(UsageError, match="half a character"):
                await stage.done(one[key].half(early=early))
        with pytest.raises(UsageError, match="half a character"):
            await stage.done(one[key].half_named())
        await stage.move(key, two)
        assert await stage.done(one[key].add()) == 2
        ann.send("x")
        await stage.until(lambda: len(ann.received) > 1)
        assert (ann.received, ann.code) == (["hello", "heard"], None)
        ann.leave()


async def test_frames_of_classes_of_their_own_arrive_as_plain_ones() -> None:
    async with on_stage(2, kind=Speaker) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, _ = attached(two, key)
        await stage.until(lambda: ann.received)
        await stage.done(one[key].own_kinds())
        await stage.until(lambda: len(ann.received) > 2)
        assert (ann.received, ann.code) == (["hello", "text", b"bytes"], None)
        ann.leave()


async def test_a_client_that_sends_too_much_at_once_is_closed_and_costs_nobody_else() -> None:
    async with on_stage(2, kind=Speaker) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        for place in (one, two):  # beside its entity, or in another process
            (ann, task), (bob, _) = attached(place, key), attached(place, key)
            await stage.until(lambda: ann.received and bob.received)  # noqa: B023  # at once
            link = two.station._links.to(one.station.owner.address)
            ann.send("x" * (1 << 20))
            async with asyncio.timeout(10):
                await stage.done(task)
            assert (ann.received, ann.code) == (["hello"], 1009)
            bob.send("x" * 1_000_000)
            await stage.until(lambda: len(bob.received) > 1)  # noqa: B023
            assert two.station._links.to(one.station.owner.address) is link
            bob.leave()


async def test_the_largest_frame_for_very_many_sockets_breaks_no_connection() -> None:
    async with on_stage(2, kind=Speaker) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, _ = attached(two, key)
        await stage.until(lambda: ann.received)
        link = two.station._links.to(one.station.owner.address)
        live = one.station.host._live[key]
        (there,) = live.envelope.sockets
        lease = one.station.owner.check(key)
        assert lease is not None
        frame = "\U0001f600" * FRAME_BYTES
        sockets = (*((b"%016d" % i, 1, 0) for i in range(5000)), (there, 2, 0))
        one.station._let_out(live, lease, [Push(two.station.owner.address, (frame,), sockets)])
        await stage.until(lambda: len(ann.received) > 1)
        assert ann.received[1] == frame
        assert two.station._links.to(one.station.owner.address) is link
        ann.leave()


async def test_a_client_that_never_reads_is_let_go_by_empty_frames_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_socket, "CLOSE_SECONDS", 0.01)
    async with on_stage(1, kind=Speaker) as stage:
        (speakers,) = stage.members
        ann, task = attached(speakers, "a")
        await stage.until(lambda: ann.received)
        ann.reads.clear()
        for _ in range(100):
            await stage.done(speakers["a"].say(1000, ""))
            if task.done():
                break
        assert task.done()
        ann.reads.set()


async def test_empty_frames_that_are_not_taken_are_bounded() -> None:
    entry = SocketEntry("http://edge", b"")
    for _ in range(1000):
        entry = entry.sending(("",) * 100)
    assert (len(entry.unread) < 20_000, entry.closing) == (True, 1013)
    assert SocketEntry("http://edge", b"").sending(("x" * FRAME_BYTES,)).closing == 0
