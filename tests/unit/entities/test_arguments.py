"""Arguments and answers: those of plain types cost no bytes if the entity is here, and a call means
the same as one to another process.
"""

from functools import wraps
from typing import Any

import msgspec
import pytest

from tenure import Entity, UsageError, reading
from tenure.entities.methods import PLAIN_CHARACTERS, CallHere, EntityMethod
from tenure.errors import ValueTypeError
from tests.unit.entities.stage import on_stage


class Nothing(msgspec.Struct):
    pass


def by_name_only(method: Any) -> Any:  # noqa: ANN401  # as decorators are written
    """A decorator that hands its arguments on by their names."""

    @wraps(method)
    async def wrapper(self: Any, **named: Any) -> Any:  # noqa: ANN401
        return await method(self, **named)

    return wrapper


class Parrot(Entity[Nothing]):
    async def say(self, text: str, times: int, at: float, loud: bool) -> str:
        return f"{text} {times} {at} {loud}"

    async def twice(self, text: str, times: int = 2) -> list[str]:
        return [text] * times

    @reading
    async def ask(self, text: str) -> str:
        return text

    @by_name_only
    async def wrapped(self, text: str, times: int) -> str:
        return f"{text} {times}"

    async def first(self, text: str, /) -> str:
        return text

    async def wait(self, *, seconds: float) -> float:
        return seconds


class OlderParrot(Entity[Nothing], name="Parrot"):
    async def say(self, text: str) -> int:
        return len(text)

    async def ask(self, text: str) -> int:
        return len(text)


SAY = EntityMethod("Parrot", "say", Parrot.say)
TWICE = EntityMethod("Parrot", "twice", Parrot.twice)


def test_plain_arguments_are_not_encoded_before_another_process_needs_them() -> None:
    here = CallHere(SAY, ("tea", 3, 0.5, True), {})
    assert here.taken == ((), {"text": "tea", "times": 3, "at": 0.5, "loud": True})
    assert here._encoded is None
    assert SAY.decode(here.encoded()) == here.taken


@pytest.mark.parametrize(
    "arguments",
    [
        ("tee für", 3, 0.5, True),
        ("t" * (PLAIN_CHARACTERS + 1), 3, 0.5, True),
        ("tea", 1 << 63, 0.5, True),
        ("tea", 3, 1, True),
    ],
    ids=["not ascii", "long", "large", "an int for a float"],
)
def test_what_may_not_arrive_as_it_is_goes_through_its_bytes(arguments: Any) -> None:  # noqa: ANN401
    here = CallHere(SAY, arguments, {})
    assert here._encoded == here.encoded()
    assert here.taken == SAY.decode(here.encoded())


@pytest.mark.parametrize(
    "arguments",
    [
        ("tea", 1 << 64, 0.5, True),
        ("\ud800", 3, 0.5, True),
        ("tea", True, 0.5, True),
        ("tea", 3, "0.5", True),
        ("tea", 3, 0.5, None),
        ("tea", 3, 0.5),
    ],
)
def test_what_is_not_of_the_declared_types_is_refused_as_it_is_elsewhere(arguments: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueTypeError):
        CallHere(SAY, arguments, {})


def test_arguments_by_name_or_left_out_arrive_with_their_names() -> None:
    assert CallHere(TWICE, ("tea",), {}).taken == ((), {"text": "tea"})
    assert CallHere(TWICE, (), {"text": "tea"}).taken == ((), {"text": "tea"})
    with pytest.raises(UsageError):
        CallHere(TWICE, ("tea", 1, 2), {})


@pytest.mark.asyncio
async def test_the_same_comes_back_here_and_from_another_process() -> None:
    async with on_stage(2, kind=Parrot) as stage:
        key = stage.key_of(stage.members[0])
        for member in stage.members:
            assert await stage.done(member[key].say("tea", 3, 0.5, True)) == "tea 3 0.5 True"
            assert await stage.done(member[key].twice("tea")) == ["tea", "tea"]
            assert await stage.done(member[key].ask("tea")) == "tea"
            assert await stage.done(member[key].wrapped("tea", 3)) == "tea 3"
            assert await stage.done(member[key].wrapped(times=3, text="tea")) == "tea 3"
            assert await stage.done(member[key].first("tea")) == "tea"
            assert await stage.done(member[key].wait(seconds=0.5)) == 0.5
            with pytest.raises(UsageError, match="takes 0 arguments by position"):
                await member[key].wait(0.5)
            with pytest.raises(UsageError, match="has no method 'sing'"):
                member[key].sing  # noqa: B018


@pytest.mark.asyncio
async def test_two_versions_of_a_class_say_what_one_does_not_know() -> None:
    async with on_stage(1, kind=OlderParrot) as stage:
        newer = await stage.enter(kind=Parrot)
        await stage.spread()
        key: Any = stage.key_of(stage.members[0])
        with pytest.raises(ValueTypeError, match=r"OlderParrot\.say cannot be called .* `times`"):
            await stage.done(newer[key].say("tea", 3, 0.5, True))
        with pytest.raises(ValueTypeError, match=r"Parrot\.ask was carried out .* another version"):
            await stage.done(newer[key].ask("tea"))
        with pytest.raises(UsageError, match="Parrot has no method 'twice'"):
            await stage.done(newer[key].twice("tea"))
