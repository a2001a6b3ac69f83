"""Bodies that finish before their key moves, and leaving at a signal."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from typing import Self

import pytest
import pytest_asyncio

from tenure import ConfigurationError, KeyRange, LeaseLost, NotOwner, Owner, UsageError
from tenure.base.instants import Instant
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster
from tests.patience import DEADLINE_SECONDS

TERM = 1.2
SOON = 0.2
KEY = "room-42"


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        yield cluster


class Jobs:
    """Bodies of one owner, one for each key, which end when they are told to."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.go_on = asyncio.Event()
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """An owner would wait for them without end."""
        self.go_on.set()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    async def begin(self, *keys: str, finish: bool) -> None:
        for key in keys:
            self.tasks[key] = asyncio.create_task(self._run(key, finish=finish))
        await come_to_rest()

    async def _run(self, key: str, *, finish: bool) -> None:
        async with self.owner.guard(key, finish=finish):
            await self.go_on.wait()


KEYS = [f"room-{i}" for i in range(16)]


@pytest.mark.asyncio
async def test_a_recalled_key_does_not_move_before_the_body_is_done(
    cluster: InProcessCluster,
) -> None:
    revoked: list[KeyRange] = []
    async with cluster.owner(on_revoke=revoked.extend) as first, Jobs(first) as jobs:
        await cluster.turn(SOON)
        await jobs.begin(*KEYS, finish=True)
        async with cluster.owner() as second:
            await cluster.turn(2 * SOON)
            moving = [key for key in KEYS if first.check(key) is None]
            assert moving
            assert not any(second.check(key) for key in KEYS), "the bodies are not done"
            assert revoked == []
            with pytest.raises(NotOwner):
                async with first.guard(moving[0], finish=True):
                    raise AssertionError("nothing new begins on it")
            jobs.go_on.set()
            await asyncio.gather(
                *jobs.tasks.values()
            )  # none was cancelled, none has lost its lease
            await cluster.turn(2 * SOON)
            assert all(second.check(key) for key in moving)
            assert revoked


@pytest.mark.asyncio
async def test_others_are_cancelled_at_the_recall_and_those_that_finish_at_its_deadline(
    cluster: InProcessCluster,
) -> None:
    async with (
        cluster.owner() as first,
        Jobs(first) as plain,
        Jobs(first) as finishing,
    ):
        await cluster.turn(SOON)
        await plain.begin(*KEYS, finish=False)
        await finishing.begin(*KEYS, finish=True)
        async with cluster.owner() as second:
            await cluster.turn(2 * SOON)
            moving = [key for key in KEYS if first.check(key) is None]
            for key in moving:
                assert isinstance(plain.tasks[key].exception(), LeaseLost)
                assert not finishing.tasks[key].done()
            await cluster.turn(2 * TERM)
            for key in moving:
                assert isinstance(finishing.tasks[key].exception(), LeaseLost)
                assert second.check(key)


