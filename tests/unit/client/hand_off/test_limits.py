"""How many ranges an owner takes at once, and how long it waits for a silent peer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tenure import KeyRange
from tenure.base.instants import in_seconds
from tenure.client import owner
from tenure.protocol.lease.leader.moving import AT_ONCE
from tenure.protocol.lease.owner import admission
from tenure.protocol.lease.owner.admission import ARRIVING_AT_ONCE
from tenure.protocol.lease.owner.transfer import (
    PROGRESS_NS,
    Accepted,
    NotTaken,
    Offer,
    Taken,
    ToSource,
    Whole,
)
from tenure.transport.channels import Channel, ChannelLost
from tenure.transport.in_process_channels import ChannelEnd, MemoryChannels
from tenure.wire.hand_off import decode_to_source, decode_to_taker
from tests.unit.client.hand_off.stage import STEP, Member, Stage, on_stage, turn_patience_too
from tests.unit.client.hand_off.test_offers import Stranger, without_keys

pytestmark = pytest.mark.asyncio
Patch = pytest.MonkeyPatch
PROGRESS_SECONDS = in_seconds(PROGRESS_NS)
OURS = ("Line.", "Transfers._serve")
"""Functions that run while state is given or taken; not `Transfers._main`, which ends with its
owner.
"""


@pytest_asyncio.fixture
async def stage(monkeypatch: Patch) -> AsyncIterator[Stage]:
    async with on_stage() as stage:
        turn_patience_too(stage, monkeypatch)
        yield stage


def inside(member: Member) -> Any:  # noqa: ANN401  # what no user sees
    return member.owner._engine.transfers


def left_behind(stage: Stage) -> list[str]:
    """Return what hand-offs must not leave behind when they have ended, well or not."""
    tasks = asyncio.all_tasks(stage.cluster._loop)
    names = [getattr(task.get_coro(), "__qualname__", "") for task in tasks]
    left = [f"a task: {name}" for name in names if name.startswith(OURS)]
    left += ["a channel" for end in stage.cluster.channels._open if not end._why]
    for member in stage.members:
        of, machine = inside(member), member.owner._engine.machine
        left += [f"a giving: {order.range}" for order in of._givings]
        left += [f"an arrival: {each}" for each in of._arriving]
        left += [f"a copy: {copy.range}" for copy in machine.copies.listed()]
    return left


def recalled(source: Member, taker: Member) -> set[KeyRange]:
    """Return the ranges that the taker began empty."""
    empty = {each for granted in taker.granted for each in set(granted) - set(granted.with_state)}
    assert empty <= set(source.revoked)
    return empty


async def all_has_ended(stage: Stage) -> None:
    """All moves are made, and nothing was lost but what was said to be."""
    await stage.until(lambda: stage.is_served() and stage.has_settled(), writing=True)
    await stage.cluster.turn(1)
    assert stage.missing() == []
    assert left_behind(stage) == []


# --- how many -------------------------------------------------------------------------------------


async def offers_beside(stranger: Stranger, i: int) -> tuple[Channel, ToSource]:
    """Each in a range of its own."""
    key = stranger.offer.start
    return await stranger.offers(start=key + bytes([i]), end=key + bytes([i + 1]))


async def test_more_ranges_than_so_many_at_once_are_refused_until_one_has_ended(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
    channels = []
    for i in range(ARRIVING_AT_ONCE):
        channel, answer = await offers_beside(stranger, i)
        assert isinstance(answer, Accepted)
        channels.append(channel)
    discarded = member.state.calls.count("discard_range")
    offering = asyncio.create_task(offers_beside(stranger, ARRIVING_AT_ONCE))
    await stage.until(offering.done)
    channel, answer = await offering
    await channel.close()
    assert answer == NotTaken(why=f"{ARRIVING_AT_ONCE} ranges are arriving already")
    assert len(inside(member)._arriving) == ARRIVING_AT_ONCE
    assert member.state.calls.count("discard_range") == discarded, "it was begun with"
    offering = asyncio.create_task(offers_beside(stranger, ARRIVING_AT_ONCE))
    await stage.cluster.turn(0.5)
    assert not offering.done()
    await channels.pop().close()
    await stage.until(offering.done)
    channel, answer = await offering
    assert isinstance(answer, Accepted)
    for each in (channel, *channels):
        await each.close()
    await stage.until(lambda: not left_behind(stage))
    stats = member.owner.stats()
    assert (stats["offers refused"], stats["imports discarded"]) == (1, ARRIVING_AT_ONCE + 1)


async def test_strangers_that_say_nothing_keep_out_nobody(stage: Stage, monkeypatch: Patch) -> None:
    stranger, member = await without_keys(stage, monkeypatch)
    monkeypatch.setattr(admission, "CHANNELS_OF_A_PEER", 3)
    channels = stage.cluster.channels.channels()
    silent = [await channels.connect(stranger.url) for _ in range(3)]
    await stage.cluster.turn(STEP)
    taken, answer = await stranger.offers()
    assert isinstance(answer, Accepted)
    assert member.owner.stats()["channels refused"] == 1
    why = "others have come, and nothing was offered here"
    said = await stage.soon(silent.pop(0).receive())
    assert decode_to_source(said) == NotTaken(why=why)
    silent.append(await channels.connect(stranger.url))
    await stage.cluster.turn(STEP)
    assert len(inside(member)._takings) == 4, "what is admitted does not count"
    for channel in (taken, *silent):
        await channel.close()


async def test_what_is_refused_for_too_many_comes_later_with_its_state(
    stage: Stage, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(admission, "ARRIVING_AT_ONCE", 1)
    monkeypatch.setattr(admission, "PATIENCE_NS", 1)
    source = await stage.first()
    taker = await stage.join()
    await all_has_ended(stage)
    assert stage.lost == []
    assert all(granted.with_state == granted for granted in taker.granted)
    refused = taker.owner.stats()["offers refused"]
    assert refused == source.owner.stats()["hand-offs failed"] > 0


async def test_what_is_refused_for_good_is_recalled_and_the_loss_is_said(
    stage: Stage, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(admission, "ARRIVING_AT_ONCE", 0)
    source = await stage.first()
    taker = await stage.join()
    stats = source.owner.stats
    await stage.until(lambda: stats().get("hand-offs failed", 0) > 0, writing=True)
    assert "it refused: 0 ranges are arriving already" in caplog.text
    assert stage.share(source) == len(stage.acknowledged), "it was not served meanwhile"
    await stage.until(lambda: bool(stage.lost), writing=True)
    assert "import_chunk" not in taker.state.calls
    monkeypatch.setattr(admission, "ARRIVING_AT_ONCE", ARRIVING_AT_ONCE)
    await all_has_ended(stage)
    assert recalled(source, taker) == set(stage.lost)
    assert len(stage.lost) == AT_ONCE


async def test_state_without_end_is_refused_and_both_owners_say_so(
    stage: Stage, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    """A giver may lie, or loop. What is not taken moves without its state, and that is said."""
    monkeypatch.setattr(owner, "STATE_BYTES", 10)
    source = await stage.first()
    taker = await stage.join()
    why = "its state has more than 10 bytes, the most that this owner takes"

    def said(level: str, by: Member, what: str) -> list[object]:
        """The ranges of which an owner says that, as often as it does."""
        begin = f"owner {by.owner.name!r} of pool 'rooms' {what} "
        at_level = (each for each in caplog.records if each.levelname == level)
        told = [each for each in at_level if each.getMessage().startswith(begin)]
        return [tuple(each.args or ())[1] for each in told if why in each.getMessage()]

    def refused() -> list[object]:
        return said("ERROR", taker, "takes no more of")

    def kept() -> list[object]:
        return said("WARNING", source, "could not hand over")

    # Several ranges move at once, and each owner writes when its own turn comes: in any order.
    await stage.until(lambda: bool({*refused()} & {*kept()}), writing=True)
    for ranges in (refused(), kept()):
        assert len(ranges) == len({*ranges}), "the same failure was told again"
    assert "give all owners of the pool a larger hand_off_bytes" in caplog.text
    assert stage.share(source) == len(stage.acknowledged), "it was not served meanwhile"
    await stage.until(lambda: bool(stage.lost), writing=True)
    assert recalled(source, taker) == set(stage.lost)
    await stage.until(lambda: not left_behind(stage))
    assert not inside(taker)._arriving


# --- how long -------------------------------------------------------------------------------------


class Silence:
    """Takers hear everything, but what they say is not carried, from a word on."""

    def __init__(self, stage: Stage, monkeypatch: Patch, word: type[ToSource]) -> None:
        self.word = word
        self.is_on = True
        self.ranges: list[KeyRange] = []
        """The ranges about which nothing more is said."""
        self._monkeypatch = monkeypatch
        network = stage.cluster.channels
        self._connect = network.connect
        monkeypatch.setattr(network, "connect", self.connect)

    async def connect(self, url: str, place: object = None) -> Any:  # noqa: ANN401
        near = await self._connect(url, place)
        if not self.is_on:
            return near
        offered: list[KeyRange] = []
        is_silent = False
        hear, say, end = near.send, near.other.send, near.other.close

        async def send(data: bytes) -> None:
            message = decode_to_taker(data)
            if isinstance(message, Offer):
                offered.append(message.range)
            await hear(data)

        async def answer(data: bytes) -> None:
            nonlocal is_silent
            if isinstance(decode_to_source(data), self.word):
                is_silent = True
                self.ranges += offered
            if not is_silent:
                await say(data)

        async def close() -> None:
            if not is_silent:  # it stays connected
                await end()

        self._monkeypatch.setattr(near, "send", send)
        self._monkeypatch.setattr(near.other, "send", answer)
        self._monkeypatch.setattr(near.other, "close", close)
        return near


async def given_up_in_time(stage: Stage, source: Member, *, is_served: bool = True) -> None:
    """Check when it is given up: not before this long after the first silence, and in time. The
    source serves the range, or does again.
    """
    await stage.cluster.turn(PROGRESS_SECONDS - 2 * STEP)
    assert "hand-offs failed" not in source.owner.stats()
    await stage.cluster.turn(4 * STEP)
    assert source.owner.stats()["hand-offs failed"] > 0
    if is_served:
        assert stage.share(source) == len(stage.acknowledged)
    else:
        await stage.until(lambda: any(granted.with_state for granted in source.granted))
    assert stage.lost == []


@pytest.mark.parametrize("word", [Accepted, Taken, Whole])
async def test_a_taker_that_falls_silent_is_given_up_and_the_loss_is_said(
    stage: Stage, monkeypatch: Patch, caplog: pytest.LogCaptureFixture, word: type[ToSource]
) -> None:
    source = await stage.first()
    silence = Silence(stage, monkeypatch, word)
    taker = await stage.join()
    await stage.until(lambda: bool(silence.ranges))
    await given_up_in_time(stage, source, is_served=word is not Whole)
    assert f"nothing was heard of it for {PROGRESS_SECONDS:g} s" in caplog.text
    await stage.until(lambda: bool(stage.lost), writing=True)
    silence.is_on = False
    await all_has_ended(stage)
    assert recalled(source, taker) == set(stage.lost) == set(silence.ranges[:AT_ONCE])


@pytest.mark.parametrize("what", ["connect", "send"])
async def test_a_taker_that_never_lets_one_in_or_reads_nothing_is_given_up(
    stage: Stage, monkeypatch: Patch, what: str
) -> None:
    begun = 0

    async def never(*_: object) -> None:
        nonlocal begun
        begun += 1
        await asyncio.Event().wait()

    source = await stage.first()
    with monkeypatch.context() as patch:
        patch.setattr(MemoryChannels if what == "connect" else ChannelEnd, what, never)
        taker = await stage.join()
        await stage.until(lambda: begun > 0)
        await given_up_in_time(stage, source)
        await stage.until(lambda: bool(stage.lost), writing=True)
    await all_has_ended(stage)
    assert recalled(source, taker) == set(stage.lost)
    assert len(stage.lost) == AT_ONCE


async def test_a_stranger_that_connects_and_says_nothing_is_let_go(
    stage: Stage, monkeypatch: Patch
) -> None:
    stranger, _ = await without_keys(stage, monkeypatch)
    channel = await stage.cluster.channels.channels().connect(stranger.url)
    hearing = asyncio.create_task(channel.receive())
    await stage.cluster.turn(PROGRESS_SECONDS - 2 * STEP)
    assert not hearing.done()
    await stage.until(hearing.done)
    with pytest.raises(ChannelLost):
        await hearing
    await channel.close()
    await stage.cluster.turn(STEP)
    assert left_behind(stage) == []


async def test_a_drain_that_is_cut_short_counts_what_nobody_serves_any_more(
    stage: Stage, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    source = await stage.first()
    Silence(stage, monkeypatch, Whole)
    await stage.join()
    machine: Any = source.owner._engine.machine
    leaving = asyncio.ensure_future(source.owner.close(drain=2))
    await stage.cluster.turn(1)
    served, given = len(machine.belief.leases), len(machine.copies.listed())
    assert given > 0
    await stage.until(leaving.done)
    stage.members.remove(source)
    assert f"it returns {served + given} ranges without their state" in caplog.text
    await stage.until(lambda: bool(stage.lost) and stage.is_served())
    assert stage.missing() == []
