"""How a socket begins and ends at its edge, whatever comes in between."""

import asyncio
from typing import Any

import pytest

from tenure import Entity, Socket, reading
from tenure.entities import edge, station
from tests.unit.entities.stage import Client, Count, ServerEnd, attached, on_stage

pytestmark = pytest.mark.asyncio


class Door(Entity[Count]):
    async def on_connect(self, socket: Socket[Any]) -> None:
        if not self.is_repeat:
            socket.send("welcome")
            await self.commit()
            if socket.attachment == "slow":
                await asyncio.Event().wait()
        socket.send("come in")

    async def on_message(self, socket: Socket[Any], text: Any) -> None:  # noqa: ANN401
        socket.send(f"heard {text}")

    @reading
    async def people(self) -> int:
        return len(self.sockets)


async def test_a_beginning_that_was_cut_and_is_repeated_loses_no_frame() -> None:
    async with on_stage(2, kind=Door, settle=0.5) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, _ = attached(two, key, "slow")
        await stage.until(lambda: ann.received)
        await stage.move(key, two)
        ann.send("x")
        await stage.until(lambda: "heard x" in ann.received)
        assert ann.received == ["welcome", "come in", "heard x"]
        assert await stage.done(one[key].people()) == 1
        ann.leave()


async def test_an_end_that_is_cancelled_twice_leaves_no_socket() -> None:
    async with on_stage(1, kind=Door) as stage:
        (doors,) = stage.members
        ann, task = attached(doors, "a")
        await stage.until(lambda: len(ann.received) > 1)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({task})
        assert len(doors.station.edge) == 0
        assert await stage.done(doors["a"].people()) == 0


async def test_a_future_for_many_sockets_keeps_none_that_has_ended() -> None:
    async with on_stage(1, kind=Door) as stage:
        (doors,) = stage.members
        until: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        clients = Client(), Client()
        ends = [
            asyncio.create_task(doors["a"].attach(ServerEnd(each), until=until)) for each in clients
        ]
        await stage.until(lambda: all(len(each.received) > 1 for each in clients))
        clients[0].leave()
        await stage.done(ends[0])
        assert repr(until).count("EdgeSocket.") == 1
        until.set_result(1008)
        await stage.done(ends[1])
        assert (clients[0].code, clients[1].code) == (None, 1008)


async def test_a_socket_outlives_a_key_that_goes_for_long_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The owner remembers when it heard the edge last, and that was before the key went."""
    monkeypatch.setattr(edge, "ASK_SECONDS", 0.3)
    monkeypatch.setattr(station, "SWEEP_SECONDS", 0.02)
    monkeypatch.setattr(station, "SILENT_SECONDS", 1.0)
    loop, ahead = asyncio.get_running_loop(), 0.0
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)

    async with on_stage(2, kind=Door) as stage:

        async def passes(seconds: float) -> None:
            nonlocal ahead
            for _ in range(round(seconds / 0.05)):
                ahead += 0.05
                await stage.cluster.turn(0.02)

        one, two = stage.members
        key = stage.key_of(one)
        ann, _ = attached(two, key)
        await stage.until(lambda: len(ann.received) > 1)
        await passes(0.4)
        await stage.move(key, two)
        await passes(1.5)
        await stage.move(key, one)
        await passes(0.5)
        assert ann.code is None
        assert await stage.done(one[key].people()) == 1
        ann.leave()
