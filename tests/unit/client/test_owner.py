"""`Owner`, whole, in a cluster whose clock is turned: entering, holding, being called, leaving."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator
from math import ceil

import pytest
import pytest_asyncio

from tenure import (
    ConfigurationError,
    KeyRange,
    Lease,
    NameHeld,
    NoManager,
    NotOwner,
    Owner,
    PoolError,
    UsageError,
)
from tenure.client.holdings import Board
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

TERM = 1.2
"""The term of the preset `test`, in seconds; a renewal comes every 0.3."""
SOON = 0.2
"""The time for a grant, a return or a move while everybody lives."""
WHOLE = (KeyRange(b"", None),)

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        yield cluster


def held(owner: Owner, key: str = "room-42") -> Lease:
    lease = owner.check(key)
    assert lease is not None
    return lease


# --- entering -------------------------------------------------------------------------------------


async def test_it_is_entered_when_it_is_registered_and_ready_when_it_holds_something(
    cluster: InProcessCluster,
) -> None:
    async with cluster.owner() as owner:
        assert owner.check("room-42") is None
        waiting = asyncio.ensure_future(owner.ready())
        await come_to_rest()
        assert not waiting.done()
        await cluster.turn(SOON)
        await waiting
        await owner.ready()
        assert owner.holds(held(owner))
        assert owner.ranges == WHOLE
        assert owner.key("room-42") in owner.ranges[0]
        assert owner.loads() == ((WHOLE[0], 1),)


async def test_no_manager_at_all_is_said_of_each() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        here = f"http://127.0.0.1:{unused.getsockname()[1]}"
        owner = Owner(
            [here, "http://localhost:1"], pool="rooms", address="http://a", enter_timeout=1.0
        )
        with pytest.raises(NoManager) as raised:
            async with owner:
                pass
    message = str(raised.value)
    assert "found no manager within 1 s" in message
    assert f"Tried {here}: connection refused: nothing listens there;" in message
    assert "http://localhost:1: " in message
    assert "`tenure manager`" in message


async def test_a_manager_that_stands_by_says_who_leads() -> None:
    async with InProcessCluster(["rooms"], managers=2, clock=TurnedClock()) as cluster:
        await cluster.turn(SOON)
        leader, standby = cluster.urls
        owner = Owner(
            [standby],
            pool="rooms",
            address="http://a",
            enter_timeout=1.0,
            _environment=ClusterEnvironment(cluster),
        )
        with pytest.raises(NoManager, match=f"{standby}: stands by; {leader} leads, which is not"):
            async with owner:
                pass


async def test_the_name_of_an_owner_that_lives_is_refused(cluster: InProcessCluster) -> None:
    async with cluster.owner(name="one"):
        with pytest.raises(NameHeld, match=r"the name 'one' belongs to an owner at '") as raised:
            async with cluster.owner(name="one", enter_timeout=1.0):
                pass
        assert 0 < raised.value.wait_seconds <= 1.3
        assert "leave out name= so that each process draws its own" in str(raised.value)


async def test_the_name_of_an_owner_that_left_is_free_at_once(cluster: InProcessCluster) -> None:
    async with cluster.owner(name="one"):
        pass
    async with cluster.owner(name="one"):
        pass


async def test_a_pool_of_another_kind_is_refused_at_once(cluster: InProcessCluster) -> None:
    with pytest.raises(PoolError, match="the pool 'rooms' is hashed, not ordered"):
        async with cluster.owner(kind="ordered"):
            pass


async def test_it_is_entered_once(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        with pytest.raises(UsageError, match="this Owner was entered already"):
            await owner.__aenter__()
    with pytest.raises(UsageError, match="this Owner was entered already"):
        await owner.__aenter__()


async def test_entering_that_is_cancelled_leaves_nothing_behind(cluster: InProcessCluster) -> None:
    cluster.kill_manager()
    owner = cluster.owner()
    entering = asyncio.create_task(owner.__aenter__())
    await come_to_rest()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert owner._engine.shell.gone is not None
    assert owner._engine.shell.gone.done()


async def test_the_blocking_form_does_not_block_an_event_loop(cluster: InProcessCluster) -> None:
    with (
        pytest.raises(UsageError, match=r"would block the event loop .* `async with Owner"),
        cluster.owner(),
    ):
        pass


# --- holding --------------------------------------------------------------------------------------


async def test_it_renews_for_as_long_as_a_manager_answers(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = held(owner)
        await cluster.turn(20 * TERM)
        assert owner.holds(lease)
        assert held(owner) == lease


async def test_a_blocked_application_loop_does_not_stop_renewals(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = held(owner)
        cluster.turn_blocking(20 * TERM)  # without giving this loop a chance
        assert owner.holds(lease)


async def test_when_no_manager_answers_all_ends_with_the_term(cluster: InProcessCluster) -> None:
    revoked: list[KeyRange] = []
    async with cluster.owner(on_revoke=revoked.extend) as owner:
        await cluster.turn(SOON)
        lease = held(owner)
        url = cluster.kill_manager()
        await cluster.turn(TERM - 0.31)
        assert owner.holds(lease)
        await cluster.turn(0.31)
        assert not owner.holds(lease)
        assert owner.check("room-42") is None
        assert tuple(revoked) == WHOLE
        cluster.start_manager(url)
        await cluster.turn(3 * TERM)
        again = held(owner)
        assert again.number > lease.number
        assert not owner.holds(lease)
        assert owner.stats()["lapsed"] == 1


async def test_a_standby_takes_over_before_the_term_is_out() -> None:
    async with (
        InProcessCluster(["rooms"], managers=2, timing=DEFAULT, clock=TurnedClock()) as cluster,
        cluster.owner() as owner,
    ):
        await cluster.turn(SOON)
        lease = held(owner)
        first = cluster.kill_manager()
        await cluster.turn(30)
        assert cluster.leader not in (first, None)
        assert owner.holds(lease)


async def test_a_reader_that_sees_the_end_before_a_renewal_is_up_ends_it_for_good(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interleaving of S3 with the real machine, which decided before the end to go on."""
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = held(owner)
        publish = Board.publish
        said: list[bool] = []

        def late(board: Board, holdings: Holdings) -> bool:
            if not said and holdings.leases:
                cluster_clock = cluster.clock
                assert isinstance(cluster_clock, TurnedClock)
                cluster_clock.jump(TERM)  # the thread was stopped between deciding and saying
                said.append(owner.holds(lease))
                said.append(publish(board, holdings))
                said.append(owner.holds(lease))
                return said[1]
            return publish(board, holdings)

        monkeypatch.setattr(Board, "publish", late)
        await cluster.turn(0.3)
        assert said == [False, False, False]
        assert not owner.holds(lease)
        await cluster.turn(TERM)
        assert held(owner).number > lease.number
        assert not owner.holds(lease)
        assert owner.stats()["lapsed before a reader"] == 1


