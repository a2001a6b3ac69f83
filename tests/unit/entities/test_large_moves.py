"""An entity moves with its range however much there is to send, or to answer again."""

import asyncio
from typing import Any

import pytest

from tenure import Entities, Entity, Socket
from tenure.protocol.entity.envelope import Envelope, TurnChanges
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import FRAMES
from tenure.protocol.entity.socket_entry import SocketEntry
from tenure.transport.link import GatedAnswer
from tests.unit.entities.stage import Count, Stage, attached, on_stage

pytestmark = pytest.mark.asyncio

PEOPLE = 24
LONG = 200_000


class Hall(Entity[Count]):
    async def on_message(self, socket: Socket[Any], text: str) -> None:
        socket.send(f"heard {text}")

    async def say(self, text: str) -> int:
        self.state.value += 1
        self.broadcast(text)
        return self.state.value

    async def count(self) -> tuple[int, int]:
        return self.state.value, len(self.sockets)

    async def document(self, size: int) -> str:
        self.state.value += 1
        return "x" * size


def grow_deaf(edge: Entities[Any], to: Entities[Any]) -> None:
    """From now on this edge takes no frames over its connection."""
    link = edge.station._links.to(to.station.owner.address)
    assert link is not None
    serve = link._serve

    async def deaf(call: EntityCall) -> GatedAnswer:
        if call.method == FRAMES:
            await asyncio.Event().wait()
        return await serve(call)

    link._serve = deaf


async def all_there(stage: Stage, hall: Any, people: int) -> None:  # noqa: ANN401  # a stub
    while (await stage.done(hall.count()))[1] < people:
        await stage.cluster.turn(0.02)


async def test_frames_that_an_edge_has_not_confirmed_do_not_keep_the_state_from_moving() -> None:
    async with on_stage(2, kind=Hall) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        clients = [attached(two, key)[0] for _ in range(PEOPLE)]
        await all_there(stage, one[key], PEOPLE)
        grow_deaf(two, one)
        assert await stage.done(one[key].say("x" * LONG)) == 1
        await stage.move(key, two)
        assert await stage.done(one[key].count()) == (1, PEOPLE)
        for each in clients:
            each.send("x")
        await stage.until(lambda: all(each.received or each.code for each in clients))
        assert {each.code for each in clients if not each.received} <= {1012}
        assert all(each.received[0] == "x" * LONG for each in clients if each.received)
        for each in clients:
            each.leave()


async def test_large_answers_that_may_be_asked_for_again_do_not_keep_it_either() -> None:
    async with on_stage(2, kind=Hall) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        for _ in range(8):
            await stage.done(two[key].document(900_000))
        await stage.move(key, two)
        assert await stage.done(one[key].count()) == (8, 0)


async def test_sockets_with_more_to_say_than_fits_are_left_behind() -> None:
    entries = {b"%d" % i: SocketEntry("http://edge", b"x" * 4096) for i in range(1000)}
    assert Envelope(sockets=entries).light().sockets == {}
    few = Envelope(sockets=dict(list(entries.items())[:300]))
    assert few.light() is few
    changes = TurnChanges()
    changes.frames = dict.fromkeys(few.sockets, ("x" * 10_000, "é"))
    full, _ = few.after(changes, b"state", (3, 7), 1.5, None)
    light = full.light()
    assert {each.unread for each in light.sockets.values()} == {()}
    assert {(each.sent, each.after(2), each.after(1)) for each in light.sockets.values()} == {
        (2, (), None)
    }
    assert (light.state, light.number) == (b"state", 3)
