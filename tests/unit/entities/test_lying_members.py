"""A member of the pool that lies to the others costs them no more than its own keys."""

import asyncio

import pytest

from tenure.errors import NotOwner
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import RESUME
from tenure.testing.clock import come_to_rest
from tenure.transport.link import GatedAnswer
from tests.unit.entities.stage import attached, on_stage
from tests.unit.entities.test_sockets import Room

pytestmark = pytest.mark.asyncio


async def test_who_sends_callers_elsewhere_again_and_again_costs_no_connections() -> None:
    async with on_stage(3) as stage:
        one, two, three = stage.members
        key, honest = stage.key_of(two), two.station._links._serve
        await stage.done(one[key].add())
        links = one.station._links
        for each in (two, three):
            await links.link(each.station.owner.address)
        links.let_go(three.station.owner.address)
        lies = 0

        async def lie(call: EntityCall) -> GatedAnswer:
            nonlocal lies
            if call.method != "add":
                return await honest(call)
            lies += 1
            raise NotOwner("not here", address=three.station.owner.address)

        two.station._links._serve = lie
        calling = asyncio.ensure_future(one[key].add())
        await stage.until(lambda: lies > 3)
        two.station._links._serve = honest
        assert await stage.done(calling) == 2
        assert list(links._links) == [two.station.owner.address]


async def test_who_connects_and_goes_again_and_again_has_no_sockets_asked_about_each_time() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key, asked, honest = stage.key_of(two), 0, two.station._links._serve

        async def counting(call: EntityCall) -> GatedAnswer:
            nonlocal asked
            asked += call.method == RESUME
            return await honest(call)

        two.station._links._serve = counting
        ann, task = attached(one, key, "ann")
        await stage.until(lambda: ann.is_accepted)
        for _ in range(30):
            one.station._on_link_lost("http://anybody.test")
            await come_to_rest()
        assert await stage.done(one[key].people()) == ["ann"]
        assert asked <= 2
        ann.leave()
        await stage.done(task)
