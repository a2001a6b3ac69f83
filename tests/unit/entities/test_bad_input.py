"""Whatever is wrong with a class, a call or a key is said, as early as it can be known."""

import asyncio
import functools
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import pytest

from tenure import (
    Alarm,
    Busy,
    ClosedError,
    ConfigurationError,
    Entities,
    Entity,
    EntityError,
    KeyTypeError,
    TurnTooLong,
    UsageError,
    ValueTypeError,
    reading,
)
from tenure.testing.clock import come_to_rest
from tenure.transport.failures import error_of, failure_of
from tests.unit.entities.stage import Count, Counter, on_stage

pytestmark = pytest.mark.asyncio


class Needy(msgspec.Struct):
    value: int


class Plain:
    value: int = 0


class NeedyEntity(Entity[Needy]):
    pass


class NoStruct(Entity[Plain]):
    pass


class NoState(Entity):  # type: ignore[type-arg]
    pass


class WithInit(Entity[Count]):
    def __init__(self) -> None:
        self.x = 1


class AnyArguments(Entity[Count]):
    async def call(self, *args: int) -> None:
        pass


class NotSendable(Entity[Count]):
    async def call(self, it: str | bytes) -> None:
        pass


class WithSlots(Entity[Count]):
    __slots__ = ("people",)


T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Inner:
    number: int = 0


class Middle(msgspec.Struct):
    inner: Inner = Inner()  # a mistake


class Outer(msgspec.Struct):
    middle: Middle = msgspec.field(default_factory=Middle)


class OneForAllKeys(Entity[Outer]):
    pass


class Helper(Entity[Count], Generic[T]):
    async def value(self) -> int:
        return self.state.value


class Helped(Helper[int]):
    pass


class Swapped(Entity[T], Generic[U, T]):
    async def value(self) -> int:
        return 7


class Unswapped(Swapped[int, Count]):
    pass


class Unsaid(Swapped[int, T]):
    pass


@pytest.mark.parametrize(("kind", "value"), [(Helped, 0), (Unswapped, 7)])
async def test_a_class_may_have_parameters_beside_its_state(kind: Any, value: int) -> None:  # noqa: ANN401
    async with on_stage(1, kind=kind) as stage:
        assert await stage.members[0]["a"].value() == value


class PlainHandler(Entity[Count]):
    def on_alarm(self, alarm: Alarm) -> None:  # type: ignore[override]  # a mistake
        pass


class HandlerOfNothing(Entity[Count]):
    async def on_message(self, text: str) -> None:  # type: ignore[override]  # a mistake
        pass


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (WithSlots, "leave out __slots__"),
        (PlainHandler, r"write `async def on_alarm\(self, alarm"),
        (HandlerOfNothing, r"too many positional arguments. Write `async def on_message\(self, s"),
        (Plain, "a subclass of Entity"),
        (Entity, "a subclass of Entity"),
        ("Room", "a subclass of Entity"),
        (NeedyEntity, "Every field has a default"),
        (NoStruct, "not a msgspec Struct"),
        (OneForAllKeys, r"default of Outer\.middle\.inner is one object"),
        (Unsaid, "does not say what its state is"),
        (NoState, "does not say what its state is"),
        (WithInit, "on_activate"),
        (AnyArguments, "declare each parameter"),
        (NotSendable, "cannot be sent"),
    ],
)
async def test_a_class_that_cannot_be_used_is_refused(kind: Any, why: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match=why):
        Entities(kind, "counters", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    "option",
    [
        {"idle": 0},
        {"deadline": 0},
        {"deadline": ""},
        {"turn": -1},
        {"wait": "soon"},
        {"limit": 0},
        {"most_waiting": 1.5},
        {"settle": 0},
        {"store": "mysql://x"},
        {"store": "sqlite::memory:"},
        {"listen": "nowhere"},
        {"listen": "0.0.0.0:0"},
        {"pool": ""},
    ],
    ids=str,
)
async def test_an_option_that_cannot_be_used_is_refused(option: dict[str, Any]) -> None:
    given: dict[str, Any] = {"pool": "counters", "managers": "http://127.0.0.1:1", **option}
    with pytest.raises(ConfigurationError):
        Entities(Counter, **given)


