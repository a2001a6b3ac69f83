"""A service at its port: how it ends."""

import asyncio

import aiohttp
import pytest

from tenure.cli.service_gate import service_port
from tenure.services.documents.service import Documents
from tenure.services.service import ServiceSettings
from tenure.services.serving import ServiceDoor

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