async def test_a_machine_that_breaks_takes_everything_with_it(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = held(owner)

        def broken(now: int) -> None:
            raise AssertionError("a contradiction")

        monkeypatch.setattr(owner._engine.machine, "_advance", broken)
        await cluster.turn(0.3)
        assert not owner.holds(lease)
        assert owner.check("room-42") is None
        assert "stops because of a bug, and holds nothing" in caplog.text


# --- callbacks ------------------------------------------------------------------------------------


async def test_what_moves_is_granted_and_revoked_with_callbacks_in_the_applications_loop(
    cluster: InProcessCluster,
) -> None:
    told: list[tuple[str, int, bool]] = []
    here = threading.current_thread()

    def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        assert threading.current_thread() is here
        told.append(("grant", len(ranges), set(ranges) <= set(first.ranges)))

    async def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        asyncio.get_running_loop()
        told.append(("revoke", len(ranges), bool(set(ranges) & set(first.ranges))))

    first = cluster.owner(on_grant=on_grant, on_revoke=on_revoke)
    async with first:
        await cluster.turn(SOON)
        async with cluster.owner() as second:
            await cluster.turn(2 * SOON)
            assert second.ranges
            moved = len(second.ranges)
        await cluster.turn(2 * SOON)
        assert first.ranges == WHOLE or len(first.ranges) > 1
    # Granted before it is told, revoked before it is told; and everything at the end.
    assert told[:3] == [("grant", 1, True), ("revoke", moved, False), ("grant", moved, True)]
    assert told[3][0] == "revoke"


async def test_a_range_stays_its_owners_until_on_revoke_is_done(cluster: InProcessCluster) -> None:
    done = asyncio.Event()

    async def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        await done.wait()

    async with cluster.owner(on_revoke=on_revoke) as first:
        await cluster.turn(SOON)
        async with cluster.owner() as second:
            await cluster.turn(2 * SOON)
            assert first.ranges != WHOLE
            assert second.ranges == ()
            done.set()
            await come_to_rest()
            await cluster.turn(2 * SOON)
            assert second.ranges


async def test_a_recall_whose_deadline_passes_is_said_at_once(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The manager waits for `on_revoke` for half a term: then another may serve while it runs."""
    done = asyncio.Event()

    async def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        await done.wait()

    async with cluster.owner(on_revoke=on_revoke, name="one") as first:
        await cluster.turn(SOON)
        async with cluster.owner() as second:
            while "owner 'one' of pool 'rooms' has not let go of [" not in caplog.text:
                assert not second.ranges
                await cluster.turn(0.05)
            assert "another owner may serve that from now on" in caplog.text
            await cluster.turn(2 * TERM)
            assert second.ranges
            assert first.stats()["revocations overtaken"] == 1
            done.set()


@pytest.mark.parametrize("blocks", [True, False])
async def test_a_callback_that_does_not_return_is_said_to_be_stuck_once(
    cluster: InProcessCluster,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    blocks: bool,
) -> None:
    monkeypatch.setattr("tenure.client.shell.STUCK_SECONDS", 0.01)
    done = asyncio.Event()

    async def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        if blocks:
            while "on_grant has been running for 0 s for [-, -)" not in caplog.text:
                pass  # our caller, and this loop, cannot say it
        await done.wait()

    async with cluster.owner(on_grant=on_grant):
        await cluster.turn(SOON)
        for _ in range(100):
            await cluster.turn(0.01)
            if "on_grant has been running" in caplog.text:
                break
            time.sleep(0.01)  # noqa: ASYNC251  # the engine waits in its own loop, by real time
        await cluster.turn(SOON)
        assert caplog.text.count("on_grant has been running for 0 s for [-, -)") == 1
        done.set()


async def test_a_callback_that_blocks_delays_no_renewal(cluster: InProcessCluster) -> None:
    def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        cluster.turn_blocking(10 * TERM)

    async with cluster.owner(on_grant=on_grant) as owner:
        await cluster.turn(SOON)
        lease = held(owner)
        await cluster.turn(SOON)
        assert owner.holds(lease)


async def test_a_callback_that_raises_is_logged_and_its_range_returned(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        raise OSError("disk full")

    async with cluster.owner(on_revoke=on_revoke), cluster.owner() as second:
        await cluster.turn(4 * SOON)
        assert second.ranges
    assert "on_revoke failed for [" in caplog.text
    assert "disk full" in caplog.text


# --- the watchdog ---------------------------------------------------------------------------------


async def test_a_silent_application_loses_its_leases_and_gets_new_ones_when_it_speaks(
    cluster: InProcessCluster,
) -> None:
    async with cluster.owner(watchdog=1.0) as owner:
        assert owner._life is not None
        owner._life.cancel()  # as if this loop hung
        await cluster.turn(SOON)
        lease = held(owner)
        await cluster.turn(0.7)
        owner.alive()
        await cluster.turn(0.9)
        assert owner.holds(lease)
        await cluster.turn(2 * TERM)
        assert not owner.holds(lease)
        owner.alive()
        await cluster.turn(SOON)
        assert held(owner).number > lease.number


async def test_the_applications_event_loop_shows_life_by_itself(cluster: InProcessCluster) -> None:
    """Signs come by a real timer, and the watchdog goes by the cluster's clock, which is turned
    only between two of them. A lease that was held past both watchdog and term was renewed.
    """
    watchdog = 0.4
    async with asyncio.timeout(60), cluster.owner(watchdog=watchdog) as owner:
        await cluster.turn(SOON)
        lease = held(owner)
        for _ in range(ceil((TERM + watchdog) / SOON) + 1):
            signs = owner.stats()["alive"]
            while owner.stats()["alive"] == signs:  # noqa: ASYNC110  # it is a timer that is waited for
                await asyncio.sleep(0)
            await cluster.turn(SOON)
        assert owner.holds(lease)


async def test_an_application_that_fails_its_probe_loses_its_leases(
    cluster: InProcessCluster,
) -> None:
    does_serve = True

    async def probe() -> None:
        if not does_serve:
            raise ConnectionError("nobody answers")

    owner = Owner(
        cluster.urls,
        pool="rooms",
        address="http://probed.test",
        watchdog=0.4,
        probe=probe,
        _environment=ClusterEnvironment(cluster),
    )
    async with asyncio.timeout(60), owner:
        await cluster.turn(SOON)
        lease = held(owner)
        does_serve = False
        while not owner.stats().get("probes failed"):  # noqa: ASYNC110  # a timer is waited for
            await asyncio.sleep(0)
        await cluster.turn(2 * TERM)
        assert not owner.holds(lease)
        does_serve = True
        signs = owner.stats()["alive"]
        while owner.stats()["alive"] == signs:  # noqa: ASYNC110  # likewise
            await asyncio.sleep(0)
        await cluster.turn(SOON)
        assert held(owner).number > lease.number


async def test_a_probe_needs_a_watchdog() -> None:
    async def probe() -> None: ...

    with pytest.raises(ConfigurationError, match="watchdog"):
        Owner("http://a:1", pool="rooms", address="http://a", probe=probe)
    with pytest.raises(ConfigurationError, match="probe"):
        Owner("http://a:1", pool="rooms", address="http://a", watchdog=1, probe=5)  # type: ignore[arg-type]


# --- guards ---------------------------------------------------------------------------------------


async def test_a_guard_of_a_key_that_is_not_held_is_not_entered(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        with pytest.raises(NotOwner, match=r"of pool 'rooms' does not hold 'a' now\. Send"):
            async with owner.guard("a"):
                raise AssertionError("the body ran")
        with pytest.raises(NotOwner), owner.guard("a"):
            raise AssertionError("the body ran")