class Odd(Entity[Count]):
    async def on_activate(self) -> None:
        self.kept: Odd | None = None

    async def call(self, number: int, /, text: str = "x", *, also: list[int] | None = None) -> str:
        return f"{number} {text} {also}"

    def plain(self) -> int:
        return 1

    def _helper(self) -> int:
        return 2

    async def lies(self) -> int:
        return "text"  # type: ignore[return-value]

    async def large(self, size: int) -> str:
        return "x" * size

    async def take(self, text: str) -> int:
        return len(text)

    async def large_state(self, size: int) -> None:
        self.state.log = ["x" * size]

    async def wrong_state(self) -> None:
        self.state.value = "text"  # type: ignore[assignment]

    async def keep(self) -> None:
        self.kept = self

    async def use_kept(self) -> int:
        assert self.kept is not None
        return self.kept.state.value

    async def forever(self) -> None:
        self.state.value = 7
        await asyncio.Event().wait()

    async def value(self) -> int:
        return self.state.value

    @reading
    async def assigns(self) -> None:
        self.state = Count(5)

    @reading
    async def sends(self) -> None:
        self.broadcast("x")

    @reading
    async def commits(self) -> None:
        await self.commit()

    async def raises_odd(self) -> None:
        raise OddError("first", second=object())

    async def bad_frame(self) -> None:
        self.broadcast(7)  # type: ignore[arg-type]


def logged(handler: Any) -> Any:  # noqa: ANN401  # as decorators are
    @functools.wraps(handler)
    def log(*given: object) -> Any:  # noqa: ANN401
        return handler(*given)

    return log


class Decorated(Entity[Count]):
    __slots__ = ()

    @logged
    async def on_activate(self) -> None:
        self.number = 7

    @functools.cached_property
    def double(self) -> int:
        return 2 * self.number

    async def get(self) -> int:
        return self.double


async def test_a_decorated_handler_and_an_attribute_that_is_made_later_are_used() -> None:
    async with on_stage(1, kind=Decorated) as stage:
        assert [await stage.members[0]["a"].get() for _ in range(2)] == [14, 14]


class OddError(Exception):
    def __init__(self, text: str, *, second: object) -> None:
        super().__init__(text, second)


async def test_what_a_method_does_not_take_is_refused_before_anything_is_sent() -> None:
    async with on_stage(1, kind=Odd) as stage:
        odd: Any = stage.members[0]["a"]
        assert await odd.call(1) == "1 x None"
        assert await odd.call(1, "y", also=[2]) == "1 y [2]"
        for arguments, named in (
            ((), {}),
            ((1, 2), {}),
            ((1, "a", [1]), {}),
            ((1,), {"other": 1}),
            ((), {"number": 1}),
            ((1, "a"), {"text": "b"}),
            (("one",), {}),
            ((object(),), {}),
        ):
            with pytest.raises((UsageError, ValueTypeError), match=r"Odd\.call"):
                await odd.call(*arguments, **named)
        with pytest.raises(UsageError, match=r"no method 'missing'.*it has"):
            odd.missing  # noqa: B018  # asking for it is enough
        with pytest.raises(UsageError, match="no method '_helper'"):
            odd._helper  # noqa: B018
        with pytest.raises(UsageError, match="async def plain"):
            await odd.plain()
        for wrong in (None, 1.5, True, b"bytes"):
            with pytest.raises(KeyTypeError):
                stage.members[0][wrong]  # type: ignore[index]


