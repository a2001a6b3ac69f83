"""An owner answers offers of state, and handles what becomes of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tenure import KeyRange, Owner
from tenure.protocol.lease.leader.moving import Moving
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Expected
from tenure.protocol.lease.owner.transfer import (
    Accepted,
    Chunk,
    Last,
    NotTaken,
    Offer,
    Taken,
    ToSource,
    Whole,
)
from tenure.transport.channels import Channel, ChannelLost
from tenure.wire.hand_off import decode_to_source, encode
from tests.unit.client.hand_off.stage import Stage, on_stage

pytestmark = pytest.mark.asyncio
HIGH = 1 << 40
SECRET = 77
Patch = pytest.MonkeyPatch
KEY = "a stranger's"
CHUNK = Chunk(data=msgspec.msgpack.encode(([(None, None, [KEY], [7])],)))


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage() as stage:
        yield stage


class Stranger:
    """Offers what its taker's manager announces, or what nobody ordered it to."""

    def __init__(self, stage: Stage, owner: Owner, monkeypatch: Patch) -> None:
        self.stage = stage
        machine: Any = owner._engine.machine  # what a manager tells a source
        self.url = machine.config.hand_off
        key = owner.key(KEY)
        self.offer = Offer(
            pool="rooms",
            journal=machine.belief.journal,
            start=key,
            end=key + b"\x00",
            number=HIGH,
            source=99,
            taker=machine.belief.incarnation,
            secret=SECRET,
        )
        self.announced: tuple[Expected, ...] = ()
        self._incarnation = machine.belief.incarnation

        def expected(moving: Moving, session: Session) -> tuple[Expected, ...]:
            del moving
            return self.announced if session.incarnation == self._incarnation else ()

        monkeypatch.setattr(Moving, "expected", expected)

    async def offers(self, **other: object) -> tuple[Channel, ToSource]:
        """An offer, which was announced, beside those before it."""
        offer = msgspec.structs.replace(self.offer, **other)
        expected = Expected(
            start=offer.start,
            end=offer.end,
            number=offer.number,
            source=offer.source,
            secret=offer.secret,
        )
        if expected not in self.announced:
            before = [each for each in self.announced if not each.range.overlaps(offer.range)]
            self.announced = (*before, expected)
            await self.announces_all()
        return await self.says(offer)

    async def announces_all(self) -> None:
        for manager in self.stage.cluster._managers.values():
            leader = manager.engine._machine.leader
            assert leader
            leader.pools["rooms"].sessions[self._incarnation].settled = False
        await self.stage.cluster.turn(0.5)

    async def says(self, offer: Offer) -> tuple[Channel, ToSource]:
        """An offer, announced or not."""
        channel = await self.stage.cluster.channels.channels().connect(self.url)
        with suppress(ChannelLost):  # a refusal may be there before the offer is
            await channel.send(encode(offer))
        return channel, decode_to_source(await self.stage.soon(channel.receive()))


async def without_keys(stage: Stage, monkeypatch: Patch) -> tuple[Stranger, Any]:
    """An owner that does not hold the stranger's key, so that it might be offered it."""
    members = [await stage.first(1), await stage.join()]
    await stage.cluster.turn(3)
    (member,) = [each for each in members if each.owner.check(KEY) is None]
    return Stranger(stage, member.owner, monkeypatch), member


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
    stage: Stage, monkeypatch: Patch, other: dict[str, Any], why: str
) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
    _, answer = await stranger.offers(**other)
    assert isinstance(answer, NotTaken)
    assert why in answer.why
    assert member.owner.stats()["offers refused"] == 1


@pytest.mark.parametrize("other", [{"secret": 0}, {"secret": 78}, {"source": 98}, {"end": None}])
async def test_nobody_offers_what_the_manager_has_not_announced(
    stage: Stage, monkeypatch: Patch, other: dict[str, Any]
) -> None:
    """This holds even for a peer that knows all that is in the table: it does not know
    the secret.
    """
    stranger, member = await without_keys(stage, monkeypatch)
    channel, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await channel.close()
    await stage.cluster.turn(1)
    member.state.calls.clear()
    _, answer = await stranger.says(msgspec.structs.replace(stranger.offer, **other))
    assert isinstance(answer, NotTaken)
    assert "this owner's manager has not announced" in answer.why
    assert member.state.calls == [], "nothing is even discarded for it"


