"""Owned state beside a simple twin: two owners, bodies that take long, and all that may happen.

The twin is a dict with what was acknowledged. A range is granted again, handed over in steps while
bodies run, lost, or handed back if a hand-off fails; time passes, until values and terms end. The
same story must catch broken turns.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from tenure import KeyRange, LeaseLost, NotOwner, OwnedState, Turn, UsageError
from tenure.base.keys import UserKey, hashed_key
from tenure.testing.clock import TurnedClock
from tests.unit.owned_state.stage import TERM, Holder, copied

KEYS = ("ann", "bob", "cyd", "dan")
HALVES = (KeyRange(b"", b"\x80"), KeyRange(b"\x80", None))
TTL = 100.0

halves = st.sampled_from(HALVES)
keys = st.sampled_from(KEYS)
values = st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2) | st.none()


def half_of(key: str) -> KeyRange:
    return next(each for each in HALVES if hashed_key(key) in each)


class Move:
    """A hand-off under way: everything was sent once, and the last difference was not."""

    def __init__(self, source: Holder, taker: Holder, key_range: KeyRange) -> None:
        self.source, self.taker, self.range = source, taker, key_range
        taker.state.discard_range(key_range)
        self.mark, chunks = copied(source.state, key_range)
        for each in chunks:
            taker.state.import_chunk(key_range, each)

    def finish(self, number: int) -> None:
        _, since = self.source.leases[self.range]
        self.source.lose(self.range)
        for each in copied(self.source.state, self.range, self.mark)[1]:
            self.taker.state.import_chunk(self.range, each)
        self.taker.hold(self.range, number, since)
        self.source.state.discard_range(self.range)


class Body:
    """One that is under way."""

    def __init__(self, holder: Holder, key: str, turn: Turn[Any]) -> None:
        self.holder, self.key, self.turn = holder, key, turn
        self.number = turn.lease.number
        self.wanted: tuple[object] | None = None


class Story(RuleBasedStateMachine):
    """The real thing, and the twin."""

    state: Callable[[], OwnedState[Any]] = staticmethod(lambda: OwnedState(ttl=TTL))

    def __init__(self) -> None:
        super().__init__()
        self.clock = TurnedClock()
        self.owners = [Holder(name, self.clock, self.state()) for name in ("one", "two")]
        self.numbers = count(1)
        self.bodies: dict[tuple[str, str], Body] = {}
        self.move: Move | None = None
        self.twin: dict[str, tuple[object, float]] = {}
        """Value, and when it ends."""

    def held_by(self, key_range: KeyRange) -> Holder | None:
        return next((each for each in self.owners if each.holds(key_range)), None)

    # --- leases ---

    @initialize()
    def begin(self) -> None:
        for each in HALVES:
            self.owners[0].hold(each, next(self.numbers))

    @rule(half=halves, owner=st.integers(0, 1))
    def grant(self, half: KeyRange, owner: int) -> None:
        """Grant without state: what was there is lost."""
        if self.move is None and self.held_by(half) is None:
            self.owners[owner].state.discard_range(half)
            self.owners[owner].hold(half, next(self.numbers))
            self.forget(half)

    @rule(half=halves)
    def lose(self, half: KeyRange) -> None:
        held = self.held_by(half)
        if held is not None and (self.move is None or self.move.range != half):
            held.lose(half)
            self.forget(half)

    def forget(self, half: KeyRange) -> None:
        for key in [each for each in self.twin if half_of(each) == half]:
            del self.twin[key]

    @precondition(lambda self: self.move is None)
    @rule(half=halves)
    def begin_move(self, half: KeyRange) -> None:
        source = self.held_by(half)
        if source is not None:
            taker = next(each for each in self.owners if each is not source)
            self.move = Move(source, taker, half)

    @precondition(lambda self: self.move is not None)
    @rule(fails=st.booleans())
    def end_move(self, *, fails: bool) -> None:
        move, self.move = self.move, None
        assert move is not None
        if not move.source.holds(move.range):
            return  # its term ran out
        if fails:  # at its end: the source gets it back, with its state
            _, since = move.source.leases[move.range]
            move.source.lose(move.range)
            move.source.hold(move.range, next(self.numbers), since)
            move.taker.state.discard_range(move.range)
        else:
            move.finish(next(self.numbers))

    @rule(seconds=st.sampled_from((1.0, TTL / 2, TTL, TERM)))
    def wait(self, seconds: float) -> None:
        self.clock.jump(seconds)
        for owner in self.owners:
            for half in HALVES:
                if half in owner.leases and not owner.holds(half):
                    owner.drop(half)
                    self.forget(half)
                    if self.move is not None and self.move.range == half:
                        self.move.taker.state.discard_range(half)
                        self.move = None
            owner.renew()

    # --- bodies ---

    @rule(owner=st.integers(0, 1), key=keys)
    def begin_body(self, owner: int, key: str) -> None:
        holder = self.owners[owner]
        turn = holder.state.at(key, wait=0)
        if (holder.name, key) in self.bodies:
            with pytest.raises(UsageError, match="has the turn"):
                turn.__enter__()
        elif not holder.holds(half_of(key)):
            with pytest.raises(NotOwner):
                turn.__enter__()
        else:
            turn.__enter__()
            self.bodies[holder.name, key] = Body(holder, key, turn)  # its turn ends in any case
            assert turn.value == self.known(key)

    def known(self, key: str) -> object:
        value, ends_at = self.twin.get(key, (None, 0.0))
        return value if self.clock() < ends_at else None

    @precondition(lambda self: self.bodies)
    @rule(data=st.data(), value=values)
    def act(self, data: st.DataObject, value: object) -> None:
        body = self.some_body(data)
        body.turn.value = value
        body.wanted = (value,)

    @precondition(lambda self: self.bodies)
    @rule(data=st.data())
    def act_in_place(self, data: st.DataObject) -> None:
        body = self.some_body(data)
        value = body.turn.value
        if isinstance(value, list):
            value.append(7)
            body.wanted = (list(value),)

    @precondition(lambda self: self.bodies)
    @rule(data=st.data(), raises=st.booleans())
    def end_body(self, data: st.DataObject, *, raises: bool) -> None:
        body = self.some_body(data)
        del self.bodies[body.holder.name, body.key]
        half = half_of(body.key)
        is_held = body.holder.holds(half) and body.holder.leases[half][0] == body.number
        if raises:
            leave(body.turn, ZeroDivisionError())
        elif not is_held:
            with pytest.raises(LeaseLost):
                leave(body.turn)
        else:
            leave(body.turn)
            self.acknowledge(body)

    def acknowledge(self, body: Body) -> None:
        if body.wanted is None:
            return
        [value] = body.wanted
        if value is None:
            self.twin.pop(body.key, None)
        else:
            self.twin[body.key] = value, self.clock.after(TTL)

    def some_body(self, data: st.DataObject) -> Body:
        return self.bodies[data.draw(st.sampled_from(sorted(self.bodies)))]

    # --- at every step ---

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        for owner in self.owners:
            entries = owner.state.entries
            there = sum(len(str(key)) + len(each.data) for key, each in entries.items())
            assert entries._bytes == there

    def teardown(self) -> None:
        for body in self.bodies.values():
            leave(body.turn, ZeroDivisionError())
        for key in KEYS:
            holder = self.held_by(half_of(key))
            if holder is not None:
                with holder.state.at(key) as it:
                    assert it.value == self.known(key)


def leave(turn: Turn[Any], error: BaseException | None = None) -> None:
    turn.__exit__(None if error is None else type(error), error, None)


SETTINGS = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


CATCHING = settings(
    SETTINGS, max_examples=1_000, phases=[Phase.generate], report_multiple_bugs=False, database=None
)
"""It need not be the shortest story."""


def test_owned_state_is_what_its_twin_is() -> None:
    run(Story, settings=SETTINGS)


# --- broken turns that the story must catch -------------------------------------------------------


class NoLastCheck(Turn[Any]):
    """Stores, and asks for no lease: neither before nor afterwards."""

    def has_lasted(self) -> bool:
        return True


class StoredBeforeTheEnd(Turn[Any]):
    """Stores as soon as something is assigned."""

    @property
    def value(self) -> Any:  # noqa: ANN401  # of any state
        return super().value

    @value.setter
    def value(self, value: Any) -> None:  # noqa: ANN401  # of any state
        Turn.value.fset(self, value)  # type: ignore[attr-defined]
        self._has_kept()


@pytest.mark.parametrize("broken", [NoLastCheck, StoredBeforeTheEnd])
def test_the_story_catches_a_broken_turn(broken: type[Turn[Any]]) -> None:
    class BrokenState(OwnedState[Any]):
        def at(self, key: UserKey, *, wait: float | None = None) -> Turn[Any]:
            return broken(self, key, 0.0)

    class BrokenStory(Story):
        state = staticmethod(lambda: BrokenState(ttl=TTL))

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run(BrokenStory, settings=CATCHING)
