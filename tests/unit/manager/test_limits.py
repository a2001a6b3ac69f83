"""Over a limit a peer is told so and let go, and all others go on; one test for each limit."""

import asyncio
import logging
import socket
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import WSCloseCode, web

from tenure import Owner
from tenure.base.instants import Instant
from tenure.base.noted import Noted
from tenure.errors import ConfigurationError, TenureError
from tenure.manager.limits import ManagerLimits
from tenure.manager.noted import ServiceKind
from tenure.manager.strangers import MOST_TOLD, MOST_TOLD_OF_A_PEER, WINDOW_NS, StrangerNotes
from tenure.observe.events import Observer
from tenure.protocol.lease.leader import leader, pool_commands
from tenure.protocol.lease.messages import Held, Hello, LeaseRequest, Sync
from tenure.transport import bounded_port
from tenure.transport.rate_bound import (
    BYTES_OF_ONE,
    FLOODED_PART,
    MOST_REMEMBERED,
    REMEMBERED_NS,
    RateBound,
    RecentFloods,
)
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import Events, Serving, serving

PEER = "127.0.0.9"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def stream(
    manager: Serving, peer: str = "127.0.0.1"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection from another address of this host."""
    host, _, port = manager.service.url.removeprefix("http://").rpartition(":")
    return await asyncio.open_connection(host, int(port), local_addr=(peer, 0))


async def is_well(manager: Serving) -> bool:
    return (await manager.get("/healthz"))[0] == 200


@pytest.mark.asyncio
async def test_connections_of_one_peer_are_bounded_and_another_peer_comes_in() -> None:
    async with serving(limits=ManagerLimits(connections_of_a_peer=2)) as manager:
        first, second, third = [await stream(manager, PEER) for _ in range(3)]
        answer = (await third[0].read()).decode()
        assert answer.startswith("HTTP/1.1 503 ")
        assert "there are 2 connections from 127.0.0.9 already; try again later" in answer
        assert await is_well(manager)
        for reader, writer in (first, second):
            writer.write(GET)
            assert b"200" in await reader.readuntil(b"\r\n")
        first[1].close()
        while True:  # its place is free when the manager has seen that it is gone
            reader, writer = await stream(manager, PEER)
            writer.write(GET)
            answered = await reader.readline()
            writer.close()
            if b"200" in answered:
                break
        assert manager.counted("peer refused") >= 1
        for _, writer in (second, third):
            writer.close()


@pytest.mark.asyncio
async def test_connections_in_all_are_bounded() -> None:
    limits = ManagerLimits(connections=3, connections_of_a_peer=3)
    async with serving(limits=limits) as manager:
        assert (await manager.get("/v1/status"))[0] == 200  # whose connection is kept
        there = [await stream(manager, PEER) for _ in range(2)]
        reader, writer = await stream(manager, "127.0.0.10")
        assert b"there are 3 connections already" in await reader.read()
        assert await is_well(manager)
        for _, each in (*there, (reader, writer)):
            each.close()


@pytest.mark.asyncio
async def test_of_those_that_are_turned_away_only_some_are_told_why_at_one_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them takes a file until it has read that."""
    monkeypatch.setattr(bounded_port, "MOST_TOLD", 2)
    monkeypatch.setattr(bounded_port, "TOLD_SECONDS", DEADLINE_SECONDS)
    async with serving(limits=ManagerLimits(connections_of_a_peer=1)) as manager:
        there = [await stream(manager, PEER) for _ in range(6)]
        answers = [await reader.read() for reader, _ in there[1:]]
        assert [len(answer) > 0 for answer in answers] == [True, True, False, False, False]
        assert await is_well(manager)
        for _, writer in there:
            writer.close()


@pytest.mark.asyncio
async def test_who_was_told_why_it_is_turned_away_takes_no_file_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded_port, "MOST_TOLD", 1)
    monkeypatch.setattr(bounded_port, "TOLD_SECONDS", 0.01)
    async with serving(limits=ManagerLimits(connections_of_a_peer=1)) as manager:
        first = await stream(manager, PEER)
        for _ in range(2):
            answer = b""
            while not answer:  # as long as another takes the only place
                reader, writer = await stream(manager, PEER)
                answer = await reader.read()
                writer.close()
            assert b"there are 1 connections from 127.0.0.9 already" in answer
        first[1].close()


