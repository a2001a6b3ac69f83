"""A server that is asked before it serves is asked again, even if it never answers."""

import asyncio

import pytest

from benchmarks.experiments.coordinator import patiently
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio


async def test_what_is_never_answered_is_asked_again() -> None:
    asked = 0

    async def opened() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.Event().wait()  # as ZooKeeper, which takes it and forgets it
        if asked == 2:
            raise asyncio.IncompleteReadError(b"", 4)
        return asked

    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await patiently(opened, attempt=0.01) == 3


async def test_a_server_that_never_serves_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        await patiently(asyncio.Event().wait, patience=0.05, attempt=0.01)
