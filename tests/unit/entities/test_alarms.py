"""Alarms: at least once, never two at once, never early; they move, and survive with a store."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure import Alarm, Entity, UsageError, reading
from tests.unit.entities.stage import Counter, on_stage

pytestmark = pytest.mark.asyncio


class Rung(msgspec.Struct):
    names: list[str] = []
    attempts: list[int] = []
    late: list[float] = []
    at: list[float] = []


class Clock(Entity[Rung]):
    async def on_activate(self) -> None:
        self.fails = 0
        self.inside = 0

    async def set_in(self, name: str, seconds: float) -> float:
        self.set_alarm(name, self.now() + seconds)
        return self.now()

    async def set_at(self, name: str, at: datetime) -> None:
        self.set_alarm(name, at)

    async def set_wrongly(self, name: str, at: Any) -> None:  # noqa: ANN401  # as a mistake is
        self.set_alarm(name, at)

    async def clear(self, name: str) -> None:
        self.clear_alarm(name)

    async def fail(self, times: int) -> None:
        self.fails = times

    async def set_and_raise(self) -> None:
        self.set_alarm("never", self.now())
        raise ValueError("on purpose")

    @reading
    async def rung(self) -> Rung:
        return self.state

    @reading
    async def set_now(self) -> dict[str, datetime]:
        return self.alarms

    async def on_alarm(self, alarm: Alarm) -> None:
        self.inside += 1
        assert self.inside == 1
        await asyncio.sleep(0)
        self.inside -= 1
        state = self.state
        state.names.append(alarm.name)
        state.attempts.append(alarm.attempt)
        state.late.append(round(alarm.late, 1))
        state.at.append(self.now())
        if self.fails:
            self.fails -= 1
            raise RuntimeError("not yet")
        if alarm.name == "again" and len(state.names) < 3:
            self.set_alarm("again", alarm.due + timedelta(seconds=20))


async def test_alarms_ring_in_their_order_when_they_are_due_and_not_before() -> None:
    async with on_stage(1, kind=Clock) as stage:
        (clocks,) = stage.members
        began = await clocks["a"].set_in("late", 60)
        await clocks["a"].set_in("soon", 10)
        await clocks["a"].set_in("moved", 5)
        await clocks["a"].set_in("moved", 30)
        await clocks["a"].set_in("gone", 20)
        await clocks["a"].clear("gone")
        assert sorted(await clocks["a"].set_now()) == ["late", "moved", "soon"]
        await stage.cluster.turn(9.9)
        assert (await clocks["a"].rung()).names == []
        await stage.cluster.turn(55)
        found = await clocks["a"].rung()
        assert found.names == ["soon", "moved", "late"]
        assert [round(at - began) for at in found.at] == [10, 30, 60]
        assert found.late == [0.0] * 3
        assert await clocks["a"].set_now() == {}


async def test_an_alarm_of_the_past_rings_at_once_and_says_how_late_it_is() -> None:
    async with on_stage(1, kind=Clock) as stage:
        (clocks,) = stage.members
        now = datetime.fromtimestamp(await clocks["a"].set_in("x", 1000), UTC)
        await clocks["a"].set_at("past", now - timedelta(hours=1))
        await stage.cluster.turn(0.1)
        found = await clocks["a"].rung()
        assert (found.names, found.late) == (["past"], [3600.0])


async def test_an_alarm_that_fails_is_called_again_later_and_what_it_did_is_taken_back() -> None:
    async with on_stage(1, kind=Clock) as stage:
        (clocks,) = stage.members
        began = await clocks["a"].set_in("run", 10)
        await clocks["a"].fail(3)
        await stage.cluster.turn(60)
        found = await clocks["a"].rung()
        assert (found.names, found.attempts) == (["run"], [4])
        assert [round(at - began) for at in found.at] == [17], "after 1, 2 and 4 seconds"


async def test_an_alarm_can_set_itself_again_and_one_of_a_call_that_raised_is_never_set() -> None:
    async with on_stage(1, kind=Clock) as stage:
        (clocks,) = stage.members
        await clocks["a"].set_in("again", 10)
        with pytest.raises(ValueError, match="on purpose"):
            await clocks["a"].set_and_raise()
        await stage.cluster.turn(80)
        found = await clocks["a"].rung()
        assert (found.names, found.late) == (["again"] * 3, [0.0] * 3)


async def test_an_alarm_rings_at_the_new_owner_of_its_key() -> None:
    async with on_stage(2, kind=Clock) as stage:
        one, two = stage.members
        keys = [f"key-{i}" for i in range(20)]
        for key in keys:
            await stage.done(one[key].set_in("run", 30))
        await stage.leave(one)
        await stage.cluster.turn(40)
        for key in keys:
            assert (await stage.done(two[key].rung())).names == ["run"]


async def test_with_a_store_an_alarm_rings_after_a_crash(any_store_url: str) -> None:
    async with on_stage(1, kind=Clock, store=any_store_url) as stage:
        (one,) = stage.members
        keys = [f"key-{i}" for i in range(8)]
        for key in keys:
            await stage.done(one[key].set_in("run", 20))
        await stage.crash(one)
        two = await stage.enter(kind=Clock, store=any_store_url)
        await stage.spread()
        await stage.cluster.turn(30)
        for key in keys:  # the store's thread has a time of its own
            while not (await stage.done(two[key].rung())).names:
                await stage.cluster.turn(0.1)
            await stage.cluster.turn(1)
            assert (await stage.done(two[key].rung())).names == ["run"]


async def test_time_never_goes_back_for_a_key() -> None:
    async with on_stage(1, kind=Clock) as stage:
        (clocks,) = stage.members
        first = await clocks["a"].set_in("x", 1000)
        host = clocks.station.host
        host.gate.wall = lambda: first - 500
        assert await clocks["a"].set_in("x", 1000) == first
        assert await clocks["b"].set_in("x", 1000) == first - 500


class Sundial(Counter):
    async def time(self) -> float:
        return self.now()


async def test_time_never_goes_back_after_a_call_that_kept_nothing() -> None:
    async with on_stage(1, kind=Sundial) as stage:
        (dials,) = stage.members
        first = await dials["a"].time()
        dials.station.host.gate.wall = lambda: first - 500
        assert await dials["a"].time() == first


async def test_alarms_that_cannot_be_set_are_refused() -> None:
    async with on_stage(1, kind=Clock) as stage:
        (clocks,) = stage.members
        with pytest.raises(UsageError, match="time zone"):
            await clocks["a"].set_at("x", datetime(2026, 1, 1))  # noqa: DTZ001
        for never in (1e300, -1e18, float("nan"), float("inf"), datetime.max.replace(tzinfo=UTC)):
            with pytest.raises(UsageError, match="that a datetime can say"):
                await clocks["a"].set_wrongly("x", never)
        with pytest.raises(UsageError, match="not 'soon'"):
            await clocks["a"].set_wrongly("x", "soon")
        with pytest.raises(UsageError, match="an alarm's name"):
            await clocks["a"].set_in("x" * 300, 1.0)


class Deaf(Counter):
    async def ask(self) -> None:
        self.set_alarm("x", self.now())


async def test_a_class_without_a_handler_sets_no_alarm() -> None:
    async with on_stage(1, kind=Deaf) as stage:
        with pytest.raises(UsageError, match="no on_alarm"):
            await stage.members[0]["a"].ask()
