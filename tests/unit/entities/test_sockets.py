"""Sockets stay open while their key moves; no frame is lost or comes twice, or 1012 says so."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import Entities, Entity, Socket, UsageError, ValueTypeError, reading
from tenure.base.keys import KEY_BYTES
from tenure.entities import edge, edge_socket, edge_watch, station
from tenure.entities.edge_socket import EdgeSocket
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.testing.clock import come_to_rest
from tests.unit.entities.stage import Client, ServerEnd, Stage, attached, on_stage

pytestmark = pytest.mark.asyncio


class Lines(msgspec.Struct):
    last: list[str] = []


class Room(Entity[Lines]):
    async def on_connect(self, socket: Socket[str]) -> None:
        for line in self.state.last:
            socket.send(line)

    async def on_message(self, socket: Socket[str], text: str) -> None:
        line = f"{socket.attachment}: {text}"
        if text == "bye":
            socket.send("so long")
            socket.close(4001)
        elif text == "fail":
            self.broadcast("never seen")
            raise RuntimeError("on purpose")
        elif text == "early":
            self.broadcast("early", early=True)
        else:
            self.state.last.append(line)
            self.broadcast(line)

    async def on_disconnect(self, socket: Socket[str]) -> None:
        self.broadcast(f"{socket.attachment} has left")

    async def close_all(self, code: Any) -> None:  # noqa: ANN401  # as a mistake is
        for socket in self.sockets:
            socket.close(code)

    async def say(self, line: str) -> None:
        self.broadcast(line)

    @reading
    async def people(self) -> list[str]:
        return sorted(socket.attachment for socket in self.sockets)


async def of_all(stage: Stage, key: str, *names: str) -> list[Any]:
    """A client at each member."""
    clients = []
    for member, name in zip(stage.members, names, strict=True):
        client, task = attached(member, key, name)
        clients.append((client, task))
    member = stage.members[0]

    async def all_there() -> bool:
        people: list[str] = await member[key].people()
        return people == sorted(names)

    while not await stage.done(all_there()):
        await stage.cluster.turn(0.02)
    return clients


async def talk(stage: Stage, key: str) -> None:
    (ann, one), (bob, two) = await of_all(stage, key, "ann", "bob")
    ann.send("hello")
    bob.send("hi")
    await stage.until(lambda: len(ann.received) == len(bob.received) == 2)
    assert sorted(ann.received) == ["ann: hello", "bob: hi"]
    assert ann.received == bob.received
    ann.leave()
    await stage.done(one)
    await stage.until(lambda: bob.received[2:] == ["ann has left"])
    bob.send("bye")
    await stage.done(two)
    assert (bob.received[3:], bob.code) == (["so long"], 4001)


async def test_what_one_says_all_hear_whatever_member_they_are_at() -> None:
    async with on_stage(2, kind=Room) as stage:
        for key in [stage.key_of(each) for each in stage.members]:
            await talk(stage, key)


async def test_the_owner_reports_the_sockets_of_its_entities_and_where_they_end() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        for client, _ in await of_all(stage, key, "ann", "bob"):
            client.send("hello")
        report = one.station.report()
        edges = {each.station.owner.address for each in stage.members}
        assert (report.sockets, {each.edge for each in report.edges}) == (2, edges)
        assert [each.sockets for each in report.edges] == [1, 1]
        assert two.station.report().sockets == 0
        leaving = asyncio.ensure_future(one.station.owner.close(drain=2))
        await stage.until(leaving.done)
        await stage.until(lambda: two.station.report().sockets == 2)
        assert one.station.report().sockets == 0, "it counts what another process has now"


async def test_a_socket_stays_open_when_its_key_moves_and_nothing_is_lost_or_doubled() -> None:
    async with on_stage(2, kind=Room) as stage:
        one = stage.members[0]
        key = stage.key_of(one)
        (ann, _), (bob, _) = await of_all(stage, key, "ann", "bob")
        three = await stage.enter(kind=Room)
        said = [f"{i}" for i in range(60)]
        for text in said:
            ann.send(text)
            bob.send(text)
        leaving = asyncio.ensure_future(one.station.owner.close(drain=2))
        await stage.until(leaving.done)
        assert one.station.owner.check(key) is None
        for text in said:
            bob.send(text)
        await stage.until(lambda: min(len(ann.received), len(bob.received)) >= 180)
        assert [each for each in bob.received if each.startswith("ann")] == [
            f"ann: {text}" for text in said
        ]
        assert [each for each in bob.received if each.startswith("bob")] == [
            f"bob: {text}" for text in said * 2
        ]
        assert ann.received == bob.received
        assert (ann.code, bob.code) == (None, None)
        assert await stage.done(three[key].people()) == ["ann", "bob"]
        for client in (ann, bob):
            client.leave()


async def test_an_edge_that_answers_late_brings_nothing_old_back() -> None:
    """The key has gone and come back meanwhile, and the state that another member kept counts."""
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        (ann, _), (bob, _) = await of_all(stage, key, "ann", "bob")
        ann.send("first")
        await stage.until(lambda: ann.received and bob.received)
        await stage.move(key, two)
        ann.send("second")
        await stage.until(lambda: len(ann.received) == len(bob.received) == 2)
        await stage.move(key, one)
        (live,) = [each for each in one.station.host._live.values() if each.key == key]
        received = dict.fromkeys(live.envelope.sockets, 1)
        one.station.host.confirm(key, received)
        ann.send("third")
        await stage.until(lambda: len(ann.received) == len(bob.received) == 3)
        carol, _ = attached(two, key, "carol")
        await stage.until(lambda: len(carol.received) == 3)
        assert carol.received == ["ann: first", "ann: second", "ann: third"]
        for client in (ann, bob, carol):
            client.leave()


async def test_without_a_store_a_crash_closes_the_sockets_with_1012() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        bob, task = attached(two, key, "bob")
        bob.send("hello")
        await stage.until(lambda: bob.received)
        await stage.crash(one)
        await stage.done(task)
        assert (bob.received, bob.code) == (["bob: hello"], 1012)
        assert await stage.done(two[key].people()) == []


async def test_with_a_store_a_socket_survives_the_crash_of_its_owner(
    shared_store_url: str,
) -> None:
    async with on_stage(2, kind=Room, store=shared_store_url) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        bob, _ = attached(two, key, "bob")
        for i in range(5):
            bob.send(str(i))
        await stage.until(lambda: len(bob.received) == 5)
        await stage.crash(one)
        bob.send("again")
        await stage.until(lambda: len(bob.received) == 6)
        assert bob.received == [f"bob: {i}" for i in range(5)] + ["bob: again"]
        assert bob.code is None
        bob.leave()


async def test_a_handler_that_raises_closes_its_socket_and_sends_nothing() -> None:
    async with on_stage(1, kind=Room) as stage:
        ann, task = attached(stage.members[0], "a", "ann")
        ann.send("early")
        ann.send("fail")
        await stage.done(task)
        assert (ann.received, ann.code) == (["early"], 1011)


async def test_a_socket_of_a_key_that_is_too_long_closes_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever may connect chooses the key: no connection between members ends by it, and no log
    grows.
    """
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        (ann, _), (bob, _) = await of_all(stage, stage.key_of(two), "ann", "bob")
        cat, task = attached(one, stage.key_of(two, "x" * KEY_BYTES), "cat")
        await stage.done(task)
        assert (cat.received, cat.code) == ([], 1011)
        ann.send("hello")
        await stage.until(lambda: bob.received == ["ann: hello"])
        assert "class has failed" not in caplog.text


