"""Queues over HTTP: order, acknowledgement, one reader, losses told, and what bad input gets."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

import aiohttp
import pytest

from tenure import Socket
from tenure.errors import PoolError, ServiceRefusal
from tenure.services import serving
from tenure.services.limits import REQUESTS
from tenure.services.queues.client import QueuesClient
from tenure.services.queues.entries import ENTRIES, SourcePlace
from tenure.services.queues.queue import IDS, SOURCES, TAKEN_OVER, UNNAMED, WINDOW
from tenure.services.queues.service import Queues
from tenure.testing.clock import come_to_rest
from tests.patience import DEADLINE_SECONDS
from tests.unit.services.stage import Replied, ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio


async def drain(stage: ServiceStage, key: str = "q", **body: object) -> Replied:
    return await stage.ask("POST", f"/queues/{key}/drain", body)


async def enqueue(stage: ServiceStage, message: object, key: str = "q", **body: object) -> Replied:
    return await stage.ask("POST", f"/queues/{key}/entries", {"message": message, **body})


async def begun(stage: ServiceStage, key: str = "q") -> str:
    """A reader of a new queue, which has seen its first entry."""
    first = await drain(stage, key)
    (entry,) = first.body["entries"]
    assert entry["loss"] == {"began": True}
    reader: str = first.body["reader"]
    await drain(stage, key, reader=reader, acknowledge=entry["number"])
    return reader


async def heard(socket: "aiohttp.ClientWebSocketResponse[Any]") -> Any:  # noqa: ANN401
    return await socket.receive_json(timeout=DEADLINE_SECONDS)


async def looks_no_more(_: str) -> None: ...


async def fill(stage: ServiceStage, count: int) -> None:
    for number in range(count):
        await stage.service.entities["q"].enqueue(b"%d" % number, str(number))
        await asyncio.sleep(0)  # the manager is in this loop, too


def messages(reply: Replied) -> list[object]:
    return [each.get("message") for each in reply.body["entries"]]


async def test_entries_come_in_order_and_again_until_they_are_acknowledged() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        for number in range(5):
            assert (await enqueue(stage, number)).status == 201
        first = await drain(stage, reader=reader, most=3)
        assert messages(first) == [0, 1, 2]
        assert messages(await drain(stage, reader=reader)) == [0, 1, 2, 3, 4]
        upto = first.body["entries"][1]["number"]
        rest = await drain(stage, reader=reader, acknowledge=upto)
        assert messages(rest) == [2, 3, 4]
        said = {"reader": reader, "number": rest.body["entries"][-1]["number"]}
        shown = await stage.ask("POST", "/queues/q/acknowledge", said)
        assert (shown.status, shown.body["entries"]) == (200, 0)
        assert messages(await drain(stage, reader=reader)) == []


async def begun_to_wait(stage: ServiceStage, reader: str) -> "asyncio.Task[Replied]":
    """A poll that has come to the queue, and waits there for an entry."""
    live = stage.service.entities.station.host._live["q"]
    waiting = asyncio.create_task(drain(stage, reader=reader, wait=20))
    while not live.readings:
        await come_to_rest()
    return waiting


async def test_a_poll_waits_for_an_entry_and_no_longer_than_it_says() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        waiting = await begun_to_wait(stage, reader)
        await enqueue(stage, "x")
        assert messages(await waiting) == ["x"]
        await begun(stage, "other")
        other = await drain(stage, "other", wait=0.01)
        assert messages(other) == []


async def test_a_repeated_message_is_put_in_once() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        first = await enqueue(stage, "x", id="one")
        again = await enqueue(stage, "x", id="one")
        assert (again.status, again.body) == (200, {**first.body, "is_repeat": True})
        entries = (await drain(stage, reader=reader)).body["entries"]
        await drain(stage, reader=reader, acknowledge=entries[-1]["number"])
        assert (await enqueue(stage, "x", id="one")).body["is_repeat"], "also when it was read"
        await fill(stage, IDS.most)
        state = await stage.ask("GET", "/queues/q")
        assert state.body["entries"] <= ENTRIES.most
        assert not (await enqueue(stage, "x", id="one")).body["is_repeat"]


async def test_the_newest_reader_takes_over_and_the_other_is_told() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        waiting = await begun_to_wait(stage, reader)
        newer = (await drain(stage)).body["reader"]
        async with asyncio.timeout(15):  # at once, and not when its time is over
            told = await waiting
        assert (told.status, told.body["error"]) == (409, "taken_over")
        assert (await drain(stage, reader=reader)).status == 409
        said = {"reader": reader, "number": 1}
        assert (await stage.ask("POST", "/queues/q/acknowledge", said)).status == 409
        await enqueue(stage, "x")
        assert messages(await drain(stage, reader=newer)) == ["x"]


async def test_a_socket_gets_entries_acknowledges_and_is_taken_over() -> None:
    async with on_service_stage("queues") as stage:
        await begun(stage)
        await enqueue(stage, 0)
        url = stage.url + "/queues/q/socket"
        async with stage.session.ws_connect(url) as socket:
            first = await heard(socket)
            assert first["message"] == 0
            await enqueue(stage, 1)
            assert (await heard(socket))["message"] == 1
            await socket.send_json({"acknowledge": first["number"]})
            await socket.send_json({"acknowledge": 1000})
            assert (await heard(socket))["problem"]["error"] == "never_sent"
            await socket.send_str("nonsense")
            assert (await heard(socket))["problem"]["error"] == "json"
            await socket.send_bytes(b"\xff")
            assert (await heard(socket))["problem"]["error"] == "json"
            async with stage.session.ws_connect(url) as newer:
                assert (await heard(newer))["message"] == 1, "not acknowledged"
                closed = await socket.receive(timeout=DEADLINE_SECONDS)
                assert closed.type is aiohttp.WSMsgType.CLOSE
                assert socket.close_code == TAKEN_OVER
                reader = (await drain(stage)).body["reader"]
                assert (
                    await newer.receive(timeout=DEADLINE_SECONDS)
                ).type is aiohttp.WSMsgType.CLOSE
        assert messages(await drain(stage, reader=reader)) == [1]


async def test_a_socket_is_sent_a_window_and_more_as_it_acknowledges() -> None:
    async with on_service_stage("queues") as stage:
        await begun(stage)
        count = 2 * WINDOW + 10
        await fill(stage, count)
        url = stage.url + "/queues/q/socket"
        async with stage.session.ws_connect(url) as socket:
            got = [await heard(socket) for _ in range(WINDOW)]
            with pytest.raises(asyncio.TimeoutError):
                await socket.receive_json(timeout=0.1)
            await socket.send_json({"acknowledge": got[-1]["number"]})
            got += [await heard(socket) for _ in range(WINDOW)]
            await socket.send_json({"acknowledge": got[-1]["number"]})
            got += [await heard(socket) for _ in range(10)]
        assert [each["message"] for each in got] == list(range(count))


async def test_a_full_queue_drops_its_oldest_and_says_so() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        many = ENTRIES.most + 50
        await fill(stage, many)
        entries = (await drain(stage, reader=reader, most=1000)).body["entries"]
        assert entries[0]["loss"] == {"dropped": many - ENTRIES.most + 1}
        assert [each["message"] for each in entries[1:]] == list(range(51, many))
        numbers = [each["number"] for each in entries]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        big = "x" * 60_000
        for number in range(20):
            await enqueue(stage, big, id=f"big-{number}")
        found = await drain(stage, reader=reader, most=1000)
        assert found.body["entries"][0]["loss"]["dropped"] > 1000
        assert messages(found)[-8:] == [big] * 8


async def test_losses_of_a_watched_pool_are_delivered_and_only_of_watched_keys() -> None:
    async with on_service_stage("documents", pool="devices") as documents:
        manager = documents.manager
        for key in ("pc", "phone"):
            await documents.ask("PUT", f"/documents/{key}", {"sections": {}})
        async with on_service_stage("queues", manager=manager, watch=("devices",)) as stage:
            began = await stage.ask("PUT", "/queues/q", {"watch": {"devices": ["pc"]}})
            assert (began.status, began.body["watch"]) == (201, {"devices": ["pc"]})
            more = {"devices": ["pc", "phone"]}
            also = await stage.ask("POST", "/queues/q/watch", more)
            assert also.body["watch"] == {"devices": ["pc", "phone"]}
            other = await stage.ask("PUT", "/queues/q", {"watch": {"devices": ["pc"]}})
            assert (other.status, other.body["watch"]) == (200, {"devices": ["pc"]})
            reader = await begun(stage)
            waiting = asyncio.create_task(drain(stage, reader=reader, wait=20))
            await come_to_rest()
            station = documents.service.entities.station
            lease = station.owner.check("pc")
            assert lease is not None
            assert began.body["leases"] == {"devices": {"pc": lease.number}}
            await station.owner.close(drain=0)  # its entries are lost
            told = await waiting
            while not told.body["entries"]:
                told = await drain(stage, reader=reader, wait=20)
            assert [each["loss"] for each in told.body["entries"]] == [
                {"pools": {"devices": ["pc"]}}
            ]


async def test_a_queue_that_has_gone_is_no_longer_among_those_that_look_for_losses() -> None:
    async with on_service_stage("documents", pool="devices") as documents:
        watching: dict[str, Any] = {"manager": documents.manager, "watch": ("devices",)}
        async with on_service_stage("queues", **watching) as stage:
            pools = cast("Queues", stage.service).pools
            for number in range(3):
                path = f"/queues/{number}"
                await stage.ask("PUT", path, {"watch": {"devices": ["pc"]}})
                assert list(pools._queues) == [str(number)]
                assert (await stage.ask("DELETE", path)).status == 204
                assert not pools._queues


async def test_a_loss_that_came_while_the_queue_moved_is_delivered_by_whoever_has_it_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process that has it was told before, and the one that had it did not look any more."""
    async with on_service_stage("documents", pool="devices") as documents:
        await documents.ask("PUT", "/documents/pc", {"sections": {}})
        watching: dict[str, Any] = {"manager": documents.manager, "watch": ("devices",)}
        async with AsyncExitStack() as leaving:
            first = await leaving.enter_async_context(on_service_stage("queues", **watching))
            await first.ask("PUT", "/queues/q", {"watch": {"devices": ["pc"]}})
            monkeypatch.setattr(cast("Queues", first.service).pools, "_check", looks_no_more)
            station = documents.service.entities.station
            await station.owner.close(drain=0)  # its entries are lost
            async with on_service_stage("queues", **watching) as second:
                await leaving.aclose()
                entries = (await drain(second)).body["entries"]
        assert [each["loss"] for each in entries] == [
            {"began": True},
            {"pools": {"devices": ["pc"]}},
        ]