@pytest.mark.asyncio
async def test_a_term_that_runs_out_ends_them(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner, Jobs(owner) as jobs:
        await cluster.turn(SOON)
        await jobs.begin(KEY, finish=True)
        cluster.kill_manager()
        await cluster.turn(2 * TERM)
        assert isinstance(jobs.tasks[KEY].exception(), LeaseLost)


@pytest.mark.asyncio
async def test_a_body_that_is_waited_for_beyond_the_term_has_lost_its_lease(
    cluster: InProcessCluster,
) -> None:
    """Its owner may be slower to say so than the body is to end."""
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        guard = owner.guard(KEY, finish=True)
        lease = await guard.__aenter__()
        guards = owner._engine.guards
        clock, until = guards.clock, guards.expires_at
        guard.is_kept = True  # as after a recall, while nobody else gets the key
        owner._engine.board.open()
        assert not owner.holds(lease)
        guards.clock = lambda: Instant(until - 1)
        before = guard.has_lasted()
        guards.clock = lambda: until
        with pytest.raises(LeaseLost):
            guard.leave(None, has_lasted=guard.has_lasted() or not before)
        guards.clock = clock


@pytest.mark.asyncio
async def test_leaving_goes_on_serving_until_they_are_done(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner, Jobs(owner) as jobs:
        await cluster.turn(SOON)
        await jobs.begin(KEY, finish=True)
        leaving = asyncio.ensure_future(owner.close(drain=4 * TERM))
        await cluster.turn(3 * TERM)
        assert not leaving.done()
        assert owner.check(KEY)
        jobs.go_on.set()
        await jobs.tasks[KEY]
        await cluster.turn(SOON)
        await leaving
        assert owner.check(KEY) is None


@pytest.mark.asyncio
@pytest.mark.parametrize("drain", [0, 0.05])
async def test_leaving_waits_for_them_for_as_long_as_it_drains(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture, drain: float
) -> None:
    async with cluster.owner() as owner, Jobs(owner) as jobs:
        await cluster.turn(SOON)
        await jobs.begin(KEY, finish=True)
        leaving = asyncio.ensure_future(owner.close(drain=drain))
        await cluster.turn(SOON)
        await leaving
        body = jobs.tasks[KEY]
        await asyncio.wait([body], timeout=DEADLINE_SECONDS)
        assert body.done(), "the body is not told that its lease is lost"
        assert isinstance(body.exception(), LeaseLost)
    assert ("leaves before 1 guarded bodies that were to finish are done" in caplog.text) == bool(
        drain
    )


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_at_a_signal_the_body_runs_on_until_all_is_returned_and_then_ends(
    which: signal.Signals,
) -> None:
    before = signal.getsignal(which)
    finished: list[bool] = []
    done = threading.Event()

    def work(owner: Owner) -> None:
        with owner.guard(KEY, finish=True):
            os.kill(os.getpid(), which)
            done.wait(0.2)
            finished.append(owner.check(KEY) is not None)

    with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
        owner = cluster.owner(leave_on=(signal.SIGTERM, signal.SIGINT))
        with owner:
            _ = owner.ready()
            worker = threading.Thread(target=work, args=(owner,))
            worker.start()
            time.sleep(30)  # it is woken
            raise AssertionError("the body goes on")
        worker.join()
        assert owner.check(KEY) is None
    assert finished == [True], "served while the job that was to finish ran"
    assert signal.getsignal(which) == before


def test_a_second_signal_does_what_it_would_do_without() -> None:
    with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
        owner = cluster.owner(leave_on=[signal.SIGINT])

        def body() -> None:
            with owner:
                _ = owner.ready()
                with owner.guard(KEY, finish=True):
                    signal.raise_signal(signal.SIGINT)  # is handled before this returns: two that
                    signal.raise_signal(signal.SIGINT)  # wait to be handled would count as one
                    time.sleep(30)

        with pytest.raises((KeyboardInterrupt, LeaseLost)) as raised:
            body()
    # If this process was put aside in between, the guard has lost its lease, and says so.
    ended = raised.value.__cause__ if isinstance(raised.value, LeaseLost) else raised.value
    assert isinstance(ended, KeyboardInterrupt)


def test_handlers_are_given_back_where_no_manager_answers() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
        cluster.kill_manager()
        with pytest.raises(Exception, match="found no manager"):
            cluster.owner(leave_on=[signal.SIGTERM], enter_timeout=0.01).__enter__()
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_the_body_raises_comes_out() -> None:
    with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
        owner = cluster.owner(leave_on=[signal.SIGTERM])
        with pytest.raises(ZeroDivisionError), owner:
            _ = 1 / 0


def test_signals_are_handled_in_the_main_thread_only() -> None:
    raised: list[BaseException] = []

    def enter(owner: Owner) -> None:
        try:
            owner.__enter__()
        except UsageError as error:
            raised.append(error)

    with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
        owner = cluster.owner(leave_on=[signal.SIGTERM])
        thread = threading.Thread(target=enter, args=(owner,))
        thread.start()
        thread.join()
    assert ["works in the main thread only" in str(each) for each in raised] == [True]


@pytest.mark.asyncio
async def test_an_event_loop_has_handlers_of_its_own(cluster: InProcessCluster) -> None:
    with pytest.raises(UsageError, match="leave_on is for the blocking form"):
        async with cluster.owner(leave_on=[signal.SIGTERM]):
            pass


@pytest.mark.parametrize("given", [5, ["TERM"], [999], [signal.SIGKILL], None])
def test_signals_that_cannot_be(given: list[signal.Signals]) -> None:
    with (
        InProcessCluster(["rooms"], timing=DEFAULT) as cluster,
        pytest.raises(ConfigurationError, match="leave_on"),
    ):
        cluster.owner(leave_on=given)