async def test_a_client_that_never_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_socket, "CLOSE_SECONDS", 0.01)
    async with on_stage(1, kind=Room) as stage:
        (rooms,) = stage.members
        ann, task = attached(rooms, "a", "ann")
        bob, _ = attached(rooms, "a", "bob")
        await stage.until(lambda: ann.is_accepted)
        await come_to_rest()
        ann.reads.clear()
        line = "x" * 100_000
        for _ in range(12):
            await stage.done(rooms["a"].say(line))
        await stage.done(task)
        assert len(bob.received) >= 12
        ann.reads.set()
        bob.leave()


async def test_a_socket_at_rest_has_no_task_but_that_which_attached_it() -> None:
    async with on_stage(1, kind=Room) as stage:
        (rooms,) = stage.members
        before = len(asyncio.all_tasks())
        some = [attached(rooms, "a", f"n{n}") for n in range(10)]
        for client, _ in some:
            client.send("hello")
        await stage.until(lambda: all(len(client.received) >= 10 for client, _ in some))
        await come_to_rest()
        assert len(asyncio.all_tasks()) == before + 10
        for client, task in some:
            client.leave()
            await stage.done(task)


async def test_a_code_that_no_socket_may_send_is_refused_and_closes_nothing() -> None:
    async with on_stage(1, kind=Room) as stage:
        (rooms,) = stage.members
        ann, task = attached(rooms, "a", "ann")
        await stage.until(lambda: ann.is_accepted)
        await come_to_rest()
        for wrong in (0, 999, 1005, 1006, 1015, 2000, 5000, True, 1000.5, "1000", None):
            with pytest.raises(UsageError, match="a code that may be sent"):
                await stage.done(rooms["a"].close_all(wrong))
        assert await stage.done(rooms["a"].people()) == ["ann"]
        await stage.done(rooms["a"].close_all(1011))
        await stage.done(task)
        assert ann.code == 1011


