"""A process that lives, and that no request reaches any more: its own probe says so."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio
SOON = 0.2


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        yield cluster


async def test_a_probe_that_fails_or_hangs_is_said_once_and_that_it_passes_again(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    listening = asyncio.Event()
    listening.set()
    errors: list[Exception] = []

    async def probe() -> None:
        if errors:
            raise errors[0]
        await listening.wait()

    async with cluster.owner(watchdog=1.0) as owner:
        assert owner._life is not None
        owner._life.cancel()  # the test probes, by the cluster's clock

        async def pass_time() -> None:
            for _ in range(12):
                await owner._engine.show_life(probe, 0.001)
                await cluster.turn(SOON)

        await pass_time()
        assert owner.ranges
        for breaks in (listening.clear, lambda: errors.append(OSError("connection refused"))):
            breaks()
            await pass_time()
            assert owner.ranges == ()
            listening.set()
            errors.clear()
            await pass_time()
            assert owner.ranges
    said = [each.getMessage() for each in caplog.records if "own probe" in each.getMessage()]
    assert len(said) == 4
    assert "does not pass its own probe: TimeoutError()" in said[0]
    assert "does not pass its own probe: OSError('connection refused')" in said[2]
    assert all("passes its own probe again" in each for each in said[1::2])
    assert owner.stats()["probes failed"] == 24
