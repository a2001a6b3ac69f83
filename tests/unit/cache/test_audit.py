"""An audit has the server load again what was hit, and counts hits that differ."""

import logging
from typing import Any

import pytest

from tenure.errors import ConfigurationError, ValueTypeError
from tests.unit.cache.stage import stage

pytestmark = pytest.mark.asyncio
LOOK_SECONDS = 1.0


async def test_what_the_server_loads_is_what_was_hit() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter(audit=1.0)
        await cache.get("a")
        for _ in range(5):
            assert cache.peek("a") == "old"
        await it.turn(LOOK_SECONDS)
        assert (cache.stats()["audited"], cache.stats()["stale_hits"]) == (1, 0)
        assert it.loads == ["a", "a"]
        assert cache.peek("a") == "old"


async def test_a_change_that_nobody_told_is_found_and_mended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter(audit=1.0)
        await cache.get("a")
        it.rows["a"] = "changed behind the server's back"
        assert cache.peek("a") == "old"
        with caplog.at_level(logging.ERROR, "tenure.cache"):
            await it.turn(LOOK_SECONDS)
        assert cache.stats()["stale_hits"] == 1
        assert "hits of 'a' get another value" in caplog.text
        assert cache.peek("a") == "changed behind the server's back"


async def test_a_value_that_is_no_longer_of_the_type_is_not_judged() -> None:
    """Readers get the error."""
    async with stage() as it:
        await it.serve(it.volume(value_type=Any))
        cache = await it.enter(audit=1.0)
        await cache.get("a")
        it.rows["a"] = 7
        assert cache.peek("a") == "old"
        await it.turn(LOOK_SECONDS)
        assert cache.stats()["audited"] == 0
        with pytest.raises(ValueTypeError):
            await it.after(1, cache.get("a"))


async def test_an_object_that_went_away_is_found() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter(audit=1.0)
        await cache.get("a")
        del it.rows["a"]
        assert cache.peek("a") == "old"
        await it.turn(LOOK_SECONDS)
        assert cache.stats()["stale_hits"] == 1
        assert cache.peek("a") is None


async def test_a_write_of_the_volume_is_no_find() -> None:
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter(audit=1.0)
        await cache.get("a")
        assert cache.peek("a") == "old"
        async with volume.write("a"):
            it.rows["a"] = "new"
        await it.turn(LOOK_SECONDS)
        assert cache.stats()["stale_hits"] == 0
        assert await cache.get("a") == "new"


async def test_without_an_audit_nothing_is_loaded_again() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        await cache.get("a")
        cache.peek("a")
        await it.turn(LOOK_SECONDS)
        assert it.loads == ["a"]
        assert cache.stats()["audited"] == 0


@pytest.mark.parametrize("audit", [-0.1, 1.1, "often", True, float("nan")])
async def test_a_share_is_from_0_to_1(audit: object) -> None:
    async with stage() as it:
        with pytest.raises(ConfigurationError, match="audit is a share from 0 to 1"):
            it.cache(audit=audit)