@pytest.mark.asyncio
async def test_messages_on_one_connection_are_bounded() -> None:
    limits = ManagerLimits(messages_a_second=1, syncs_at_once=5, flood_seconds=0.01)
    async with serving(limits=limits) as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        flood, other = await manager.connect("/v1/lookup"), await manager.connect("/v1/lookup")
        said = encode(
            Sync(pool="rooms", nonce=1, sequence=1, journal=0, leadership=0, lsn=0), NEWEST
        )
        for _ in range(7):
            await flood.send_bytes(said)
        while not (await flood.receive()).type.name.startswith("CLOS"):
            pass
        assert flood.close_code == WSCloseCode.POLICY_VIOLATION
        await other.send_bytes(said)
        assert (await other.receive()).type is aiohttp.WSMsgType.BINARY
        assert manager.counted("too many messages") == 1
        await other.close()


@pytest.mark.asyncio
async def test_pools_are_bounded_and_those_that_are_there_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (leader, pool_commands):
        monkeypatch.setattr(module, "POOLS_PER_MANAGER", 1)
    async with serving() as manager:
        first = {"name": "rooms", "kind": "hashed"}
        assert (await manager.post("/v1/pools", first))[0] == 201
        status, problem = await manager.post("/v1/pools", {"name": "more", "kind": "hashed"})
        assert (status, problem["error"]) == (409, pool_commands.FULL)
        url = manager.service.url
        with pytest.raises(TenureError, match="no manager keeps more"):
            async with Owner(url, pool="third", address="http://a"):
                pass
        assert (await manager.post("/v1/pools", first))[0] == 200
        async with Owner(url, pool="rooms", address="http://a") as owner:
            await owner.ready()


@pytest.mark.asyncio
async def test_requests_on_one_connection_are_bounded() -> None:
    limits = ManagerLimits(requests_a_second=1, requests_at_once=5, flood_seconds=0.01)
    async with serving(limits=limits) as manager:
        reader, writer = await stream(manager, PEER)
        for _ in range(5):
            writer.write(GET)
            await reader.readuntil(b'"status":"up"')
        writer.write(GET * 3)
        answers = (await reader.read()).decode()
        assert answers.count("HTTP/1.1 200 OK") <= 1
        assert answers.count("HTTP/1.1 429 Too Many Requests") == 1
        assert "more than 1 requests a second on one connection" in answers
        assert await is_well(manager)
        writer.close()


@pytest.mark.asyncio
async def test_where_a_flood_came_from_less_is_allowed_at_once_and_elsewhere_as_much() -> None:
    limits = ManagerLimits(requests_a_second=1, requests_at_once=40, flood_seconds=0.01)

    async def asked(peer: str) -> int:
        reader, writer = await stream(manager, peer)
        for answered in range(100):
            writer.write(GET)
            if b" 200 " not in await reader.readuntil(b"\r\n\r\n"):
                writer.close()
                return answered
            await reader.readuntil(b"}")
        return 100

    async with serving(limits=limits) as manager:
        first, again, other = [await asked(peer) for peer in (PEER, PEER, "127.0.0.8")]
        assert min(first, other) >= 40
        assert again < 20, "it may be more than 2: one each second"


@pytest.mark.asyncio
async def test_who_flooded_with_messages_may_send_fewer_at_once_when_it_comes_back() -> None:
    limits = ManagerLimits(messages_a_second=1, syncs_at_once=40, flood_seconds=0.01)
    sync = encode(Sync(pool="rooms", nonce=1, sequence=1, journal=0, leadership=0, lsn=0), NEWEST)

    async def answered() -> int:
        flood = await manager.connect("/v1/lookup")
        for count in range(100):
            await flood.send_bytes(sync)
            if (await flood.receive()).type is not aiohttp.WSMsgType.BINARY:
                return count
        return 100

    async with serving(limits=limits) as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        first, again = await answered(), await answered()
        assert first >= 40
        assert again < 20, "it may be more than 2: one each second"


