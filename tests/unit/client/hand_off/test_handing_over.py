"""State that moves with its ranges, between real owners: what arrives, what fails, what is said."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import pytest
import pytest_asyncio

from tenure import Granted, KeyRange
from tenure.client.hand_off import application
from tenure.client.hand_off.handler import Exported, Mark
from tenure.protocol.lease.leader.moving import AT_ONCE
from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.protocol.lease.owner.transfer import CHUNKS_UNDER_WAY
from tests.unit.client.hand_off.stage import Member, Stage, State, on_stage

pytestmark = pytest.mark.asyncio
STEPS = range(1, 13)
"""The messages of the hand-offs at which something happens: from the offer to the last word."""


by_each_policy = pytest.mark.parametrize("stage", ["ring", "weighted"], indirect=True)


@pytest_asyncio.fixture
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with on_stage(getattr(request, "param", "ring")) as stage:
        yield stage


def moved(stage: Stage, taker: Member) -> Callable[[], bool]:
    """Whether something has moved to the second owner, and everything is served."""
    return lambda: stage.share(taker) > 0 and stage.is_served()


@by_each_policy
async def test_a_joining_owner_gets_its_ranges_with_their_state(stage: Stage) -> None:
    source = await stage.first()
    taker = await stage.join()
    await stage.until(moved(stage, taker), writing=True)
    await stage.cluster.turn(3)
    assert stage.missing() == []
    assert stage.lost == []
    assert len(taker.state) == stage.share(taker) > 0
    assert len(source.state) == stage.share(source) > 0
    assert all(granted.with_state == granted for granted in taker.granted)
    assert set(source.revoked) == {each for granted in taker.granted for each in granted}


async def test_on_grant_is_told_what_begins_empty(stage: Stage) -> None:
    source = await stage.first()
    assert [granted.with_state for granted in source.granted] == [()]
    assert source.granted == [Granted([KeyRange(b"", None)])]


@by_each_policy
async def test_leaving_hands_everything_over_and_serves_until_then(stage: Stage) -> None:
    source = await stage.first()
    taker = await stage.join()
    await stage.until(moved(stage, taker))
    leaving = asyncio.ensure_future(source.owner.close())
    await stage.until(leaving.done, writing=True)
    await leaving
    stage.members.remove(source)
    await stage.until(stage.is_served)
    assert stage.missing() == []
    assert stage.lost == []
    assert len(taker.state) == len(stage.acknowledged)
    assert not source.state


async def test_the_log_sums_up_what_was_handed_over_and_has_details_for_who_asks(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    source = await stage.first()
    taker = await stage.join()
    await stage.until(lambda: moved(stage, taker)() and stage.has_settled())
    caplog.clear()
    caplog.set_level(logging.DEBUG, "tenure.owner")
    name = f"owner {source.owner.name!r} of pool 'rooms'"
    await stage.until(asyncio.ensure_future(source.owner.close()).done)
    said = [
        (each.levelno, each.getMessage().removeprefix(f"{name} has handed over "))
        for each in caplog.records
        if each.getMessage().startswith(f"{name} has handed over ")
    ]
    details = [level for level, text in said if text.startswith("[")]
    assert details
    assert set(details) == {logging.DEBUG}
    assert said[len(details) :] == [(logging.INFO, f"{len(details)} ranges, and leaves")]


@by_each_policy
async def test_no_acknowledged_write_is_lost_through_joins_and_leaves(stage: Stage) -> None:
    await stage.first()
    for _ in range(3):
        await stage.join()
        for _ in range(10):
            stage.write()
            await stage.cluster.turn(0.02)
        leaver = stage.members[0]
        leaving = asyncio.ensure_future(leaver.owner.close())
        await stage.until(leaving.done, writing=True)
        stage.members.remove(leaver)
    await stage.until(stage.is_served, writing=True)
    assert stage.missing() == []
    assert stage.lost == []


@by_each_policy
async def test_what_is_written_at_every_step_of_a_hand_off_arrives(stage: Stage) -> None:
    _ = await stage.first()
    stage.cluster.channels.on_message = lambda _: stage.write_all()
    taker = await stage.join()
    await stage.until(lambda: stage.share(taker) > 0 and stage.has_settled())
    await stage.until(stage.is_served)
    assert stage.missing() == []
    assert stage.lost == []


async def test_a_check_before_the_last_difference_acknowledges_nothing_after_it(
    stage: Stage,
) -> None:
    source = await stage.first()
    leases = {key: source.owner.check(key) for key in stage.acknowledged}
    taker = await stage.join()
    await stage.until(moved(stage, taker))
    for key, lease in leases.items():
        assert lease
        assert source.owner.holds(lease) == (taker.owner.check(key) is None)


async def test_drain_with_nobody_to_take_returns_at_once_and_the_loss_is_said(
    stage: Stage,
) -> None:
    source = await stage.first()
    await stage.cluster.turn(2)
    leaving = asyncio.ensure_future(source.owner.close())
    await stage.until(leaving.done)
    await stage.until(lambda: stage.lost == [KeyRange(b"", None)])
    assert source.owner.stats().get("drains cut short") is None
    assert source.revoked == [KeyRange(b"", None)]
    assert not source.state


async def test_a_drain_that_takes_too_long_is_cut_short_and_the_loss_is_said(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    source = await stage.first()
    taker = await stage.join()
    taker.state.gate.clear()
    leaving = asyncio.ensure_future(source.owner.close(drain=0.05))
    await stage.until(leaving.done)
    stage.members.remove(source)
    taker.state.gate.set()
    await stage.until(lambda: bool(stage.lost) and stage.is_served())
    assert stage.missing() == []
    assert "could not hand over everything within 0.05 s" in caplog.text


# --- faults at each step --------------------------------------------------------------------------


def at_message(stage: Stage, step: int, act: Callable[[], object]) -> None:
    """Do something once, instead of carrying the message of this number."""
    seen = 0

    def on_message(data: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen == step:
            act()

    stage.cluster.channels.on_message = on_message


@pytest.mark.parametrize("step", STEPS)
async def test_a_connection_that_breaks_loses_nothing(stage: Stage, step: int) -> None:
    await stage.first()
    at_message(stage, step, stage.cluster.channels.cut)
    taker = await stage.join()
    await stage.until(moved(stage, taker), writing=True)
    await stage.cluster.turn(2)
    await stage.until(stage.is_served)
    assert stage.missing() == []
    assert stage.lost == []


@pytest.mark.parametrize("step", STEPS)
async def test_a_taker_that_dies_costs_nothing_that_is_not_said(stage: Stage, step: int) -> None:
    await stage.first()
    taker = Member(stage.cluster)
    at_message(stage, step, lambda: stage.cluster.crash(taker.owner))
    entering = asyncio.create_task(taker.owner.__aenter__())
    await stage.until(entering.done)
    for _ in range(60):
        stage.write()
        await stage.cluster.turn(0.05)
    await stage.until(stage.is_served)
    assert stage.missing() == []


@pytest.mark.parametrize("step", STEPS)
async def test_a_source_that_dies_is_a_loss_that_is_said(stage: Stage, step: int) -> None:
    source = await stage.first()
    at_message(stage, step, lambda: stage.cluster.crash(source.owner))
    taker = await stage.join()
    for _ in range(60):
        await stage.cluster.turn(0.05)
    stage.members.remove(source)
    await stage.until(stage.is_served)
    assert stage.missing() == []
    assert stage.lost
    assert dict(taker.state).items() <= {**stage.acknowledged}.items()


@pytest.mark.parametrize("method", ["export_range", "import_chunk"])
async def test_a_handler_that_fails_makes_it_a_loss_that_is_said(
    stage: Stage, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = await stage.first()
    state = State()
    source.state.fails = state.fails = {method}
    taker = await stage.join(state)
    await stage.until(moved(stage, taker))
    await stage.cluster.turn(3)
    await stage.until(stage.is_served)
    assert stage.missing() == []
    assert stage.lost
    assert not taker.state
    assert "could not hand over" in caplog.text


async def test_what_could_not_be_discarded_is_not_served_before_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "RETRY_SECONDS", 0.001)
    source = await stage.first()
    source.state.fails = {"discard_range"}
    taker = await stage.join()
    await stage.until(moved(stage, taker))
    await stage.until(lambda: source.owner.stats().get("discards failed", 0) > 1)
    moved_away = [key for key in stage.acknowledged if source.owner.check(key) is None]
    assert set(moved_away) <= set(source.state)
    stage.members.remove(taker)
    stage.cluster.crash(taker.owner)
    await stage.cluster.turn(3)
    assert [key for key in moved_away if source.owner.check(key) is not None] == []
    source.state.fails = set()
    await stage.until(stage.is_served)
    assert not [key for key in moved_away if key in source.state]
    assert stage.missing() == []


# --- sizes ----------------------------------------------------------------------------------------


class Heavy(State):
    """Exports as many chunks as it is told, and counts how many are out."""

    chunks = 40
    chunk = b"\x91\x90"  # of no keys
    exported = 0

    def export_range(self, key_range: KeyRange, since: Mark | None) -> Exported:
        mark, chunks = super().export_range(key_range, since)

        def counted() -> Iterator[bytes]:
            assert isinstance(chunks, Iterable)
            yield from chunks
            for _ in range(self.chunks if since is None else 0):
                self.exported += 1
                yield self.chunk

        return mark, counted()


async def test_a_slow_taker_is_not_sent_more_than_a_few_chunks(stage: Stage) -> None:
    heavy = Heavy()
    first = await stage.join(heavy)
    await stage.until(lambda: bool(first.owner.ranges))
    slow = State()
    slow.gate.clear()
    taker = await stage.join(slow)
    await stage.until(lambda: heavy.exported > 0)
    await stage.cluster.turn(1)
    assert heavy.exported <= heavy.calls.count("export_range") * (CHUNKS_UNDER_WAY + 2)
    taker.state.gate.set()
    await stage.until(lambda: any(granted.with_state for granted in taker.granted))


async def test_a_chunk_that_is_too_large_is_not_sent(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    heavy = Heavy()
    heavy.chunk, heavy.chunks = bytes(CHUNK_BYTES + 1), 1
    first = await stage.join(heavy)
    await stage.until(lambda: bool(first.owner.ranges))
    taker = await stage.join()
    await stage.until(lambda: "at most 4194304 are allowed" in caplog.text)
    await stage.until(lambda: bool(taker.owner.ranges))
    assert not any(granted.with_state for granted in taker.granted)


async def test_what_can_not_hand_over_is_said_at_once(stage: Stage) -> None:
    with pytest.raises(ValueError, match="has no import_chunk, discard_range"):
        stage.cluster.owner(hand_off=type("Half", (), {"export_range": print})())


async def test_a_range_that_fails_again_and_again_is_logged_once_at_each_end(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.first()
    state = State()
    state.fails = {"import_chunk"}
    await stage.join(state)
    await stage.until(lambda: state.calls.count("import_chunk") > 3 * AT_ONCE)
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    for end in "could not hand over", "takes no more of":
        of_end = [line for line in lines if end in line]
        assert 0 < len(of_end) == len(set(of_end)) <= AT_ONCE