async def test_what_a_reader_acknowledges_of_an_earlier_life_concerns_the_present_one_nothing() -> (
    None
):
    async with on_service_stage("queues") as stage:
        await begun(stage)
        await enqueue(stage, "x")
        found = await drain(stage, reader="1.1.1.ab", acknowledge=1000)
        found = await drain(stage, reader=found.body["reader"], acknowledge=1000)
        assert (found.status, messages(found)) == (200, ["x"])


@pytest.mark.parametrize("late", [UNNAMED, "1.1.1.ab"])
async def test_a_question_that_comes_late_takes_nothing_over(late: str) -> None:
    """Its reader has ended, so that nobody would read any more."""
    async with on_service_stage("queues") as stage, QueuesClient(stage.url) as queues:
        reader = queues.reader("q")
        assert (await reader.next(wait=0))[0].loss is not None
        assert (await drain(stage, reader=late, wait=20)).body["entries"] == []
        await enqueue(stage, "x")
        entries = await reader.next(wait=0)
        await reader.acknowledge(entries[-1].number)


async def test_whoever_was_named_later_and_reads_is_the_reader() -> None:
    async with on_service_stage("queues") as stage:
        first, second, third = [
            (await drain(stage, reader=UNNAMED)).body["reader"] for _ in range(3)
        ]
        assert (await drain(stage, reader=second)).status == 200
        assert (await drain(stage, reader=first)).body["error"] == "taken_over"
        assert (await drain(stage, reader=third)).status == 200
        assert (await drain(stage, reader=second)).body["error"] == "taken_over"
        life = third.partition(".")[2]
        for made_up in ("9" * 30, "4", "-1", "x", ""):
            refused = await drain(stage, reader=f"{made_up}.{life}")
            assert refused.body["error"] == "taken_over", made_up


