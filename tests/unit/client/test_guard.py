"""Guards: a body that runs only while its key is held."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from tenure import LeaseLost, NotOwner, Owner, UsageError
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio
PAST_TERM = 2.0


class Stage:
    def __init__(self, cluster: InProcessCluster, owner: Owner) -> None:
        self.cluster = cluster
        self.owner = owner

    async def lose(self) -> None:
        self.cluster.kill_manager()
        await self.cluster.turn(PAST_TERM)


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        cluster.owner() as owner,
    ):
        await cluster.turn(0.2)
        yield Stage(cluster, owner)


async def test_a_body_that_keeps_its_lease_runs_to_its_end(stage: Stage) -> None:
    async with stage.owner.guard("a") as lease:
        assert stage.owner.holds(lease)
    with stage.owner.guard("a") as lease:
        assert stage.owner.holds(lease)


async def test_the_body_is_cancelled_when_the_lease_is_lost(stage: Stage) -> None:
    reached: list[str] = []

    async def serve() -> None:
        async with stage.owner.guard("a"):
            reached.append("inside")
            try:
                await asyncio.Event().wait()
            finally:
                reached.append("cleaned up")
            reached.append("went on")

    serving = asyncio.create_task(serve())
    await come_to_rest()
    await stage.lose()
    with pytest.raises(LeaseLost, match=r"of pool 'rooms' lost 'a', lease number \d+, while"):
        await serving
    assert reached == ["inside", "cleaned up"]
    assert not serving.cancelled()


async def test_other_bodies_are_left_alone(stage: Stage) -> None:
    """Only half of the keys move to a second owner."""
    keys = [f"room-{i}" for i in range(40)]

    async def serve(key: str) -> str:
        async with stage.owner.guard(key):
            await asyncio.Event().wait()
        return key

    serving = {key: asyncio.create_task(serve(key)) for key in keys}
    await come_to_rest()
    async with stage.cluster.owner():
        await stage.cluster.turn(0.5)
        for key, task in serving.items():
            assert task.done() == (stage.owner.check(key) is None)
        assert {task.done() for task in serving.values()} == {True, False}
    for task in serving.values():
        task.cancel()
    results = await asyncio.gather(*serving.values(), return_exceptions=True)
    assert {type(result) for result in results} == {LeaseLost, asyncio.CancelledError}


async def test_a_body_that_went_on_unheld_raises_on_leaving(stage: Stage) -> None:
    guard = stage.owner.guard("a")
    with pytest.raises(LeaseLost), guard:
        await stage.lose()
    with pytest.raises(UsageError, match="the guard of 'a' was entered already"), guard:
        pass


async def test_a_body_that_swallows_its_cancellation_raises_on_leaving(stage: Stage) -> None:
    async def serve() -> None:
        async with stage.owner.guard("a"):
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await come_to_rest()
    await stage.lose()
    with pytest.raises(LeaseLost):
        await serving
    assert serving.cancelling() == 0


async def test_a_body_that_raised_keeps_its_error(stage: Stage) -> None:
    async def lose_and_fail() -> None:
        await stage.lose()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), stage.owner.guard("a"):
        await lose_and_fail()


async def test_a_cancellation_from_elsewhere_stays_one(stage: Stage) -> None:
    async def serve() -> None:
        async with stage.owner.guard("a"):
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await come_to_rest()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_guards_in_guards_raise_once_each_body_is_left(stage: Stage) -> None:
    async def serve() -> None:
        async with stage.owner.guard("a"), stage.owner.guard("b"):
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await come_to_rest()
    await stage.lose()
    with pytest.raises(LeaseLost):
        await serving
    assert serving.cancelling() == 0


async def test_a_timeout_around_a_guard_works(stage: Stage) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001), stage.owner.guard("a"):
            await asyncio.Event().wait()


async def test_not_owner_says_where_the_key_is_believed_to_live(stage: Stage) -> None:
    lookup = stage.cluster.lookup()
    async with stage.cluster.owner("http://b", lookup=lookup) as other:
        with pytest.raises(NotOwner, match=r"names \(a service answers 421") as raised:
            other.guard("a").__enter__()
        assert raised.value.address is None  # the lookup is not entered yet
        async with lookup:
            with pytest.raises(NotOwner, match=f"at {stage.owner.address} ") as raised:
                other.guard("a").__enter__()
            assert raised.value.address == stage.owner.address


async def test_not_owner_never_names_the_address_of_the_owner_itself(stage: Stage) -> None:
    """A client that is sent back to the owner that refused it would go round in circles."""
    async with (
        stage.cluster.lookup() as lookup,
        stage.cluster.owner(stage.owner.address, lookup=lookup) as other,
    ):
        assert lookup.find("a") == other.address
        with pytest.raises(NotOwner) as raised:
            other.guard("a").__enter__()
        assert raised.value.address is None
