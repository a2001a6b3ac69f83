"""Whatever a method raises reaches its caller, wherever that is, and costs no other call."""

import asyncio
from typing import Any

import pytest

from tenure import (
    Alarm,
    Busy,
    Entity,
    EntityError,
    KeyTypeError,
    NotOwner,
    OutcomeUnknown,
    Socket,
    errors,
    reading,
    refusal,
)
from tenure.protocol.entity.messages import EntityFailure
from tenure.testing.clock import come_to_rest
from tenure.transport.failures import error_of
from tests.unit.entities.stage import Count, Stage, attached, on_stage

pytestmark = pytest.mark.asyncio


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no words")


class Thrower(Entity[Count]):
    async def mute(self) -> None:
        raise MuteError

    async def half_a_character(self) -> None:
        raise ValueError("\ud800")

    async def awaits_what_was_cancelled(self) -> None:
        waiting = asyncio.ensure_future(asyncio.sleep(100))
        waiting.cancel()
        await waiting

    async def too_late(self) -> None:
        raise TimeoutError("of its own")

    async def asks(self, name: str) -> None:
        RAN.append(self.key)
        raise getattr(errors, name)("of another entity")

    async def asks_another_pool(self) -> None:
        RAN.append(self.key)
        raise NotOwner("of another pool")

    async def on_message(self, socket: Socket[Any], text: str) -> None:
        del socket, text
        await self.awaits_what_was_cancelled()

    async def on_alarm(self, alarm: Alarm) -> None:
        if alarm.attempt == 1:
            await self.awaits_what_was_cancelled()
        if alarm.attempt == 2:
            raise Busy("another entity is")
        self.state.log.append(f"{alarm.name} {alarm.attempt}")

    async def ring(self) -> None:
        self.set_alarm("soon", self.now())

    @reading
    async def log(self) -> list[str]:
        return self.state.log

    async def add(self) -> int:
        self.state.value += 1
        return self.state.value


RAN: list[str | int] = []


class OwnText(str):
    __slots__ = ()


async def raised(stage: Stage, call: Any) -> BaseException:  # noqa: ANN401
    async with asyncio.timeout(10):
        with pytest.raises(Exception) as found:  # noqa: PT011  # it is returned
            await stage.done(call)
    return found.value


@pytest.mark.parametrize(("name", "kind"), [("mute", MuteError), ("half_a_character", EntityError)])
async def test_an_error_that_cannot_be_said_ends_its_call_and_no_other(
    name: str, kind: type[Exception]
) -> None:
    async with on_stage(2, kind=Thrower, deadline=2.0) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        found = await raised(stage, getattr(two[key], name)())
        assert type(found) is kind
        assert await stage.done(two[key].add()) == 1, "the connection goes on"


async def test_a_key_of_a_class_of_its_own_is_the_key_that_it_equals() -> None:
    async with on_stage(2, deadline=2.0) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        assert await stage.done(two[OwnText(key)].add(1)) == 1
        assert await stage.done(one[OwnText(key)].add(1)) == 2
        assert await stage.done(two[key].add(1)) == 3
        for wrong in (None, 1.5, True, b"bytes"):
            with pytest.raises(KeyTypeError):
                two.once("order")[wrong]  # type: ignore[index]


async def test_no_peer_can_send_an_error_that_no_future_can_have() -> None:
    failure = EntityFailure(1, "builtins", "StopIteration", "x", b"\x90")
    assert type(error_of(failure)) is EntityError


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("awaits_what_was_cancelled", EntityError, "something that was cancelled"),
        ("too_late", TimeoutError, "of its own"),
        ("asks_another_pool", EntityError, "of another pool"),
    ],
)
async def test_what_a_method_raises_is_not_taken_for_what_became_of_its_call(
    name: str, kind: type[Exception], text: str
) -> None:
    RAN.clear()
    async with on_stage(2, kind=Thrower, deadline=2.0) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        for member in (one, two):
            found = await raised(stage, getattr(member[key], name)())
            assert type(found) is kind
            assert text in str(found)
        assert await stage.done(one[key].add()) == 1
        assert len(RAN) in (0, 2), "each call ran once"


@pytest.mark.parametrize("name", ["Busy", "NoOwner", "Overloaded", "StoreAway", "Unreachable"])
async def test_a_call_that_was_begun_is_not_called_not_begun(name: str) -> None:
    """It may have committed before it asked another: a client that repeats it does that twice."""
    RAN.clear()
    async with on_stage(2, kind=Thrower, deadline=2.0) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        for member in (one, two):
            found = await raised(stage, member[key].asks(name))
            assert type(found) is OutcomeUnknown
            assert f"was begun, and has raised {name}: of another entity" in str(found)
            answer = refusal(found)
            assert answer is not None
            assert answer.headers["Tenure-Outcome"] == "unknown"
        assert len(RAN) == 2, "each call ran once"


async def test_a_call_that_its_caller_cancels_is_cancelled() -> None:
    async with on_stage(1) as stage:
        (counters,) = stage.members
        await counters["a"].hold()
        adding = asyncio.create_task(counters["a"].add())
        await come_to_rest()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        await counters["a"].release()
        assert await counters["a"].add() == 1


async def test_an_alarm_whose_handler_was_cancelled_or_met_somebody_busy_rings_again() -> None:
    async with on_stage(1, kind=Thrower) as stage:
        (thrower,) = stage.members
        await stage.done(thrower["a"].ring())
        for _ in range(50):
            await stage.cluster.turn(0.1)
        assert await stage.done(thrower["a"].log()) == ["soon 3"]


async def test_a_socket_whose_handler_was_cancelled_is_closed_with_1011() -> None:
    async with on_stage(1, kind=Thrower) as stage:
        ann, task = attached(stage.members[0], "a")
        ann.send("x")
        await stage.done(task)
        assert ann.code == 1011
