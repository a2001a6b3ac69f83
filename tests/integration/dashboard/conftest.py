"""Fixtures that the tests of the dashboard share."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.integration.dashboard.browser import TIMEOUT_MS, chromium

expect.set_options(timeout=TIMEOUT_MS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One for all tests of a file: each has a context of its own, without the others' cookies."""
    async with chromium() as it:
        yield it
