"""The demo of Live Mesh expects the right devices to be told the right things when a server has
trouble.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from lab.demo.mesh.live_mesh import MANAGER, SERVICES, ServiceName
from lab.demo.mesh.mesh_devices import HOME, HOME_PC, WORK_PC
from lab.demo.mesh.mesh_losses import RELIED_ON, MeshLosses
from tenure import KeyedState, Lookup, Owner
from tenure.services.queues.client import ReceivedEntry
from tenure.services.queues.entries import QueueLoss
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio
FIRST, SECOND = "http://first.test", "http://second.test"
OF_DEVICES = ReceivedEntry(1, 0.0, loss=QueueLoss(pools={"devices": ("home-pc",)}))


class Stage:
    """A process of each service has everything, and may leave or crash; another one comes."""

    def __init__(
        self, cluster: InProcessCluster, lookups: dict[ServiceName, Lookup], *, is_kept: bool
    ) -> None:
        self._cluster = cluster
        self._lookups = lookups
        members = {"first": FIRST, "second": SECOND}
        self.losses = MeshLosses(lookups, members, is_kept=is_kept)
        self.owners: list[Owner] = []

    async def come(self, address: str, pool: str) -> Owner:
        owner = self._cluster.owner(address, pool=pool, hand_off=KeyedState())
        self.owners.append(owner)
        await owner.__aenter__()
        await self._cluster.turn(20)
        return owner

    async def lease(self, pool: ServiceName, key: str) -> int:
        """The number of the key's lease, as far as is known."""
        (found,) = await asyncio.wrap_future(self._lookups[pool].standings([key]))
        assert found is not None
        return found.number


@asynccontextmanager
async def stage(*, is_kept: bool = False) -> AsyncIterator[tuple[Stage, InProcessCluster]]:
    async with (
        InProcessCluster(list(SERVICES), clock=TurnedClock()) as cluster,
        AsyncExitStack() as stack,
    ):
        lookups = {name: cluster.lookup(pool=name) for name in SERVICES}
        for each in lookups.values():
            await stack.enter_async_context(each)
        there = Stage(cluster, lookups, is_kept=is_kept)
        yield there, cluster
        for owner in there.owners:
            await owner.close()


async def test_who_relied_on_what_a_killed_server_had_is_waited_for_until_all_are_told() -> None:
    async with stage() as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "devices")
        await losses.begin("first")
        assert [each.what for each in losses.had] == ["the home PC's address"]
        assert await losses.untold() == ["the home PC's address is neither lost nor served"]
        cluster.crash(owner)
        await there.come(SECOND, "devices")
        deaf = [
            f"{who} was not told that the home PC's address is lost" for who in (HOME_PC, WORK_PC)
        ]
        assert await losses.untold() == deaf
        losses.note(HOME_PC, [OF_DEVICES])
        assert await losses.untold() == deaf[1:]
        losses.note(WORK_PC, [ReceivedEntry(1, 0.0, loss=QueueLoss(began=True))])
        assert await losses.untold() == deaf[1:], "that its queue was lost says nothing of devices"
        losses.note(WORK_PC, [OF_DEVICES])
        assert await losses.untold() == []


async def test_of_what_the_user_has_done_both_are_to_be_told() -> None:
    async with stage() as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "activities")
        await losses.begin("first")
        cluster.crash(owner)
        await there.come(SECOND, "activities")
        deaf = [
            f"{who} was not told that what the user has done is lost" for who in (HOME_PC, WORK_PC)
        ]
        assert await losses.untold() == deaf
        lost = QueueLoss(pools={"activities": ("ann",)})
        losses.note(WORK_PC, [ReceivedEntry(1, 0.0, loss=lost)])
        assert await losses.untold() == deaf[:1]


async def test_who_has_asked_anew_need_be_told_of_later_losses_only() -> None:
    """Its queue was lost as well, so no entry can come; but it has asked where the home PC is."""
    async with stage() as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "devices")
        before = await there.lease("devices", HOME)
        await losses.begin("first")
        cluster.crash(owner)
        second = await there.come(SECOND, "devices")
        deaf = f"{WORK_PC} was not told that the home PC's address is lost"
        losses.note(HOME_PC, [OF_DEVICES])
        assert await losses.untold() == [deaf]
        losses.note_asked_anew(WORK_PC, {"devices": {HOME: before}})
        assert await losses.untold() == [deaf], "its queue counts from before the loss"
        losses.note_asked_anew(WORK_PC, {"devices": {HOME: await there.lease("devices", HOME)}})
        assert await losses.untold() == []
        cluster.crash(second)
        await there.come(FIRST, "devices")
        assert await losses.untold() == [deaf]


async def test_a_queue_that_knows_of_a_loss_before_the_judge_leaves_nothing_to_tell() -> None:
    async with stage() as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "devices")
        await losses.begin("first")
        before = await there.lease("devices", HOME)
        for who in (HOME_PC, WORK_PC):
            losses.note_asked_anew(who, {"devices": {HOME: before + 1}})
        assert await losses.untold() == ["the home PC's address is neither lost nor served"]
        cluster.crash(owner)
        second = await there.come(SECOND, "devices")
        assert await losses.untold() == []
        await losses.begin("second")
        cluster.crash(second)
        await there.come(FIRST, "devices")
        assert len(await losses.untold()) == 2, "of the next loss both have to be told"


async def test_nobody_has_to_be_told_of_what_was_handed_over_or_was_never_there() -> None:
    async with stage() as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "queues")
        await losses.begin("second")
        assert (losses.had, await losses.untold()) == ([], [])
        await losses.begin("first")
        assert len(losses.had) == 2
        await there.come(SECOND, "queues")
        await owner.close()
        await cluster.turn(5)
        assert await losses.untold() == []


async def test_with_the_manager_everything_is_in_question_and_with_a_frontend_nothing() -> None:
    async with stage() as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "devices")
        await losses.begin("frontend-1")
        assert (losses.had, await losses.untold()) == ([], [])
        await losses.begin(MANAGER)
        assert len(losses.had) == len(RELIED_ON)
        unowned = {f"{each.what} is neither lost nor served" for each in RELIED_ON[1:]}
        assert {*await losses.untold()} == unowned, "the address is served as before"
        await losses.begin(MANAGER)
        cluster.crash(owner)
        await there.come(SECOND, "devices")
        deaf = {
            f"{who} was not told that the home PC's address is lost" for who in (HOME_PC, WORK_PC)
        }
        assert {*await losses.untold()} == unowned | deaf


async def test_a_queue_that_a_store_keeps_has_nothing_to_tell_of_itself() -> None:
    async with stage(is_kept=True) as (there, cluster):
        losses, owner = there.losses, await there.come(FIRST, "queues")
        await losses.begin("first")
        assert len(losses.had) == 2
        cluster.crash(owner)
        await there.come(SECOND, "queues")
        assert await losses.untold() == []
