"""Whatever a method raises reaches its caller, wherever that is, and costs no other call."""

import asyncio
from typing import Any

import pytest

from tenure import Entity, EntityError, KeyTypeError
from tenure.protocol.entity.messages import EntityFailure
from tenure.transport.failures import error_of
from tests.unit.entities.stage import Count, Stage, on_stage

pytestmark = pytest.mark.asyncio


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no words")


class Thrower(Entity[Count]):
    async def mute(self) -> None:
        raise MuteError

    async def half_a_character(self) -> None:
        raise ValueError("\ud800")

    async def add(self) -> int:
        self.state.value += 1
        return self.state.value


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
