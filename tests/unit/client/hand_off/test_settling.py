"""Work that has begun in a range finishes before the range moves with its state, up to
a deadline.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tenure import ConfigurationError, KeyRange, LeaseLost, NotOwner
from tenure.base.instants import in_seconds, seconds
from tenure.client.guard import Guard
from tenure.client.hand_off.handler import check_handler
from tenure.protocol.lease.owner.giving import SETTLE_NS
from tenure.protocol.lease.steering_events import ChoosePolicy
from tenure.protocol.lease.timing import TEST
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster
from tests.unit.client.hand_off.stage import STEP, Member, Stage, State

pytestmark = pytest.mark.asyncio
KEYS = [f"user-{i}" for i in range(60)]
PAST_SETTLE = in_seconds(SETTLE_NS) + 2
LONG = msgspec.structs.replace(TEST, hand_off_ns=seconds(60))
"""Here an order stands for longer than its settling may take, as in other presets."""


@asynccontextmanager
async def settling_stage() -> AsyncIterator[Stage]:
    async with InProcessCluster(["rooms"], clock=TurnedClock(), timing=LONG) as cluster:
        cluster.ask(ChoosePolicy(pool="rooms", policy="ring"))
        stage = Stage(cluster)
        try:
            yield stage
        finally:
            await stage.leave()


class SettlingState(State):
    """Waits for its own turns, too."""

    def __init__(self) -> None:
        super().__init__()
        self.done = asyncio.Event()
        self.settled: list[KeyRange] = []
        self.resumed: list[KeyRange] = []
        self.deadlines: list[float] = []

    async def settle_range(self, key_range: KeyRange, deadline: float) -> None:
        self._called("settle_range")
        self.deadlines.append(deadline)
        await self.done.wait()
        self.settled.append(key_range)

    def resume_range(self, key_range: KeyRange) -> None:
        self.resumed.append(key_range)


async def body(member: Member, key: str, ends: asyncio.Event) -> None:
    async with member.owner.guard(key, finish=True):
        await ends.wait()
        member.state[key] = -1


def moved(source: Member) -> list[str]:
    return [key for key in KEYS if source.owner.check(key) is None]


async def test_a_range_is_served_and_not_handed_over_before_its_bodies_are_done() -> None:
    async with settling_stage() as stage:
        source, ends = await stage.first(), asyncio.Event()
        bodies = [asyncio.create_task(body(source, key, ends)) for key in KEYS]
        await come_to_rest()
        taker = await stage.join()
        await stage.until(lambda: bool(source.owner._engine.guards._settling))
        for _ in range(100):
            await stage.cluster.turn(0.05)
        assert source.owner._engine.guards._settling, "longer than a taker waits for an offer"
        assert moved(source) == [], "it is served meanwhile"
        refused = []
        for key in KEYS:
            try:
                async with source.owner.guard(key, finish=True):
                    pass
            except NotOwner:
                refused.append(key)
            async with source.owner.guard(key):
                pass
        assert 0 < len(refused) < len(KEYS), "nothing begins that would have to finish, there"
        ends.set()
        await asyncio.gather(*bodies)
        await stage.until(lambda: stage.has_settled() and stage.is_served())
        there = moved(source)
        assert set(refused) <= set(there)
        assert all(taker.state[key] == -1 for key in there), "what the bodies wrote came along"
        assert stage.lost == []
        assert source.owner._engine.guards._settling == []


async def test_a_body_that_does_not_end_is_waited_for_until_the_deadline_and_loses_its_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with settling_stage() as stage:
        source, never = await stage.first(), asyncio.Event()
        bodies = [asyncio.create_task(body(source, key, never)) for key in KEYS]
        await come_to_rest()
        await stage.join()
        await stage.until(lambda: bool(source.owner._engine.guards._settling))
        await stage.cluster.turn(in_seconds(SETTLE_NS) - 1)
        assert moved(source) == []
        await stage.cluster.turn(3)
        await stage.until(lambda: bool(moved(source)))
        assert "before everything that was to finish there is done" in caplog.text
        cut = next(iter(moved(source)))
        with pytest.raises(LeaseLost):
            await bodies[KEYS.index(cut)]
        never.set()
        await asyncio.gather(*bodies, return_exceptions=True)
        await stage.until(lambda: stage.has_settled() and stage.is_served())
        assert stage.lost == []


async def test_a_handler_settles_its_ranges_and_is_told_when_each_is_over() -> None:
    async with settling_stage() as stage:
        state = SettlingState()
        source = await stage.join(state)
        await stage.until(lambda: bool(source.owner.ranges))
        source.state["user-1"] = 1
        await stage.join()
        await stage.until(lambda: "settle_range" in state.calls)
        await stage.cluster.turn(1)
        assert moved(source) == []
        assert all(0 < each <= in_seconds(SETTLE_NS) for each in state.deadlines)
        state.done.set()
        await stage.until(lambda: bool(moved(source)) and stage.has_settled())
        await stage.until(lambda: len(state.resumed) == state.calls.count("settle_range"))
        assert set(state.resumed) == set(state.settled)


@pytest.mark.parametrize("fails", [True, False])
async def test_a_handler_that_fails_or_hangs_to_settle_holds_up_its_range_only_so_long(
    fails: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with settling_stage() as stage:
        state = SettlingState()
        state.fails = {"settle_range"} if fails else set()
        source = await stage.join(state)
        await stage.until(lambda: bool(source.owner.ranges))
        await stage.join()
        await stage.until(lambda: "settle_range" in state.calls)
        if not fails:
            await stage.cluster.turn(PAST_SETTLE)
        await stage.until(lambda: bool(moved(source)))
        assert ("settle_range failed for" in caplog.text) == fails
        assert ("before everything that was to finish" in caplog.text) != fails
        state.done.set()


async def test_what_is_settled_goes_on_when_the_order_is_taken_back() -> None:
    async with settling_stage() as stage:
        state = SettlingState()
        source = await stage.join(state)
        await stage.until(lambda: bool(source.owner.ranges))
        taker = await stage.join()
        await stage.until(lambda: "settle_range" in state.calls)
        leaving = asyncio.ensure_future(taker.owner.close())
        await stage.until(leaving.done)
        await stage.until(lambda: len(state.resumed) == state.calls.count("settle_range"))
        async with source.owner.guard("user-1", finish=True):
            """It begins again."""
        assert moved(source) == []
        state.done.set()


async def test_who_leaves_hands_over_when_its_bodies_are_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with settling_stage() as stage:
        source, ends = await stage.first(), asyncio.Event()
        taker = await stage.join()
        await stage.until(lambda: stage.has_settled() and stage.is_served())
        held = [key for key in KEYS if source.owner.check(key)]
        bodies = [asyncio.create_task(body(source, key, ends)) for key in held]
        await come_to_rest()
        leaving = asyncio.ensure_future(source.owner.close())
        await stage.cluster.turn(1)
        assert all(source.owner.check(key) for key in held)
        ends.set()
        await asyncio.gather(*bodies)
        await stage.until(leaving.done)
        assert all(taker.state[key] == -1 for key in held)
        assert stage.lost == []


async def test_what_does_not_end_leaves_a_part_of_the_drain_for_the_state() -> None:
    async with settling_stage() as stage:
        source, never = await stage.first(), asyncio.Event()
        taker = await stage.join()
        await stage.until(lambda: stage.has_settled() and stage.is_served())
        held = [key for key in KEYS if source.owner.check(key)]
        lasting = asyncio.create_task(body(source, held[0], never))
        await come_to_rest()
        leaving = asyncio.ensure_future(source.owner.close(drain=8))
        await stage.until(leaving.done)
        assert isinstance((await asyncio.gather(lasting, return_exceptions=True))[0], LeaseLost)
        await stage.until(stage.is_served)
        await stage.cluster.turn(1)
        assert all(key in taker.state for key in held)
        assert stage.lost == []


async def test_who_leaves_does_not_wait_for_what_begins_meanwhile() -> None:
    async with settling_stage() as stage:
        source, ends, never = await stage.first(), asyncio.Event(), asyncio.Event()
        await stage.join()
        await stage.until(lambda: stage.has_settled() and stage.is_served())
        held = [key for key in KEYS if source.owner.check(key)]
        first = asyncio.create_task(body(source, held[0], ends))
        await come_to_rest()
        leaving = asyncio.ensure_future(source.owner.close(drain=40))
        await stage.cluster.turn(STEP)
        later = asyncio.create_task(body(source, held[1], never))
        await come_to_rest()
        assert not later.done(), "it may begin"
        ends.set()
        await first
        began = stage.cluster.clock()
        await stage.until(leaving.done)
        assert stage.cluster.clock() < began + seconds(5)
        assert isinstance((await asyncio.gather(later, return_exceptions=True))[0], LeaseLost)
        assert stage.lost == []


async def test_settling_takes_two_methods() -> None:
    class Half(State):
        def settle_range(self, key_range: KeyRange, deadline: float) -> None: ...

    with pytest.raises(ConfigurationError, match=r"has settle_range alone: .*and resume_range"):
        check_handler(Half())


async def test_of_a_thousand_bodies_only_those_in_a_lost_range_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Guard] = []
    is_held = Guard.is_held

    def counting(guard: Guard) -> bool:
        looked_at.append(guard)
        return is_held(guard)

    async with settling_stage() as stage:
        source = await stage.first()
        guards = [source.owner.guard(f"key-{i}") for i in range(1000)]
        for guard in guards:
            guard.__enter__()
        monkeypatch.setattr(Guard, "is_held", counting)
        await stage.join()
        await stage.until(lambda: bool(moved(source)) and stage.has_settled())
        gone = {guard for guard in guards if not is_held(guard)}
        assert 0 < len(gone) < len(guards)
        assert set(looked_at) == gone
        assert len(looked_at) == len(gone), "each of them once"
        monkeypatch.undo()
        for guard in guards:
            if guard in gone:
                with pytest.raises(LeaseLost):
                    guard.__exit__(None, None, None)
            else:
                guard.__exit__(None, None, None)
