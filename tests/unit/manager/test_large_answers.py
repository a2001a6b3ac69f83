"""Whoever asks for large tables without end waits, and keeps nobody else from being answered."""

import asyncio

import aiohttp
import pytest

from tenure.manager import large_answers
from tenure.manager.large_answers import MOST_WAITING, LargeAnswers
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio
ROOMS = "/v1/pools/rooms"
LARGE = (f"{ROOMS}/table", f"{ROOMS}/owners", f"{ROOMS}/hour", f"{ROOMS}/hottest", "/metrics")


@pytest.fixture(autouse=True)
def one_range_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """An allowance that nobody waits for: the first answers use it up."""
    monkeypatch.setattr(large_answers, "RANGES_A_SECOND", 1 / 86_400)
    monkeypatch.setattr(large_answers, "RANGES_PER_TABLE", 1)


@pytest.mark.parametrize("path", LARGE)
async def test_who_was_told_of_many_ranges_waits_and_others_are_told(path: str) -> None:
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        assert (await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"}))[0] == 201
        for _ in range(2):
            assert (await manager.get("/v1/pools/rooms/table"))[0] == 200
        url = manager.service.url + path
        asked = asyncio.ensure_future(manager.session.get(url))
        assert (await manager.get("/v1/pools/rooms/locate?key=a"))[0] == 200
        assert (await manager.get("/v1/status"))[0] == 200
        assert not asked.done()
        other = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with aiohttp.ClientSession(connector=other) as session, session.get(url) as answer:
            assert answer.status == 200, "another address has an allowance of its own"
        assert not asked.done()
        asked.cancel()


async def test_of_one_token_only_so_many_requests_wait() -> None:
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        for _ in range(2):
            await manager.get("/v1/pools/rooms/table")
        waiting = [
            asyncio.ensure_future(manager.get("/v1/pools/rooms/table"))
            for _ in range(MOST_WAITING + 5)
        ]
        await until(lambda: sum(each.done() for each in waiting) == 5)
        for each in waiting:
            if each.done():
                status, problem = each.result()
                assert status == 429
                assert "since=LSN" in problem["way_out"]
        for each in waiting:
            each.cancel()


async def test_names_are_forgotten_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_answers, "MOST_REMEMBERED", 10)
    answers = LargeAnswers()
    for number in range(100):
        async with answers.turn(str(number)) as spend:
            spend(1)
    assert len(answers._shares) == 10
