"""Who asks only what anybody may ask keeps out nobody who can show that it may be there."""

import asyncio
from contextlib import suppress

import pytest

from tenure.manager.limits import ManagerLimits
from tenure.protocol.lease.messages import Hello, Introduction
from tenure.transport import bounded_port, connection_limits
from tenure.wire.lease import decode_to_owner, encode
from tenure.wire.versions import NEWEST
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import Serving, serving
from tests.unit.manager.test_limits import PEER, stream

pytestmark = pytest.mark.asyncio
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def asked(manager: Serving, path: str, peer: str = PEER) -> Connection:
    """A connection that has made a request, and is kept."""
    reader, writer = await stream(manager, peer)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def until_cut_off(connection: Connection) -> None:
    reader, writer = connection
    with suppress(ConnectionError):
        await reader.read()
    writer.close()


async def test_whoever_only_asked_whether_all_is_well_gives_way_to_an_owner() -> None:
    async with serving(limits=ManagerLimits(connections=4)) as manager:
        idle = [await asked(manager, "/healthz", f"127.0.0.{9 + at // 2}") for at in range(4)]
        owner = await manager.connect("/v1/owner")
        await owner.send_bytes(encode(Hello(pool="rooms", token=5), NEWEST))
        assert isinstance(decode_to_owner(await owner.receive_bytes(), NEWEST), Introduction)
        await until_cut_off(idle[0])
        for _, writer in idle:
            writer.close()


async def test_of_one_address_strangers_give_way_to_an_owner() -> None:
    limits = ManagerLimits(connections=8, connections_of_a_peer=2)
    async with serving(limits=limits) as manager:
        idle = [await asked(manager, "/healthz", "127.0.0.1") for _ in range(2)]
        owner = await manager.connect("/v1/owner")
        await owner.send_bytes(encode(Hello(pool="rooms", token=5), NEWEST))
        assert isinstance(decode_to_owner(await owner.receive_bytes(), NEWEST), Introduction)
        await until_cut_off(idle[0])
        idle[1][1].close()


async def test_whoever_has_shown_that_it_may_be_there_gives_way_to_nobody() -> None:
    async with serving(limits=ManagerLimits(connections=4, connections_of_a_peer=4)) as manager:
        known = [await asked(manager, "/v1/status") for _ in range(4)]
        reader, writer = await stream(manager, "127.0.0.10")
        assert b"there are 4 connections already" in await reader.read()
        for _, each in (*known, (reader, writer)):
            each.close()


async def test_strangers_have_a_part_of_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "LEAST_STRANGERS", 2)
    monkeypatch.setattr(bounded_port, "STRANGER_SECONDS", 10 * DEADLINE_SECONDS)
    limits = ManagerLimits(connections=8)
    async with serving(limits=limits) as manager:
        first, *others = [await asked(manager, "/healthz") for _ in range(3)]
        await until_cut_off(first)
        for _, writer in others:
            writer.close()


async def test_strangers_that_say_nothing_count_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "LEAST_STRANGERS", 2)
    limits = ManagerLimits(connections=8, silent_seconds=10 * DEADLINE_SECONDS)
    async with serving(limits=limits) as manager:
        first, *others = [await stream(manager, PEER) for _ in range(3)]
        await until_cut_off(first)
        for _, writer in others:
            writer.close()


async def test_a_stranger_may_be_idle_for_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_port, "STRANGER_SECONDS", 0.01)
    async with serving() as manager:
        reader, writer = await asked(manager, "/v1/status")
        await until_cut_off(await asked(manager, "/healthz"))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert await reader.readuntil(b"HTTP/1.1 200 ")
        writer.close()