async def test_an_attachment_that_cannot_be_sent_is_refused() -> None:
    async with on_stage(1, kind=Room) as stage:
        for wrong in (object(), "x" * 5000):
            client, task = attached(stage.members[0], "a", wrong)
            with pytest.raises(ValueTypeError, match="attachment"):
                await task
            assert not client.is_accepted


async def test_a_socket_whose_worker_has_died_is_ended_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge, "ASK_SECONDS", 0.05)
    monkeypatch.setattr(station, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(station, "SILENT_SECONDS", 1.0)
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        (ann, _), (_, gone) = await of_all(stage, key, "ann", "bob")
        await stage.crash(two)
        gone.cancel()
        await stage.until(lambda: ann.received)
        assert one.station.host.silent_sockets(1.0) == [], "and nothing is left to be ended again"
        ann.send("alone")
        await stage.until(lambda: "ann: alone" in ann.received)
        assert ann.received == ["bob has left", "ann: alone"]
        assert await stage.done(one[key].people()) == ["ann"]
        ann.leave()


async def test_people_of_a_killed_worker_leave_before_they_have_been_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_watch, "PAUSES", (0.0, 0.01, 0.01))
    now = asyncio.get_running_loop().time
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        (ann, _), (_, gone) = await of_all(stage, key, "ann", "bob")
        await stage.crash(two)
        gone.cancel()
        died = now()
        await stage.until(lambda: ann.received)
        assert ann.received == ["bob has left"]
        assert now() - died < station.SILENT_SECONDS / 2
        assert await stage.done(one[key].people()) == ["ann"]
        ann.leave()


async def test_people_of_the_worker_that_died_with_its_room_leave_as_soon(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_watch, "PAUSES", (0.0, 0.01, 0.01))
    now = asyncio.get_running_loop().time
    async with on_stage(2, kind=Room, store=store_url) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        (_, gone), (bob, _) = await of_all(stage, key, "ann", "bob")
        await stage.crash(one)
        gone.cancel()
        await stage.until(lambda: stage.owner_of(key) is two)
        assert "bob" in await stage.done(two[key].people())
        began = now()
        await stage.until(lambda: bob.received)
        assert now() - began < station.SILENT_SECONDS / 2
        assert (bob.received, bob.code) == (["ann has left"], None)
        assert await stage.done(two[key].people()) == ["bob"]
        bob.leave()


