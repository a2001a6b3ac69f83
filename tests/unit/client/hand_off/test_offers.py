"""What an owner answers to whoever offers it state, and what becomes of that."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tenure import KeyRange, Owner
from tenure.transport.channels import Channel, ChannelLost
from tenure.wire.hand_off import (
    Accepted,
    Chunk,
    Last,
    Offer,
    Refused,
    Taken,
    ToSource,
    Whole,
    decode_to_source,
    encode,
)
from tests.unit.client.hand_off.stage import Stage, on_stage

pytestmark = pytest.mark.asyncio
HIGH = 1 << 40
KEY = "a stranger's"
CHUNK = Chunk(msgspec.msgpack.encode(([(None, None, [KEY], [7])],)))


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage() as stage:
        yield stage


class Stranger:
    """Offers what nobody ordered it to."""

    def __init__(self, stage: Stage, owner: Owner) -> None:
        self.stage = stage
        machine: Any = owner._engine.machine()  # what a manager tells a source
        self.url = machine.config.hand_off
        key = owner.key(KEY)
        self.offer = Offer(
            "rooms",
            machine.belief.journal,
            key,
            key + b"\x00",
            HIGH,
            99,
            machine.belief.incarnation,
        )

    async def offers(self, **other: object) -> tuple[Channel, ToSource]:
        channel = await self.stage.cluster.channels.channels().connect(self.url)
        await channel.send(encode(msgspec.structs.replace(self.offer, **other)))
        return channel, decode_to_source(await channel.receive())


async def without_keys(stage: Stage) -> tuple[Stranger, Any]:
    """An owner that does not hold the stranger's key, so that it might be offered it."""
    members = [await stage.first(1), await stage.join()]
    await stage.cluster.turn(3)
    (member,) = [each for each in members if each.owner.check(KEY) is None]
    return Stranger(stage, member.owner), member


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"pool": "other"}, "this is an owner of the pool 'rooms', not 'other'"),
        ({"journal": 1}, "this owner's manager has another journal"),
        ({"taker": 77}, "not 77"),
        ({"start": b"", "end": None}, "is served here under number"),
    ],
)
async def test_an_offer_that_does_not_fit_is_refused(
    stage: Stage, other: dict[str, Any], why: str
) -> None:
    stranger, member = await without_keys(stage)
    _, answer = await stranger.offers(**other)
    assert isinstance(answer, Refused)
    assert why in answer.why
    assert member.owner.stats()["offers refused"] == 1


async def test_what_is_no_offer_is_refused(stage: Stage) -> None:
    stranger, _ = await without_keys(stage)
    for nonsense in (encode(Last()), b"\x09", b"", b"\x01\xc1"):
        channel = await stage.cluster.channels.channels().connect(stranger.url)
        await channel.send(nonsense)
        assert isinstance(decode_to_source(await channel.receive()), Refused)


async def test_a_chunk_that_cannot_be_imported_ends_it(stage: Stage) -> None:
    stranger, member = await without_keys(stage)
    channel, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await channel.send(encode(Chunk(b"\xc1")))
    assert isinstance(decode_to_source(await channel.receive()), Refused)
    await stage.until(lambda: member.owner.stats().get("imports discarded") == 1)


async def test_state_that_comes_without_its_grant_is_dropped(stage: Stage) -> None:
    stranger, member = await without_keys(stage)
    channel, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await channel.send(encode(CHUNK))
    assert isinstance(decode_to_source(await channel.receive()), Taken)
    assert member.state[KEY] == 7
    assert member.owner.check(KEY) is None
    await channel.send(encode(Last()))
    assert isinstance(decode_to_source(await channel.receive()), Whole)
    await stage.until(lambda: KEY not in member.state)
    assert member.owner.check(KEY) is None


async def test_what_came_of_a_broken_offer_is_dropped(stage: Stage) -> None:
    stranger, member = await without_keys(stage)
    channel, _ = await stranger.offers()
    await channel.send(encode(CHUNK))
    assert isinstance(decode_to_source(await channel.receive()), Taken)
    await channel.close()
    await stage.until(lambda: KEY not in member.state)
    again, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await again.close()


async def test_of_two_offers_that_overlap_the_second_waits_for_the_first_to_end(
    stage: Stage,
) -> None:
    stranger, _ = await without_keys(stage)
    first, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    _, answer = await stranger.offers()
    assert isinstance(answer, Refused)
    assert "is arriving already" in answer.why
    await first.close()


async def test_an_offer_under_a_later_number_ends_the_earlier_one(stage: Stage) -> None:
    stranger, member = await without_keys(stage)
    first, _ = await stranger.offers()
    await first.send(encode(CHUNK))
    assert isinstance(decode_to_source(await first.receive()), Taken)
    _, answer = await stranger.offers(number=HIGH + 1)
    assert isinstance(answer, Accepted)
    assert KEY not in member.state
    with pytest.raises(ChannelLost):
        await first.receive()


async def test_ranges_that_do_not_overlap_arrive_beside_each_other(stage: Stage) -> None:
    stranger, _ = await without_keys(stage)
    key = stranger.offer.start
    _, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    _, answer = await stranger.offers(start=key + b"\x00", end=key + b"\x01")
    assert isinstance(answer, Accepted)
    assert KeyRange(key, key + b"\x00").intersection(KeyRange(key + b"\x00", None)) is None
