"""A service whose manager is gone ends soon when it is told to: nobody could take its keys."""

import time
from contextlib import AsyncExitStack

import pytest

from lab.demo.mesh.service_processes import ServiceProcess
from tenure.services.documents.client import DocumentsClient

DRAIN_SECONDS = 20.0
"""What it spends on handing over, where there is a manager."""


@pytest.mark.asyncio
async def test_a_service_without_a_manager_ends_long_before_its_drain_is_over() -> None:
    manager = ServiceProcess(
        "manager", ("manager", "--port", "0", "--journal", "memory", "--first-start")
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(manager.end)
        at = await manager.start()
        service = ServiceProcess(
            "documents", ("serve", "documents", "--manager", at, "--listen", "127.0.0.1:0")
        )
        stack.push_async_callback(service.end)
        async with DocumentsClient(await service.start()) as client:
            await client.write("home-pc", {"address": "10.0.0.7"})
        await manager.kill()
        began = time.monotonic()
        await service.leave()
        assert time.monotonic() - began < DRAIN_SECONDS / 2
        assert service.process.returncode == 0
