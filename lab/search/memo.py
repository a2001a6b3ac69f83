"""Machines as numbers: every state of every machine is kept once, every step is computed once.

A machine is pure: the same event at the same time in the same state has the same result. An
exhaustive search meets the same step thousands of times, in worlds that differ only elsewhere. So a
state is turned into bytes, and the bytes into a small number, and each step from number to number
is remembered; a world is then a tuple of numbers, cheap to compare and to copy.
"""

import io
import pickle
from collections.abc import Callable
from random import Random
from types import FunctionType
from typing import Any, NamedTuple

from tenure.base.instants import Instant
from tenure.base.machine import Machine


class Step(NamedTuple):
    """The result of one event."""

    state: int
    actions: tuple[Any, ...]
    wake_at: Instant


class Memory:
    """All states that ever occurred, and what followed from them."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._kept: list[bytes] = []
        self._results: dict[Any, Any] = {}

    def number(self, thing: Any) -> int:
        """The number of `thing`, which is the same for everything that equals it in every part."""
        identity = _as_bytes(thing)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self._kept)
            self._kept.append(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL))
        return number

    def thing(self, number: int) -> Any:
        """A new copy of the thing that has this number."""
        return pickle.loads(self._kept[number])  # noqa: S301 - it was made here

    def once(self, question: Any, find: Callable[[], Any]) -> Any:
        """The result of `find`, asked only once for each `question`."""
        try:
            return self._results[question]
        except KeyError:
            result = self._results[question] = find()
            return result

    def step(self, state: int, now: Instant, event: int | None) -> Step:
        """Hand the event of that number, or only the time, to the machine of that number."""
        return self.once((state, now, event), lambda: self._step(state, now, event))  # type: ignore[no-any-return]

    def _step(self, state: int, now: Instant, event: int | None) -> Step:
        machine: Machine[Any, Any] = self.thing(state)
        happened = None if event is None else self.thing(event)
        output = machine.handle(now, happened) if event is not None else machine.advance(now)
        machine.invariants()
        return Step(self.number(machine), tuple(output.actions), output.wake_at)


class _Comparing(pickle.Pickler):
    """Writes the same bytes for equal things, however their parts are shared.

    Values are written out wherever they occur: the same text may be one object here and two there.
    Objects that are compared by identity, such as parts of a machine, are written once, and then
    referred to.
    """

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.fast = True
        self._written: dict[int, int] = {}

    def reducer_override(self, thing: Any) -> Any:
        """How to write `thing` if it is not a plain value."""
        equal: Any = type(thing).__eq__
        if equal is not object.__eq__ or isinstance(thing, type | FunctionType):
            return NotImplemented
        place = self._written.get(id(thing))
        if place is None:
            self._written[id(thing)] = len(self._written)
            return NotImplemented
        return _same_as, (place,)


def _same_as(place: int) -> None:
    """Represents the second occurrence of a thing: the bytes are compared, and never read."""


def _as_bytes(thing: Any) -> bytes:
    buffer = io.BytesIO()
    _Comparing(buffer).dump(thing)
    return buffer.getvalue()


class Dice(Random):
    """A source that draws a different number each time, and always the middle of a fraction."""

    def __init__(self, first: int = 0) -> None:
        super().__init__(0)
        self.next = first

    def random(self) -> float:
        """The middle of the range."""
        return 0.5

    def randrange(self, *_: Any) -> int:
        """The next number."""
        self.next += 1
        return self.next

    def __reduce__(self) -> Any:
        return Dice, (self.next,)
