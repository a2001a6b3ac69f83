"""What people are shown of a cache tells it from others, and no more."""

import asyncio

import pytest

from tests.unit.cache.stage import stage
from tests.unit.cache.test_bad_input import RawClient

pytestmark = pytest.mark.asyncio


async def test_nobody_is_shown_what_takes_the_place_of_a_cache_that_is_cut_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever reconnects under a cache's nonce acknowledges all for it: then writes no longer wait
    for what it may still hit. Viewers see the report, and logs go anywhere.
    """
    nonce = 0x123456789ABCDEF0
    caplog.set_level("DEBUG")
    async with stage() as it, it.server(volume := it.volume()) as server:
        await it.turn(3.5)
        client = RawClient(it)
        await client.come_on_record(it, nonce)
        client.say(client.fetch(2))
        await it.turn(0)
        client.send(b"")  # which ends the connection
        writing = asyncio.ensure_future(volume.changed("a"))
        await it.turn(0.1)
        report = server.tiers().volume
        assert report is not None
        (waiting,) = report.waiting
        assert waiting.readers == ("1234…, not connected",)
        await it.after(4, writing)
        told = caplog.text
        assert "1234…" in told
        assert f"{nonce:x}" not in told
        assert f"{nonce}" not in told
