"""Leaving with state: handing none over if the user wishes so, under a watchdog, and blocking."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

from tenure import KeyedState
from tenure.base.instants import in_seconds
from tenure.client import draining as of_draining
from tenure.client.owner import Owner
from tenure.errors import ClosedError
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster
from tests.unit.client.hand_off.stage import Member, Stage, on_stage

WATCHDOG = 1.0
LONG = 30.0
"""The drain that is asked for; nothing here takes as long, by any clock."""


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage() as stage:
        yield stage


@pytest.mark.asyncio
async def test_without_a_drain_nothing_is_exported_and_the_loss_is_said(stage: Stage) -> None:
    source = await stage.first()
    taker = await stage.join()
    await stage.until(lambda: stage.share(taker) > 0 and stage.has_settled())
    exported = source.state.calls.count("export_range")
    lost_ranges = source.owner.ranges
    leaving = asyncio.ensure_future(source.owner.close(drain=0))
    await stage.until(leaving.done)
    stage.members.remove(source)
    await stage.until(lambda: bool(stage.lost) and stage.is_served())
    assert source.state.calls.count("export_range") == exported
    assert all(any(part.covers(each) for part in stage.lost) for each in lost_ranges)
    assert stage.missing() == []
    assert not source.state


async def draining(stage: Stage) -> tuple[Member, Member, "asyncio.Future[None]"]:
    """An owner under a watchdog that is leaving, with a taker that takes nothing in for now."""
    source = await stage.first(watchdog=WATCHDOG)
    assert source.owner._life is not None
    source.owner._life.cancel()  # signs of life come from the test, by the cluster's clock
    taker = await stage.join()
    taker.state.gate.clear()
    leaving = asyncio.ensure_future(source.owner.close(drain=LONG))
    return source, taker, leaving


@pytest.mark.asyncio
async def test_an_application_that_lives_is_not_cut_short_by_its_watchdog(stage: Stage) -> None:
    source, taker, leaving = await draining(stage)
    for _ in range(8):  # together this takes longer than watchdog and term
        await stage.cluster.turn(WATCHDOG / 2)
        source.owner.alive()
    assert source.owner.ranges
    taker.state.gate.set()

    def is_left() -> bool:
        with suppress(ClosedError):  # it has left, and its task does not know yet
            source.owner.alive()
        return leaving.done()

    await stage.until(is_left)
    stage.members.remove(source)
    await stage.until(stage.is_served)
    assert stage.missing() == []
    assert stage.lost == []
    assert not source.state


@pytest.mark.asyncio
async def test_an_application_that_hangs_while_it_drains_serves_nothing_and_the_loss_is_said(
    stage: Stage,
) -> None:
    source, taker, leaving = await draining(stage)
    await stage.cluster.turn(4 * WATCHDOG)
    await stage.until(lambda: not source.owner.ranges)
    assert not leaving.done(), "it was given up, and not watched"
    taker.state.gate.set()
    await stage.until(lambda: bool(stage.lost) and stage.is_served())
    assert stage.missing() == []
    source.owner.alive()
    await stage.until(leaving.done)
    stage.members.remove(source)


@pytest.mark.asyncio
async def test_with_nothing_held_and_nobody_there_it_waits_no_drain_and_speaks_of_no_loss(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    source = await stage.first()
    stage.cluster.kill_manager()
    await stage.until(lambda: not source.owner.ranges)
    leaving = asyncio.ensure_future(source.owner.close(drain=LONG))
    await stage.until(leaving.done)
    assert "loss" not in caplog.text
    assert "drains cut short" not in source.owner.stats()


@pytest.mark.asyncio
async def test_who_holds_state_and_has_no_manager_leaves_soon_and_says_why(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a manager nobody can take the state, for however long its owner waits."""
    monkeypatch.setattr(of_draining, "ALONE_SECONDS", 0.2)
    source = await stage.first()
    stage.cluster.kill_manager()
    began = stage.cluster.clock()
    leaving = asyncio.ensure_future(source.owner.close(drain=LONG))
    await stage.until(leaving.done)
    assert in_seconds(stage.cluster.clock() - began) < LONG / 10
    assert "leaves without telling a manager, because none has answered for 0.6 s" in caplog.text
    assert source.owner.stats()["drains cut short"] == 1
    stage.members.remove(source)


@pytest.mark.asyncio
async def test_who_holds_no_state_and_has_no_manager_leaves_within_two_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with InProcessCluster(["rooms"], timing=DEFAULT, clock=TurnedClock()) as cluster:
        owner: Owner = cluster.owner()
        await turned(cluster, asyncio.ensure_future(owner.__aenter__()))
        await cluster.turn(3)
        cluster.kill_manager()
        await cluster.turn(3)
        assert owner.ranges
        began = cluster.clock()
        await owner.close()
        assert cluster.clock() == began, "it waits for no term"
    assert "leaves without telling a manager, because none has answered for 2 s" in caplog.text


