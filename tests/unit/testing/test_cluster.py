"""The in-process cluster, as users' tests use it."""

import asyncio

import pytest

from tenure import ConfigurationError, Owner, PoolError
from tenure.protocol.lease.answers import Owners, PoolMade
from tenure.protocol.lease.leader.events import CreatePool, ListOwners
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tenure.transport.faulty import Faults

pytestmark = pytest.mark.asyncio


async def test_by_the_real_clock_an_owner_is_ready_by_itself() -> None:
    async with (
        InProcessCluster(["rooms"], timing=DEFAULT) as cluster,
        cluster.owner() as owner,
        cluster.lookup() as lookup,
    ):
        await owner.ready()
        moved = asyncio.Event()
        lookup.watch("room-42", lambda _: moved.set())
        if lookup.find("room-42") is None:
            await moved.wait()
        assert lookup.find("room-42") == owner.address


async def test_a_pool_that_was_not_given_is_created_by_its_first_owner() -> None:
    async with InProcessCluster(clock=TurnedClock()) as cluster:
        with pytest.raises(ConfigurationError, match="which pool"):
            cluster.owner()
        async with cluster.owner(pool="new", kind="ordered") as owner:
            await cluster.turn(1)
            assert owner.check("a")
        with pytest.raises(PoolError):
            async with cluster.owner(pool="new"):
                pass


async def test_managers_can_be_asked_stopped_and_started() -> None:
    async with InProcessCluster(["rooms"], managers=2, clock=TurnedClock()) as cluster:
        assert cluster.ask(CreatePool("more", "hashed")) == PoolMade("more", "hashed", created=True)
        async with cluster.owner(name="one") as owner:
            await cluster.turn(1)
            answer = cluster.ask(ListOwners("rooms"))
            assert isinstance(answer, Owners)
            assert [each.name for each in answer.owners] == ["one"]
            lease = owner.check("a")
            assert lease
            first = cluster.stop_manager()  # it resigns: the other need not wait
            await cluster.turn(0.5)
            assert cluster.leader not in (first, None)
            await cluster.turn(2)
            assert owner.holds(lease)
            cluster.start_manager(first)
            with pytest.raises(ConfigurationError, match=r"runs at .* already"):
                cluster.start_manager(first)
            cluster.kill_manager()
            await cluster.turn(1)
            assert cluster.leader == first


async def test_what_a_cluster_cannot_be_or_do() -> None:
    with pytest.raises(ConfigurationError, match="at least one manager, not 0"):
        InProcessCluster(managers=0)
    async with InProcessCluster() as cluster:
        with pytest.raises(ConfigurationError, match=r"make it with clock=TurnedClock\(\)"):
            await cluster.turn(1)
        cluster.kill_manager()
        with pytest.raises(ConfigurationError, match="no manager leads"):
            cluster.kill_manager()


async def test_with_faults_owners_still_never_hold_a_key_at_once() -> None:
    faults = Faults(drop=0.1, duplicate=0.1, reorder=0.1, delay_seconds=0.05)
    keys = [f"room-{i}" for i in range(20)]
    seen: set[tuple[str, ...]] = set()
    async with InProcessCluster(["rooms"], clock=TurnedClock(), faults=faults, seed=3) as cluster:
        owners = [cluster.owner(name=name) for name in ("a", "b", "c")]
        entering = [asyncio.create_task(enter(owner)) for owner in owners]
        for _ in range(40):
            await cluster.turn(0.25)
            for key in keys:
                holders = [each.name for each in owners if is_in(each) and each.check(key)]
                assert len(holders) <= 1
                seen.add(tuple(holders))
        await asyncio.gather(*entering)
        assert {("a",), ("b",), ("c",)} <= seen
        for owner in owners:
            cluster.crash(owner)
            await owner.close()


async def enter(owner: Owner) -> None:
    await owner.__aenter__()


def is_in(owner: Owner) -> bool:
    return owner._engine.shell.entered.done() and owner._engine.shell.entered.exception() is None