async def test_an_offer_that_comes_before_it_is_announced_waits_for_a_moment(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, _ = await without_keys(stage, monkeypatch)
    channel = await stage.cluster.channels.channels().connect(stranger.url)
    await channel.send(encode(stranger.offer))
    hearing = asyncio.ensure_future(channel.receive())
    await stage.cluster.turn(0.1)
    assert not hearing.done()
    expected = stranger.offer
    stranger.announced = (
        Expected(
            start=expected.start,
            end=expected.end,
            number=HIGH,
            source=expected.source,
            secret=expected.secret,
        ),
    )
    await stranger.announces_all()
    assert isinstance(decode_to_source(await stage.soon(hearing)), Accepted)
    await channel.close()


async def test_what_is_not_expected_any_more_is_taken_no_further(
    stage: Stage, monkeypatch: Patch
) -> None:
    """A source that was accepted and says nothing is in nobody's way for longer than its order."""
    stranger, member = await without_keys(stage, monkeypatch)
    channel, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await channel.send(encode(CHUNK))
    assert isinstance(decode_to_source(await channel.receive()), Taken)
    stranger.announced = ()
    await stage.until(lambda: KEY not in member.state)
    answer = decode_to_source(await stage.soon(channel.receive()))
    assert answer == NotTaken(why="it is no longer wanted")


async def test_what_is_no_offer_is_refused(stage: Stage, monkeypatch: Patch) -> None:
    stranger, _ = await without_keys(stage, monkeypatch)
    for nonsense in (encode(Last()), b"\x09", b"", b"\x01\xc1"):
        channel = await stage.cluster.channels.channels().connect(stranger.url)
        await channel.send(nonsense)
        assert isinstance(decode_to_source(await channel.receive()), NotTaken)


async def test_a_chunk_that_cannot_be_imported_ends_it(stage: Stage, monkeypatch: Patch) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
    channel, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await channel.send(encode(Chunk(data=b"\xc1")))
    assert isinstance(decode_to_source(await channel.receive()), NotTaken)
    await stage.until(lambda: member.owner.stats().get("imports discarded") == 1)


async def test_state_that_comes_without_its_grant_is_dropped(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
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


async def test_what_came_of_a_broken_offer_is_dropped(stage: Stage, monkeypatch: Patch) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
    channel, _ = await stranger.offers()
    await channel.send(encode(CHUNK))
    assert isinstance(decode_to_source(await channel.receive()), Taken)
    await channel.close()
    await stage.until(lambda: KEY not in member.state)
    again, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    await again.close()


async def test_of_two_offers_that_overlap_the_second_waits_for_the_first_to_end(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, _ = await without_keys(stage, monkeypatch)
    first, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    _, answer = await stranger.offers()
    assert isinstance(answer, NotTaken)
    assert "is arriving already" in answer.why
    await first.close()


async def test_an_offer_under_a_later_number_ends_the_earlier_one(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
    first, _ = await stranger.offers()
    await first.send(encode(CHUNK))
    assert isinstance(decode_to_source(await first.receive()), Taken)
    _, answer = await stranger.offers(number=HIGH + 1)
    assert isinstance(answer, Accepted)
    assert KEY not in member.state
    said = decode_to_source(await stage.soon(first.receive()))
    assert said == NotTaken(why="it is no longer wanted")


async def test_ranges_that_do_not_overlap_arrive_beside_each_other(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, _ = await without_keys(stage, monkeypatch)
    key = stranger.offer.start
    _, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    _, answer = await stranger.offers(start=key + b"\x00", end=key + b"\x01")
    assert isinstance(answer, Accepted)
    assert KeyRange(key, key + b"\x00").intersection(KeyRange(key + b"\x00", None)) is None
