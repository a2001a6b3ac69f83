"""Members whose address differs from where they listen, such as behind a forwarded port."""

import asyncio

import pytest

from tenure.entities import edge_watch, station
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import EntityAsk, EntityFailure
from tenure.transport.in_process_channels import MemoryChannels
from tenure.transport.links import HELLO
from tenure.wire.entity import decode, encode
from tests.patience import DEADLINE_SECONDS
from tests.unit.entities.stage import attached, on_stage
from tests.unit.entities.test_sockets import Room

pytestmark = pytest.mark.asyncio

ADDRESS = "http://forwarded.test:9000"


async def test_people_of_a_killed_worker_with_an_address_of_its_own_leave_as_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The only connection is the one that the worker has made: nothing was sent to its people."""
    monkeypatch.setattr(edge_watch, "PAUSES", (0.0, 0.01, 0.01))
    now = asyncio.get_running_loop().time
    async with on_stage(1, kind=Room) as stage:
        (one,) = stage.members
        two = await stage.enter(kind=Room, address=ADDRESS)
        await stage.spread()
        leads_to = stage.cluster.channels._listening
        channels = two.station._links._channels
        assert isinstance(channels, MemoryChannels)
        leads_to[ADDRESS] = leads_to[channels._url]
        key = stage.key_of(one)
        _, gone = attached(two, key, "bob")
        while await stage.done(one[key].people()) != ["bob"]:
            await stage.cluster.turn(0.02)
        del leads_to[ADDRESS]
        await stage.crash(two)
        gone.cancel()
        died = now()
        while await stage.done(one[key].people()):
            await stage.cluster.turn(0.02)
            assert now() - died < station.SILENT_SECONDS / 2


async def test_a_peer_that_says_no_url_is_told_so() -> None:
    async with on_stage(1, kind=Room) as stage:
        (one,) = stage.members
        channel = await stage.cluster.channels.connect(one.station.owner.address)
        await channel.send(encode(EntityAsk(1, EntityCall("", b"", HELLO, b"\xff"))))
        async with asyncio.timeout(DEADLINE_SECONDS):
            answer = decode(await channel.receive())
        assert isinstance(answer, EntityFailure)
        assert answer.name == "UnicodeDecodeError"
        await channel.close()
