"""Leaving an Owner, what it costs nobody, and what it is after; and the blocking form of both."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tenure import ClosedError, KeyRange, Lease, NotOwner, Owner, PoolError
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster

TERM = 1.2
SOON = 0.2
WHOLE = (KeyRange(b"", None),)

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        yield cluster


def uses(owner: Owner) -> list[Callable[[], object]]:
    return [
        lambda: owner.check("a"),
        lambda: owner.holds(Lease(b"", 1, 1)),
        lambda: owner.guard("a"),
        lambda: owner.ranges,
        owner.loads,
        owner.ready,
        owner.alive,
    ]


async def test_before_it_is_entered_it_cannot_be_used(cluster: InProcessCluster) -> None:
    owner = cluster.owner()
    for use in uses(owner):
        with pytest.raises(ClosedError, match="this Owner is not entered yet"):
            use()
    await owner.close()


# --- leaving --------------------------------------------------------------------------------------


async def test_leaving_calls_on_revoke_and_returns_everything_at_once(
    cluster: InProcessCluster,
) -> None:
    revoked: list[KeyRange] = []
    async with cluster.owner() as second:
        async with cluster.owner(on_revoke=revoked.extend) as first:
            await cluster.turn(3 * SOON)
            mine = first.ranges
            assert mine
        assert tuple(revoked) == mine
        await cluster.turn(SOON)
        assert second.ranges == WHOLE or sum(map(bool, second.ranges)) > len(mine)


async def test_leaving_twice_does_nothing_and_nothing_is_held_after_it(
    cluster: InProcessCluster,
) -> None:
    """A web application checks while its server shuts down: it is told that the key is not here,
    and answers 421, where an error of ours would make it 500.
    """
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = owner.check("a")
        assert lease is not None
        await owner.close()
        await owner.close()
    assert (owner.check("a"), owner.holds(lease), owner.ranges) == (None, False, ())
    assert owner.loads() == ()
    owner.record_load("a", 1)
    owner.alive()
    with pytest.raises(NotOwner, match="of pool 'rooms' does not hold 'a' now"):
        async with owner.guard("a"):
            raise AssertionError("not held")
    with pytest.raises(ClosedError, match="this Owner was left; make another"):
        await owner.ready()
    assert owner.stats()["joined"] == 1


async def test_an_error_in_the_body_leaves_too(cluster: InProcessCluster) -> None:
    owner = cluster.owner()
    with pytest.raises(ZeroDivisionError):
        async with owner:
            raise ZeroDivisionError
    assert owner.check("a") is None


async def test_who_waits_for_ready_is_told_that_it_was_left(cluster: InProcessCluster) -> None:
    async with cluster.owner() as owner:
        waiting = asyncio.ensure_future(owner.ready())
        await come_to_rest()
    with pytest.raises(ClosedError):
        await waiting


async def test_leaving_waits_for_callbacks_and_the_manager_only_so_long(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tenure.client.shell.LEAVE_SECONDS", 0.05)
    for_ever = asyncio.Event()

    async def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        await for_ever.wait()

    async with cluster.owner(on_revoke=on_revoke):
        await cluster.turn(SOON)
    assert "leaves after 0.05 s without an answer, or with callbacks" in caplog.text
    for_ever.set()


async def test_with_nothing_held_and_nobody_there_leaving_does_not_wait(
    cluster: InProcessCluster,
) -> None:
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        cluster.kill_manager()
        await cluster.turn(2 * TERM)
        assert owner.ranges == ()


async def test_who_holds_something_and_has_no_manager_leaves_soon(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two seconds, not all that an owner waits for a manager that is there."""
    monkeypatch.setattr("tenure.client.shell.LEAVE_SECONDS", 600.0)
    async with asyncio.timeout(60):
        async with cluster.owner() as owner:
            await cluster.turn(SOON)
            assert owner.ranges
            cluster.kill_manager()
            await come_to_rest()
        assert "leaves without telling a manager, because none has answered for 2 s" in caplog.text
        assert "callbacks still running" not in caplog.text
        assert owner.check("a") is None


# --- the blocking form ----------------------------------------------------------------------------


def blocking(body: Callable[[], None]) -> None:
    """Run the body in a thread without an event loop."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            body()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


async def test_the_blocking_form_does_the_same() -> None:
    told: list[tuple[str, str]] = []

    async def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        told.append(("grant", threading.current_thread().name))

    def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        told.append(("revoke", threading.current_thread().name))

    def body() -> None:
        with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
            owner = cluster.owner(on_grant=on_grant, on_revoke=on_revoke, name="one")
            with owner:
                _ = owner.ready()
                with owner.guard("room-42") as lease:
                    assert owner.holds(lease)
            _ = owner.close()
            assert owner.check("a") is None
            with (
                pytest.raises(PoolError, match="is hashed, not ordered"),
                cluster.owner(kind="ordered"),
            ):
                pass

    blocking(body)
    thread = "owner 'one' of pool 'rooms' calls"
    assert told == [("grant", thread), ("revoke", thread)]
