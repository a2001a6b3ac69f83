"""A process that lives, and that no request reaches any more: its own probe says so."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tenure import Owner
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster
from tests.patience import DEADLINE_SECONDS

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
                await owner._engine.watchdog.show_life(probe, 0.001)
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


async def _in_a_loop(served: threading.Event) -> None:
    if not served.is_set():
        raise ConnectionError("nobody answers")


def _in_a_thread(served: threading.Event) -> None:
    if not served.is_set():
        raise ConnectionError("nobody answers")


@pytest.mark.parametrize("probe", [_in_a_loop, _in_a_thread])
async def test_the_blocking_form_is_probed_too(probe: Callable[[threading.Event], object]) -> None:
    served, stop = threading.Event(), threading.Event()
    served.set()

    def program() -> None:
        with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
            owner = Owner(
                cluster.urls,
                pool="rooms",
                address="http://probed.test",
                watchdog=0.4,
                probe=lambda: probe(served),
                _environment=ClusterEnvironment(cluster),
            )
            with owner:
                cluster.turn_blocking(SOON)
                assert owner.ranges
                wait_for(lambda: owner.stats().get("alive", 0) > 1)
                served.clear()
                wait_for(lambda: owner.stats().get("probes failed"))
                cluster.turn_blocking(2)
                assert not owner.ranges
            wait_for(lambda: "probing" not in str(threading.enumerate()))

    def wait_for(condition: Callable[[], object]) -> None:
        gives_up_at = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < gives_up_at:
            if condition():
                return
            stop.wait(0.01)
        raise AssertionError("it did not come")

    await asyncio.to_thread(program)