async def turned(cluster: InProcessCluster, work: "asyncio.Future[Any]") -> None:
    """Turn the clock until that is done."""
    for _ in range(1000):
        if work.done():
            return
        await cluster.turn(0.1)
    raise AssertionError("it never came to that")


@pytest.mark.asyncio
async def test_who_holds_state_and_has_no_manager_waits_for_half_a_term_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By then another one leads, if any will."""
    async with InProcessCluster(["rooms"], timing=DEFAULT, clock=TurnedClock()) as cluster:
        source: Owner = cluster.owner(hand_off=KeyedState[int]())
        await turned(cluster, asyncio.ensure_future(source.__aenter__()))
        await cluster.turn(3)
        assert source.ranges
        cluster.kill_manager()
        began = cluster.clock()
        await turned(cluster, asyncio.ensure_future(source.close(drain=LONG)))
        half = in_seconds(DEFAULT.term_ns) / 2
        assert in_seconds(cluster.clock() - began) < half + 0.5
        assert f"because none has answered for {half:g} s" in caplog.text


@pytest.mark.asyncio
async def test_a_manager_that_is_away_for_a_while_costs_who_leaves_no_state() -> None:
    """Another one answers within three seconds, and the leases last for longer."""
    first, second = KeyedState[int](), KeyedState[int]()
    async with InProcessCluster(["rooms"], timing=DEFAULT, clock=TurnedClock()) as cluster:
        source: Owner = cluster.owner(hand_off=first)
        taker: Owner = cluster.owner(hand_off=second)
        for each in (source, taker):
            await turned(cluster, asyncio.ensure_future(each.__aenter__()))
            await cluster.turn(3)
        keys = [key for key in map(str, range(100)) if source.check(key)]
        assert keys
        for key in keys:
            first[key] = 1
        url = cluster.kill_manager()
        leaving = asyncio.ensure_future(source.close(drain=LONG))
        for _ in range(30):
            await cluster.turn(0.1)
        cluster.start_manager(url)
        await turned(cluster, leaving)
        assert [key for key in keys if key not in second] == []
        await turned(cluster, asyncio.ensure_future(taker.close(drain=0)))


@pytest.mark.asyncio
async def test_a_term_that_runs_out_while_it_drains_leaves_nothing_to_speak_of(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    source = await stage.first()
    stage.cluster.kill_manager()
    leaving = asyncio.ensure_future(source.owner.close(drain=3))
    await stage.until(lambda: not source.owner.ranges)
    await stage.until(leaving.done)
    assert "loss" not in caplog.text
    assert "drains cut short" not in source.owner.stats()


def test_the_blocking_form_hands_everything_over_before_close_returns() -> None:
    counts = {"source": 0, "taker": 0}

    def body() -> None:
        first, second = KeyedState[int](), KeyedState[int]()
        with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
            source: Owner = cluster.owner(hand_off=first)
            with source:
                _ = source.ready()
                for i in range(100):
                    assert source.check(f"user-{i}")
                    first[f"user-{i}"] = i
                taker: Owner = cluster.owner(hand_off=second)
                with taker:
                    _ = taker.ready()
                    _ = source.close()
                    counts["source"], counts["taker"] = len(first), len(second)

    failed: list[BaseException] = []

    def run() -> None:
        try:
            body()
        except BaseException as error:  # noqa: BLE001  # raised below
            failed.append(error)

    thread = threading.Thread(target=run)  # one without an event loop
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    assert counts == {"source": 0, "taker": 100}


async def leaving_takes(cluster: InProcessCluster) -> float:
    """How many seconds an owner takes to leave that has state, and that nobody else can take it."""
    source: Owner = cluster.owner(hand_off=KeyedState[int]())
    await turned(cluster, asyncio.ensure_future(source.__aenter__()))
    await cluster.turn(3)
    assert source.ranges
    began = cluster.clock()
    await turned(cluster, asyncio.ensure_future(source.close(drain=LONG)))
    return in_seconds(cluster.clock() - began)


@pytest.mark.asyncio
@pytest.mark.parametrize("ends_after", [0.0, 5.0, LONG])
async def test_a_successor_is_waited_for_as_long_as_it_runs(
    ends_after: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where all processes of a supervisor end at once, the youngest seems to succeed the others."""
    monkeypatch.setattr(ClusterEnvironment, "has_successor", lambda _, waited: waited <= ends_after)
    async with InProcessCluster(["rooms"], timing=DEFAULT, clock=TurnedClock()) as cluster:
        waited = await leaving_takes(cluster)
    most = of_draining.SETTLING_PART * LONG
    assert min(ends_after, most) <= waited <= min(ends_after + 4, most + 1)
    assert "successor has not joined in time, or has ended" in caplog.text
