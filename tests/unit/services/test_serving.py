"""A service at its port ends in good order."""

import asyncio
from contextlib import AsyncExitStack
from functools import wraps
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from tenure.cli import service_gate
from tenure.cli.service_gate import service_port
from tenure.services import serving as serving_at_a_port
from tenure.services.documents.service import Documents
from tenure.services.operations import ServiceAnswer, ServiceRequest
from tenure.services.queues.service import WAIT_SECONDS, Queues
from tenure.services.service import ServiceSettings
from tenure.services.serving import ServiceDoor, served
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import serving
from tests.unit.services.stage import on_service_stage

pytestmark = pytest.mark.asyncio


async def test_a_client_that_keeps_its_connection_is_told_to_go_when_the_process_ends() -> None:
    """Otherwise one that asks on and on keeps the process from ending."""
    settings = ServiceSettings(pool="documents", managers="http://127.0.0.1:1")
    door = ServiceDoor(Documents(settings, watchdog=None), service_port)
    url = f"http://127.0.0.1:{await door.port.listen('127.0.0.1', 0, None)}/limits"
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as response:
                assert "Connection" not in response.headers
            async with asyncio.timeout(60):
                await door.emptied()
            async with session.get(url) as response:
                assert (response.status, response.headers["Connection"]) == (200, "close")
    finally:
        await door.port.close()


async def test_a_poll_is_answered_at_once_when_its_process_ends() -> None:
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        aiohttp.ClientSession() as session,
        serving(preset="default") as serves,
    ):
        async with on_service_stage("queues", manager=serves.service.url) as stage:
            begun = (await stage.ask("POST", "/queues/q/drain")).body["reader"]
            await stage.ask("POST", "/queues/q/drain", {"reader": begun, "acknowledge": 1})
            said, url = {"reader": begun, "wait": 25}, f"{stage.url}/queues/q/drain"
            poll = asyncio.create_task(answered(session.post(url, json=said)))
            await asyncio.sleep(0.2)  # it waits by now; earlier, it would be answered as well
            began = monotonic()
        assert await poll == {"reader": begun, "entries": []}
        assert monotonic() - began < WAIT_SECONDS.most / 2


async def answered(asking: Any) -> Any:  # noqa: ANN401
    async with asking as response:
        return await response.json()


class Held:
    """Reading documents, which goes on when it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may = asyncio.Event(), asyncio.Event()
        read = Documents.read

        @wraps(read)
        async def slowly(of: Documents, asked: ServiceRequest) -> ServiceAnswer:
            self.begun.set()
            await self.may.wait()
            return await read(of, asked)

        monkeypatch.setattr(Documents, "read", slowly)
        monkeypatch.setattr(service_gate, "ENDS_SECONDS", 0.01)  # nobody waits for these: they end


async def test_what_is_under_way_is_answered_before_the_process_ends_and_no_more_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It also still has its keys then."""
    held, waits = Held(monkeypatch), asyncio.Event()
    emptied = ServiceDoor.emptied

    async def told(door: ServiceDoor) -> None:
        waits.set()
        await emptied(door)

    monkeypatch.setattr(ServiceDoor, "emptied", told)
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        aiohttp.ClientSession() as session,
        serving(preset="default") as serves,
        AsyncExitStack() as stack,
    ):
        manager = serves.service.url
        stage = await stack.enter_async_context(on_service_stage("documents", manager=manager))
        await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        asking = asyncio.create_task(answered(session.get(f"{stage.url}/documents/d")))
        await held.begun.wait()
        leaving = asyncio.create_task(stack.aclose())
        waiting = asyncio.create_task(waits.wait())
        await asyncio.wait({leaving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not leaving.done()
        for _ in range(10):  # the listeners end in a few steps
            await asyncio.sleep(0)
        parts = urlsplit(stage.url)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(parts.hostname, parts.port)
        held.may.set()
        assert (await asking)["sections"] == {"a": 1}
        await leaving


async def test_what_is_never_answered_keeps_no_process_from_ending(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its connection goes with the process's keys, and leaves no socket open."""
    held = Held(monkeypatch)
    monkeypatch.setattr(serving_at_a_port, "ANSWER_SECONDS", 0.05)
    async with asyncio.timeout(DEADLINE_SECONDS), serving(preset="default") as serves:
        async with on_service_stage("documents", manager=serves.service.url) as stage:
            parts = urlsplit(stage.url)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(f"GET /documents/d HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
            await held.begun.wait()
        assert not held.may.is_set()
        assert "not answered" in caplog.text
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_fault_of_ours_is_answered_as_one_and_tells_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(of: Documents, asked: ServiceRequest) -> ServiceAnswer:
        raise ArithmeticError("a secret")

    monkeypatch.setattr(Documents, "read", wraps(Documents.read)(fails))
    async with on_service_stage("documents") as stage:
        found = await stage.ask("GET", "/documents/d")
        assert (found.status, found.body["error"]) == (500, "failed")
        assert "secret" not in str(found.body)
        assert "secret" in caplog.text
        assert (await stage.ask("PUT", "/documents/d", {"sections": {}})).status == 201


async def test_a_port_is_told_which_connections_are_sockets() -> None:
    """The port ends other connections if they read nothing for long."""
    told: list[bool] = []

    def port(app: web.Application, *, knows_peers: bool = False) -> Any:  # noqa: ANN401  # a ServicePort, with one method more
        listener = service_port(app, knows_peers=knows_peers)
        spoke = listener.spoke

        def heard(request: web.BaseRequest, *, is_socket: bool = False) -> None:
            told.append(is_socket)
            spoke(request, is_socket=is_socket)

        listener.spoke = heard  # type: ignore[method-assign]
        return listener

    async with (
        serving(preset="default") as serves,
        asyncio.timeout(DEADLINE_SECONDS),
        aiohttp.ClientSession() as session,
    ):
        service = Queues(ServiceSettings(pool="q", managers=serves.service.url), watchdog=None)
        async with served(service, "127.0.0.1", 0, port) as url:
            async with session.get(url + "/limits"):
                assert told == [False]
            async with session.ws_connect(url + "/queues/q/socket"):
                assert told == [False, False, True]