def test_a_flood_is_remembered_for_a_while() -> None:
    floods, most = RecentFloods(), 40
    floods.add("10.0.0.1", Instant(5))
    last = Instant(5 + REMEMBERED_NS - 1)
    assert floods.at_once("10.0.0.1", most, last) == most // FLOODED_PART
    assert floods.at_once("10.0.0.1", 1, last) == 1
    assert floods.at_once("10.0.0.2", most, last) == most
    assert floods.at_once("10.0.0.1", most, Instant(5 + REMEMBERED_NS)) == most


def test_of_very_many_floods_the_one_longest_ago_is_forgotten() -> None:
    floods = RecentFloods()
    for number in range(MOST_REMEMBERED):
        floods.add(f"peer {number}", Instant(0))
    floods.add("peer 0", Instant(1))
    floods.add("one more", Instant(2))
    known = {peer: floods.at_once(peer, 40, Instant(3)) for peer in ("peer 0", "peer 1", "peer 2")}
    assert known == {"peer 0": 2, "peer 1": 40, "peer 2": 2}


@pytest.mark.asyncio
@pytest.mark.parametrize("by_messages", [True, False])
async def test_who_floods_is_left_waiting_before_it_is_let_go(*, by_messages: bool) -> None:
    """A client that is disconnected at once would come back at once, and a connection costs more
    than a message.
    """
    limits = ManagerLimits(
        messages_a_second=1, syncs_at_once=1, requests_a_second=1, flood_seconds=0.3
    )
    sync = encode(Sync(pool="rooms", nonce=1, sequence=1, journal=0, leadership=0, lsn=0), NEWEST)
    async with serving(limits=limits) as manager:
        loop = asyncio.get_running_loop()
        if by_messages:
            flood = await manager.connect("/v1/lookup")
            began = loop.time()
            for _ in range(3):
                await flood.send_bytes(sync)
            while not (await flood.receive()).type.name.startswith("CLOS"):
                pass
        else:
            reader, writer = await stream(manager, PEER)
            began = loop.time()
            writer.write(GET * 30)
            await reader.read()
            writer.close()
        assert loop.time() - began >= limits.flood_seconds


async def large(request: web.Request) -> web.Response:
    return web.Response(body=bytes(32 << 20))  # more than sockets hold


@pytest.mark.asyncio
async def test_requests_that_wait_for_the_answer_to_another_are_bounded() -> None:
    async with serving() as manager:
        reader, writer = await stream(manager, PEER)
        writer.write(GET * 1_000)
        with suppress(ConnectionError):  # whatever it goes on sending is not read
            assert b"429" in await reader.readline()
        assert await is_well(manager)
        assert manager.counted("too many messages") == 1
        writer.close()