async def test_a_reader_that_asks_through_an_older_process_is_not_refused() -> None:
    """That process waits for entries under the name that was given, and then asks once more."""
    async with on_service_stage("queues") as stage:
        former = await begun(stage)
        queue = stage.service.entities["q"]
        named = await queue.sign_on("1.1.1.ab", 0, 100)
        await queue.wait(named.reader, DEADLINE_SECONDS)
        assert (await queue.sign_on(named.reader, 0, 100)).reader == named.reader
        assert (await drain(stage, reader=former)).body["error"] == "taken_over"


async def test_a_socket_that_was_taken_over_acknowledges_nothing_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not even in the moment before it is closed, which this test prolongs."""
    monkeypatch.setattr(Socket, "close", lambda *_: None)
    async with on_service_stage("queues") as stage:
        await begun(stage)
        await enqueue(stage, "x")
        async with stage.session.ws_connect(stage.url + "/queues/q/socket") as socket:
            number = (await heard(socket))["number"]
            reader = (await drain(stage)).body["reader"]
            await socket.send_json({"acknowledge": number})
            await socket.ping()
            await asyncio.sleep(0.1)
            assert messages(await drain(stage, reader=reader)) == ["x"]


async def test_a_pool_that_is_not_watched_is_named() -> None:
    async with on_service_stage("queues") as stage:
        found = await stage.ask("PUT", "/queues/q", {"watch": {"devices": ["pc"]}})
        assert (found.status, found.body["error"]) == (422, "pool")
        assert "devices" in found.body["detail"]
        assert (await stage.ask("GET", "/queues/q")).status == 404, "nothing of it was kept"


async def test_what_is_gone_or_unknown_is_said() -> None:
    async with on_service_stage("queues") as stage:
        asked: list[tuple[str, str, object]] = [
            ("GET", "/queues/q", None),
            ("DELETE", "/queues/q", None),
            ("POST", "/queues/q/watch", {}),
            ("POST", "/queues/q/entries", {"message": 1}),
            ("POST", "/queues/q/acknowledge", {"reader": "1.1", "number": 1}),
        ]
        for method, path, body in asked:
            assert (await stage.ask(method, path, body)).status == 404
        await begun(stage)
        assert (await stage.ask("DELETE", "/queues/q")).status == 204
        gone = await enqueue(stage, 1)
        assert (gone.status, gone.body["gone_at"] > 1e9) == (410, True)
        await begun(stage)
        assert (await enqueue(stage, 1)).status == 201


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/queues/q/entries", b"{", 400, "json"),
        ("/queues/q/entries", {}, 422, "shape"),
        ("/queues/q/entries", {"message": "x" * 65_536}, 413, "limit"),
        ("/queues/q/entries", {"message": 1, "id": "i" * 201}, 413, "limit"),
        ("/queues/q/drain", {"wait": 26}, 413, "limit"),
        ("/queues/q/drain", {"most": 1001}, 422, "shape"),
        ("/queues/q/drain", {"wait": "x"}, 422, "shape"),
        ("/queues/q/acknowledge", {"reader": "9", "number": 1}, 409, "began_anew"),
        ("/queues/" + "k" * 513 + "/drain", {}, 413, "limit"),
    ],
)
async def test_bad_input_gets_a_clear_answer(
    path: str, body: object, status: int, error: str
) -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        found = await stage.ask("POST", path, body)
        assert (found.status, found.body["error"]) == (status, error)
        never = await drain(stage, reader=reader, acknowledge=99)
        assert (never.status, never.body["error"]) == (409, "never_sent")
        too_many = {"watch": {"p": ["k"] * 257}}
        assert (await stage.ask("PUT", "/queues/q", too_many)).status == 429
        too_long = {"watch": {"p": ["k" * 513]}}
        refused = await stage.ask("PUT", "/queues/q", too_long)
        assert (refused.status, refused.body["limit"]) == (413, "key_bytes")
        assert (await enqueue(stage, 1)).status == 201


async def test_one_request_too_many_is_refused_and_disturbs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "REQUESTS", REQUESTS._replace(most=2))
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        waiting = asyncio.create_task(drain(stage, reader=reader, wait=20))
        await begun(stage, "other")
        also = asyncio.create_task(drain(stage, "other", wait=20))
        live = stage.service.entities.station.host._live
        while not (live["q"].readings and live["other"].readings):
            await come_to_rest()
        refused = await stage.ask("GET", "/queues/q")
        assert (refused.status, refused.body["limit"]) == (503, "requests")
        assert refused.headers["Retry-After"]
        await stage.service.entities["q"].enqueue(b'"x"', "x")
        assert messages(await waiting) == ["x"]
        assert (await stage.ask("GET", "/queues/q")).status == 200
        await stage.service.entities["other"].enqueue(b'"y"', "y")
        assert messages(await also) == ["y"]


async def test_a_pool_that_does_not_exist_cannot_be_watched() -> None:
    with pytest.raises(PoolError, match="nowhere"):
        async with on_service_stage("queues", watch=("nowhere",)):
            pytest.fail("it has begun")


async def test_a_poll_whose_client_has_left_costs_nothing() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        waiting = await begun_to_wait(stage, reader)
        live = stage.service.entities.station.host._live["q"]
        waiting.cancel()
        while live.readings:
            await come_to_rest()
        await enqueue(stage, "x")
        assert messages(await drain(stage, reader=reader)) == ["x"]


async def test_readers_and_writers_through_two_processes() -> None:
    async with (
        on_service_stage("queues") as one,
        on_service_stage("queues", manager=one.manager) as two,
        QueuesClient([one.url, two.url]) as queues,
    ):
        for key in ("a", "b", "c", "d"):
            await queues.begin(key)
            for number in range(10):
                await queues.enqueue(key, number)
            reader = queues.reader(key)
            got: list[object] = []
            async for entry in reader:
                got.append(entry.message if entry.loss is None else "loss")
                queues.go_on()
                if len(got) == 11:
                    break
            assert got == ["loss", *range(10)]
            await queues.reader(key).next(wait=0)
            with pytest.raises(ServiceRefusal) as refused:
                await reader.next(wait=0)
            assert refused.value.error == "taken_over"


def place(number: int, epoch: str = "7.1.a", source: str = "pubsub/news") -> dict[str, object]:
    return {"source": source, "epoch": epoch, "number": number}


async def test_a_late_message_of_a_source_is_not_put_into_a_new_life_of_the_queue() -> None:
    """A former owner of a topic, or an attempt that was given up, arrives when the queue has begun
    again and knows no id: what the present owner has put in meanwhile is later.
    """
    async with on_service_stage("queues") as stage:
        await begun(stage)
        for number in (1, 2):
            assert (await enqueue(stage, number, place=place(number))).status == 201
        await stage.ask("DELETE", "/queues/q")
        reader = await begun(stage)
        third = await enqueue(stage, 3, place=place(3))
        late = await enqueue(stage, 2, place=place(2))
        assert (late.status, late.body) == (200, {**third.body, "is_repeat": True})
        assert (await enqueue(stage, 1, place=place(1, source="pubsub/other"))).status == 201
        assert messages(await drain(stage, reader=reader)) == [3, 1]


async def test_a_message_of_an_earlier_epoch_is_refused() -> None:
    async with on_service_stage("queues") as stage:
        reader = await begun(stage)
        await enqueue(stage, "old", place=place(8))
        for epoch in ("7.2.a", "8.1.a", "2.1.b", "2.2.b"):  # the last of another journal
            assert (await enqueue(stage, epoch, place=place(1, epoch))).status == 201
        for epoch in ("7.1.a", "7.2.a", "8.1.a", "9.9.a", "2.1.b"):
            refused = await enqueue(stage, "late", place=place(9, epoch))
            assert (refused.status, refused.body["error"]) == (409, "late"), epoch
        found = messages(await drain(stage, reader=reader))
        assert found == ["old", "7.2.a", "8.1.a", "2.1.b", "2.2.b"]


async def test_a_queue_knows_the_last_sources_and_no_more() -> None:
    async with on_service_stage("queues") as stage:
        await begun(stage)
        queue = stage.service.entities["q"]
        for number in range(SOURCES.most + 1):
            await queue.enqueue(b"1", "", SourcePlace(str(number), "7.1.a", 5))
            await asyncio.sleep(0)
        assert (await queue.enqueue(b"1", "", SourcePlace("1", "7.1.a", 4))).is_repeat
        assert not (await queue.enqueue(b"1", "", SourcePlace("0", "7.1.a", 4))).is_repeat


@pytest.mark.parametrize(
    "wrong",
    [place(0), place(1, "seven"), place(1, source=""), {"source": "x"}, {**place(1), "more": 1}, 7],
)
async def test_a_place_of_the_wrong_shape_is_refused(wrong: object) -> None:
    async with on_service_stage("queues") as stage:
        await begun(stage)
        refused = await enqueue(stage, "x", place=wrong)
        assert (refused.status, refused.body["error"]) == (422, "shape")
