"""A value that would not arrive as it is is refused when it is assigned; all others arrive as they
were.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pytest

from tenure import ConfigurationError, KeyedState
from tenure.client.hand_off.likeness import is_alike
from tenure.errors import ValueTypeError
from tests.unit.client.hand_off.test_keyed_state import WHOLE, Room, exported, imported, state_of

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class Point:
    x: int
    y: float


@dataclass(eq=False)
class Place:
    points: list[Point]


class Colour(StrEnum):
    RED = "red"


class Corner(NamedTuple):
    x: int


class Marked(Corner):
    pass


@dataclass
class Box(Generic[T]):
    """A class with an attribute that is computed, and one that nobody asks for."""

    sides: T
    volume: int = field(init=False, default=0, compare=False)

    @cached_property
    def has_sides(self) -> bool:
        return bool(self.sides)


@dataclass(slots=True)
class Slotted:
    x: int


class InSlot(Slotted):
    __slots__ = ("note",)
    note: int


@attrs.define(slots=False)
class Loose:
    of: list[Any]


class Open(msgspec.Struct, dict=True):
    x: int


class Growing(msgspec.Struct):
    of: list[Point]

    def __post_init__(self) -> None:
        self.of = [*self.of, Point(1, 1.0)]


def noted(value: V) -> V:
    """Return the value with an attribute that its class does not declare."""
    vars(value)["note"] = 1
    return value


def in_slot() -> InSlot:
    value = InSlot(1)
    value.note = 1
    return value


def in_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def asked(box: Box[V]) -> Box[V]:
    assert box.has_sides
    box.volume = 8
    return box


ZONE = ZoneInfo("Asia/Tokyo")
EASTERN = datetime(2026, 1, 1, tzinfo=ZONE)
NOT_A_NUMBER = float("nan")
AS_THEY_WERE: list[tuple[Any, Any]] = [
    (Any, {"a": [1, 2.5, None, True, b"x", "y"], 7: {1: []}}),
    (Any, [NOT_A_NUMBER]),
    (Any, datetime(2026, 1, 1, tzinfo=UTC)),
    (datetime, datetime(2026, 1, 1)),  # noqa: DTZ001  # it says of no zone
    (set[datetime], {datetime(2026, 1, 1, tzinfo=UTC)}),
    (dict[Colour, set[Point]], {Colour.RED: {Point(2, 1.0), Point(1, 2.5)}}),
    (Any, {2: 1, 1: 2}),
    (Point, Point(1, 2.5)),
    (Place, Place([Point(1, 2.5)])),
    (set[str], {"a", "b"}),
    (tuple[int, str], (1, "a")),
    (frozenset[int], frozenset((1, 2))),
    (Colour, Colour.RED),
    (Room | None, None),
    (Room | None, Room("a")),
    (list[Room], [Room("a")]),
    (Corner, Corner(1)),
    (Slotted, Slotted(1)),
    (Loose, Loose([1])),
    (Open, Open(1)),
    (Box[int], asked(Box[int](2))),
    (Decimal, Decimal("-0.10")),
    (Decimal, Decimal("sNaN")),
    (list[float], [-0.0, NOT_A_NUMBER]),
]


@pytest.mark.parametrize(("value_type", "value"), AS_THEY_WERE, ids=lambda it: type(it).__name__)
def test_what_may_be_assigned_arrives_as_it_was(value_type: Any, value: Any) -> None:  # noqa: ANN401
    state = state_of(value_type=value_type)
    state["k"] = value
    came = imported(exported(state, WHOLE)[1], state_of(value_type=value_type))["k"]
    assert is_alike(came, value)


@pytest.mark.parametrize(
    ("value_type", "value", "why"),
    [
        (Any, {1, 2}, "of the type set: it would arrive as [1, 2]. Say what values are with"),
        (Any, (1, 2), "of the type tuple: it would arrive as [1, 2]"),
        (Any, Point(1, 2.5), "of the type Point: it would arrive as {'x': 1"),
        (Any, [Colour.RED], "of the type list: it would arrive as ['red']"),
        (Any, {Colour.RED: 1}, "of the type dict: it would arrive as {'red': 1}"),
        (set[Any], {Colour.RED}, "of the type set: it would arrive as {'red'}"),
        (Any, EASTERN, "of the type datetime: it would arrive as datetime.datetime(2025, 12, 31"),
        (datetime, EASTERN, "of the type datetime: it would arrive as datetime.datetime(2025, 12"),
        (time, time(1, tzinfo=ZONE), "of the type time: it would arrive as datetime.time(1, 0"),
        (datetime, datetime(2026, 1, 1, fold=1), "of the type datetime: it would arrive as"),  # noqa: DTZ001
        (datetime, EASTERN.replace(tzinfo=timezone(timedelta(0), "Z")), "datetime.timezone.utc"),
        (Point, noted(Point(1, 2.5)), "arrive as Point(x=1, y=2.5). Say what"),
        (Place, Place([noted(Point(1, 2.5))]), "Of an object only the fields that its class"),
        (set[Point], {noted(Point(1, 2.5))}, "of the type set: it would arrive as {Point(x=1"),
        (Marked, noted(Marked(1)), "of the type Marked: it would arrive as Marked(x=1)"),
        (list[Marked], [noted(Marked(1))], "of the type list: it would arrive as [Marked(x=1)]"),
        (InSlot, in_slot(), "of the type InSlot: it would arrive as InSlot(x=1)"),
        (Loose, noted(Loose([1])), "of the type Loose: it would arrive as Loose(of=[1])"),
        (Loose, Loose([Colour.RED]), "of the type Loose: it would arrive as Loose(of=['red'])"),
        (Open, noted(Open(1)), "of the type Open: it would arrive as Open(x=1)"),
        (Any, in_itself(), "of the type list: maximum recursion depth exceeded"),
        (Growing, Growing([]), "of the type Growing: it would arrive as Growing(of=[Point"),
        (Any, object(), "of the type object: Encoding objects of type object is unsupported"),
        (Any, 1 << 70, "of the type int: "),
        (Room, "a text", "KeyedState of Room cannot hand over the value of 'k', of the type str"),
        (set[str], frozenset("a"), "of the type frozenset: it would arrive as {'a'}"),
        (Any, bytes(4 << 20), "bytes with its key; at most 4190208 are allowed"),
    ],
    ids=lambda it: str(it)[:20],
)
def test_what_would_not_arrive_as_it_is_is_refused(value_type: Any, value: Any, why: str) -> None:  # noqa: ANN401
    state = state_of(value_type=value_type)
    with pytest.raises(ValueTypeError) as raised:
        state["k"] = value
    assert why in str(raised.value)
    assert "k" not in state


@dataclass
class Mapped(dict[str, int]):
    x: int = 1


class Tree(msgspec.Struct):
    below: "list[Tree]"
    leaf: Mapped | None = None


@pytest.mark.parametrize("value_type", [Mapped, dict[str, list[Mapped]], Tree])
def test_a_class_of_fields_that_is_a_dict_too_cannot_be_a_type(value_type: Any) -> None:  # noqa: ANN401
    """It would be made without its dict, and the process would end where it is read."""
    with pytest.raises(ConfigurationError, match="of Mapped only the fields would arrive"):
        KeyedState(value_type=value_type)