@pytest.mark.asyncio
async def test_who_reads_nothing_of_an_answer_is_cut_off() -> None:
    def add_pages(app: web.Application) -> None:
        app.router.add_get("/dashboard/large", large)

    limits = ManagerLimits(stuck_seconds=0.1)
    async with serving(limits=limits, add_pages=add_pages) as manager:
        host, _, port = manager.service.url.removeprefix("http://").rpartition(":")
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect((host, int(port)))
            silent.sendall(b"GET /dashboard/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await Events(manager.service.observer).wait_for("peer refused")
            assert await is_well(manager)


@pytest.mark.asyncio
async def test_what_is_no_http_is_told_in_a_line_and_not_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Aiohttp would log a stack trace of each."""
    async with serving() as manager:
        for _ in range(MOST_TOLD_OF_A_PEER + 5):
            reader, writer = await stream(manager, PEER)
            writer.write(b"GET /\xff HTTP/1.1\r\n\r\n")
            assert b"400" in await reader.readline()
            writer.close()
        assert manager.counted("peer refused") == MOST_TOLD_OF_A_PEER + 5
        assert await is_well(manager)
    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(told) <= MOST_TOLD_OF_A_PEER
    assert told[0].startswith(
        f"peer refused: {PEER}: what it sent is not HTTP: Invalid char in url"
    )
    assert "Traceback" not in caplog.text


@pytest.mark.asyncio
async def test_a_long_path_is_told_in_part() -> None:
    async with serving() as manager:
        status, problem = await manager.get("/" + "x" * 5_000)
        assert status == 404
        assert len(problem["error"]) < 300


@pytest.mark.asyncio
async def test_a_handshake_that_cannot_be_is_a_bad_request() -> None:
    async with serving() as manager:
        reader, writer = await stream(manager)
        writer.write(
            b"GET /v1/owner HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \xff\r\n\r\n"
        )
        assert b"400" in await reader.readline()
        writer.close()


def test_what_strangers_cause_is_counted_always_and_told_within_bounds() -> None:
    now, told = Instant(0), []
    observer = Observer("tenure.test")
    observer.subscribe(lambda noted: told.append(noted.text))
    notes = StrangerNotes(observer, lambda: now)
    for number in range(MOST_TOLD):
        for _ in range(MOST_TOLD_OF_A_PEER + 1):
            notes.note(Noted(ServiceKind.NOT_ALLOWED), f"10.0.0.{number}")
    assert len(told) == MOST_TOLD
    all_of_them = MOST_TOLD * (MOST_TOLD_OF_A_PEER + 1)
    assert observer.counters["request not allowed"] == all_of_them
    now = Instant(WINDOW_NS)
    notes.note(Noted(ServiceKind.NOT_ALLOWED), "10.0.0.1")
    more = f"more was refused than is told: {all_of_them - MOST_TOLD} in a minute"
    assert told[MOST_TOLD:] == [more, "request not allowed"]


def test_one_peer_does_not_hide_what_the_others_cause() -> None:
    told: list[str] = []
    observer = Observer("tenure.test")
    observer.subscribe(lambda noted: told.append(noted.detail))
    notes = StrangerNotes(observer, lambda: Instant(0))
    for _ in range(MOST_TOLD):
        notes.note(Noted(ServiceKind.NOT_ALLOWED, detail="loud"), "10.0.0.1")
    notes.note(Noted(ServiceKind.NOT_ALLOWED, detail="quiet"), "10.0.0.2")
    assert told == ["loud"] * MOST_TOLD_OF_A_PEER + ["quiet"]


def test_a_rate_is_so_many_at_once_and_then_so_many_a_second() -> None:
    rate = RateBound(a_second=10, at_once=3)
    second = 1_000_000_000
    assert [rate.allows(Instant(0)) for _ in range(4)] == [True, True, True, False]
    assert [rate.allows(Instant(second // 10)) for _ in range(2)] == [True, False]
    assert [rate.allows(Instant(10 * second)) for _ in range(4)] == [True, True, True, False]


def test_what_is_large_counts_for_several_and_is_allowed_after_a_rest() -> None:
    rate, second = RateBound(a_second=10, at_once=30), 1_000_000_000
    assert [rate.allows(Instant(0), 12) for _ in range(3)] == [True, True, False]
    assert rate.allows(Instant(0), 6)
    assert rate.allows(Instant(10 * second), 1_000)
    assert not rate.allows(Instant(10 * second))


@pytest.mark.asyncio
async def test_a_large_message_counts_for_several() -> None:
    """One of 1.4 MB may keep a leader busy for a second, where a usual one takes 0.1 ms."""
    limits = ManagerLimits(messages_a_second=1, messages_at_once=20, flood_seconds=0.01)
    async with serving(limits=limits) as manager:
        flood = await manager.connect("/v1/owner")
        said = encode(Hello(pool="rooms", token=1, name="n" * 200), NEWEST)
        for _ in range(15):
            await flood.send_bytes(said)
            assert (await flood.receive()).type is aiohttp.WSMsgType.BINARY
        held = (
            Held(start=bytes([i]) * 1000, end=None if i == 31 else bytes([i + 1]) * 1000, number=1)
            for i in range(1, 32)
        )
        large = LeaseRequest(
            pool="rooms",
            incarnation=1,
            owner_nonce=1,
            manager_nonce=1,
            sequence=1,
            journal=1,
            leadership=1,
            held=tuple(held),
        )
        assert len(encode(large, NEWEST)) > 5 * BYTES_OF_ONE
        await flood.send_bytes(encode(large, NEWEST))
        assert (await flood.receive()).type.name.startswith("CLOS")
        assert flood.close_code == WSCloseCode.POLICY_VIOLATION


@pytest.mark.parametrize("name", ManagerLimits.__struct_fields__)
def test_a_limit_is_more_than_nothing(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"limits: {name} is 0; a limit is more than 0"):
        ManagerLimits(**{name: 0})
