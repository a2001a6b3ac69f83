"""A service at its port: how it ends."""

import asyncio
from functools import wraps
from time import monotonic
from typing import Any

import aiohttp
import pytest

from tenure.cli.service_gate import service_port
from tenure.services.documents.service import Documents
from tenure.services.operations import ServiceAnswer, ServiceRequest
from tenure.services.queues.service import WAIT_SECONDS
from tenure.services.service import ServiceSettings
from tenure.services.serving import ServiceDoor
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


async def test_what_is_under_way_is_answered_before_the_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And while it still has its keys."""
    reading, may = asyncio.Event(), asyncio.Event()
    read = Documents.read

    @wraps(read)
    async def slowly(self: Documents, asked: ServiceRequest) -> ServiceAnswer:
        reading.set()
        await may.wait()
        return await read(self, asked)

    monkeypatch.setattr(Documents, "read", slowly)
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        aiohttp.ClientSession() as session,
        serving(preset="default") as serves,
    ):
        async with on_service_stage("documents", manager=serves.service.url) as stage:
            await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
            asking = asyncio.create_task(answered(session.get(f"{stage.url}/documents/d")))
            await reading.wait()
            asyncio.get_running_loop().call_later(0.3, may.set)
        assert asking.done()
        assert (await asking)["sections"] == {"a": 1}