async def test_what_cannot_be_kept_or_is_too_large_is_refused_and_nothing_is_kept() -> None:
    async with on_stage(1, kind=Odd) as stage:
        odd: Any = stage.members[0]["a"]
        assert len(await odd.large(1_000_000)) == 1_000_000
        with pytest.raises(ValueTypeError, match="1048576 are allowed"):
            await odd.large(1_100_000)
        with pytest.raises(ValueTypeError, match="1048576 are allowed"):
            await odd.take("x" * 1_100_000)
        with pytest.raises(ValueTypeError, match="returned what it does not declare"):
            await odd.lies()
        await odd.large_state(1_000_000)
        with pytest.raises(ValueTypeError, match="1048576 are allowed"):
            await odd.large_state(1_100_000)
        with pytest.raises(ValueTypeError, match="cannot be kept"):
            await odd.wrong_state()
        assert await odd.value() == 0
        with pytest.raises(UsageError, match="text or bytes"):
            await odd.bad_frame()


async def test_what_a_reading_cannot_do_and_a_self_that_is_over_are_refused() -> None:
    async with on_stage(1, kind=Odd) as stage:
        odd: Any = stage.members[0]["a"]
        for name in ("assigns", "sends", "commits"):
            with pytest.raises(UsageError, match="marked @reading"):
                await getattr(odd, name)()
        await odd.keep()
        with pytest.raises(UsageError, match="is over"):
            await odd.use_kept()


async def test_a_turn_over_its_time_is_taken_back_and_the_next_one_comes() -> None:
    async with on_stage(1, kind=Odd, turn=0.05) as stage:
        odd: Any = stage.members[0]["a"]
        with pytest.raises(TurnTooLong, match=r"forever .*0.05 s"):
            await odd.forever()
        assert await odd.value() == 0


async def test_too_many_who_wait_and_who_wait_too_long_are_told_busy() -> None:
    async with on_stage(1, most_waiting=2, wait=0.05) as stage:
        (counters,) = stage.members
        await counters["a"].hold()
        adding = [asyncio.create_task(counters["a"].add()) for _ in range(3)]
        await come_to_rest()
        with pytest.raises(Busy, match="2 calls wait for 'a', whose turn add"):
            await counters["a"].add()
        for each in adding[1:]:
            with pytest.raises(Busy, match=r"within 0.05 s"):
                await each
        await counters["a"].release()
        assert await adding[0] == 1
        assert await counters["a"].add() == 2


async def test_an_error_that_cannot_be_made_again_still_says_what_it_was() -> None:
    async with on_stage(2, kind=Odd) as stage:
        key = stage.key_of(stage.members[0])
        with pytest.raises(OddError):
            await stage.done(stage.members[0][key].raises_odd())
        with pytest.raises(EntityError, match="OddError"):
            await stage.done(stage.members[1][key].raises_odd())


@pytest.mark.parametrize("error", [KeyError("x"), Busy("busy"), OSError(2, "no"), TurnTooLong("t")])
async def test_an_error_arrives_as_what_it_was(error: Exception) -> None:
    found = error_of(failure_of(1, error))
    assert (type(found), found.args) == (type(error), error.args)


async def test_entities_that_are_not_entered_say_how_to_enter_them() -> None:
    counters = Entities(Counter, "counters", "http://127.0.0.1:1")
    with pytest.raises(ClosedError, match="lifespan"):
        await counters["a"].add()
    with pytest.raises(UsageError, match="from outside"):
        await Counter().attach(None)


async def test_instances_that_nobody_uses_are_dropped_and_their_state_is_kept() -> None:
    async with on_stage(1, limit=10) as stage:
        (counters,) = stage.members
        for i in range(30):
            await counters[f"key-{i}"].add(i)
        host = counters.station.host
        assert len(host) == 10
        assert [await counters[f"key-{i}"].value() for i in range(30)] == list(range(30))
        host.passivate(float("inf"))
        assert len(host) == 0
        assert await counters["key-7"].add() == 8
