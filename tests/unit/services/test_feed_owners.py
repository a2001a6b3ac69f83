"""An owner of a feed is believed to answer, and not to answer within bounds."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tenure.services.feeds import feed_owners
from tenure.services.feeds.feed_owners import read_answer
from tests.patience import DEADLINE_SECONDS
from tests.sessions import client_session

pytestmark = pytest.mark.asyncio
KIB = 1 << 10


async def endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(bytes(64 * KIB))


async def short(_: web.Request) -> web.Response:
    return web.Response(body=bytes(64 * KIB))


async def test_an_endless_answer_is_given_up_at_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_owners, "MOST_ANSWER_BYTES", 256 * KIB)
    app = web.Application()
    app.router.add_get("/endless", endless)
    app.router.add_get("/short", short)
    async with (
        TestServer(app) as server,
        client_session() as session,
        asyncio.timeout(DEADLINE_SECONDS),
    ):
        async with session.get(server.make_url("/short")) as response:
            assert await read_answer(response) == bytes(64 * KIB)
        with pytest.raises(aiohttp.ClientError, match="more than 262144 bytes"):
            async with session.get(server.make_url("/endless")) as response:
                await read_answer(response)