async def test_a_broken_connection_ends_no_socket() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        (ann, _), (bob, _) = await of_all(stage, key, "ann", "bob")
        for _ in range(5):
            assert stage.cluster.channels.cut()
            await stage.cluster.turn(1.0)
        await stage.cluster.turn(5.0)
        ann.send("still here")
        await stage.until(lambda: bob.received)
        assert bob.received == ann.received == ["ann: still here"]
        assert await stage.done(two[key].people()) == ["ann", "bob"]
        ann.leave()
        bob.leave()


async def test_an_edge_that_has_begun_anew_at_its_address_has_none_of_its_sockets() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        (ann, _), (_, gone) = await of_all(stage, key, "ann", "bob")
        two.station.edge._sockets.clear()
        assert stage.cluster.channels.cut()
        await stage.until(lambda: ann.received)
        assert ann.received == ["bob has left"]
        gone.cancel()
        ann.leave()


async def moved(
    stage: Stage, client: Client, key: str, before: Entities[Any], to: Entities[Any]
) -> None:
    """Have another edge go on with the one socket of an edge."""
    [socket] = before.station.edge._sockets.values()
    given = await stage.done(socket.give_up())
    assert given is not None
    for frame in given.unwritten:
        client.received.append(frame)
    if given.unanswered is not None:
        client.send_first(given.unanswered)
    end = SocketEnd.of(given.end)
    follower = EdgeSocket(socket.id, key, ServerEnd(client), end)
    task = asyncio.create_task(to.station.edge.go_on(follower))
    task.add_done_callback(lambda _: None)
    await stage.until(lambda: follower.is_connected)


@pytest.mark.parametrize("has_store", [False, True])
async def test_a_socket_goes_on_at_another_edge_and_no_frame_is_missing(
    tmp_path: Path,
    has_store: bool,
) -> None:
    options = {"store": f"sqlite:{tmp_path / 'store'}"} if has_store else {}
    async with on_stage(3, kind=Room, **options) as stage:
        first = stage.members[0]
        key = stage.key_of(first)
        one, two = (each for each in stage.members if each is not stage.owner_of(key))
        ann, task = attached(one, key, "ann")
        count = 0

        async def heard(*texts: str) -> None:
            nonlocal count
            count += len(texts)
            await stage.until(lambda: len(ann.received) == count)
            assert ann.received[-len(texts) :] == [f"ann: {each}" for each in texts]

        ann.send("hello")
        await heard("hello")
        for before, to in ((one, two), (two, one), (one, two)):
            ann.send("on the way")
            ann.send("and another")
            await moved(stage, ann, key, before, to)
            await heard("on the way", "and another")
        await stage.done(task)
        owner = stage.owner_of(key)
        assert owner is not None
        if has_store:
            await stage.crash(owner)
        else:
            await stage.move(key, one)
        await stage.cluster.turn(10.0)  # the next owner has asked the edge that it knows
        ann.send("after all")
        await heard("after all")
        assert await stage.done(two[key].people()) == ["ann"]
        assert ann.code is None
        ann.leave()


async def test_a_socket_that_is_given_up_is_not_taken_for_gone_by_an_owner_that_asks() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        ann, task = attached(two, key, "ann")
        await stage.until(lambda: ann.is_accepted and two.station.edge._sockets)
        [socket] = two.station.edge._sockets.values()
        await stage.until(lambda: socket.is_connected)
        given = await stage.done(socket.give_up())
        assert given is not None
        await stage.done(task)
        assert stage.cluster.channels.cut()  # so that the owner asks
        await stage.cluster.turn(5.0)
        assert await stage.done(two[key].people()) == ["ann"]
        two.station.edge.gone(socket)
        while await stage.done(two[key].people()):
            await stage.cluster.turn(0.1)


async def test_a_socket_whose_entity_is_unknown_at_the_next_edge_closes_with_1012() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        client = Client()
        socket = EdgeSocket(b"never seen", stage.key_of(one), ServerEnd(client))
        await stage.done(two.station.edge.go_on(socket))
        assert client.code == 1012
