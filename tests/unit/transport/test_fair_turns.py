"""Who begins something in turn: one in each pass of the loop, and at once if nobody else does."""

import asyncio

import pytest

from tenure.transport.fair_turns import FairTurns

REQUESTS = 10


@pytest.mark.asyncio
async def test_whoever_comes_alone_does_not_wait() -> None:
    """A pass more for each request would cost more than some answers do."""
    turns = FairTurns()
    for _ in range(3):
        with pytest.raises(StopIteration):
            turns.wait().send(None)
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_of_those_who_come_at_once_one_begins_in_each_pass() -> None:
    turns, begun, passes = FairTurns(), list[int](), 0

    async def begin() -> None:
        await turns.wait()
        begun.append(passes)

    asked = [asyncio.ensure_future(begin()) for _ in range(REQUESTS)]
    while len(begun) < 2 * REQUESTS:
        await asyncio.sleep(0)
        passes += 1
        if begun and len(asked) < 2 * REQUESTS:  # others come meanwhile
            asked.append(asyncio.ensure_future(begin()))
    assert len(set(begun)) == 2 * REQUESTS
