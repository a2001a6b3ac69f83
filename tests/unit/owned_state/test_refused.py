"""Owned state: calls that are refused, and its use after a fork."""

import gc
import os
import threading
from typing import Any

import pytest

from tenure import (
    Busy,
    ConfigurationError,
    ForkedError,
    KeyRange,
    KeyTypeError,
    NotOwner,
    OwnedState,
    UsageError,
    ValueTypeError,
)
from tenure.client.forks import _alive
from tenure.testing.clock import TurnedClock
from tests.unit.owned_state.stage import WHOLE, Holder, copied, holder, put, stored

# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ttl": 0}, "ttl is a number of seconds above 0, not 0"),
        ({"ttl": "1"}, "ttl is a number"),
        ({"limit": 0}, "limit is a number from 1 on, not 0"),
        ({"limit": True}, "limit is a number from 1 on, not True"),
        ({"limit_bytes": 1.5}, "limit_bytes is a number from 1 on"),
        ({"wait": -1}, "wait is a number of seconds"),
        ({"wait": None}, "wait is a number of seconds"),
        ({"most_waiting": 0}, "most_waiting is a number from 1 on"),
        ({"value_type": list[int] | set[int]}, "value_type cannot be"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        OwnedState(**options)


@pytest.mark.parametrize("key", [None, 1.5, True, "\ud800", ["a"]])
def test_what_is_no_key_is_refused(key: Any) -> None:  # noqa: ANN401  # it is no key
    with pytest.raises(KeyTypeError), holder().state.at(key):
        raise AssertionError("nothing is done")


def test_a_value_that_would_not_arrive_is_refused_and_nothing_is_stored() -> None:
    held = holder(OwnedState(value_type=list[str]))
    put(held.state, "a", ["x"])
    for value in ([1], ("x",), object(), ["x" * 5_000_000]):
        with pytest.raises(ValueTypeError, match="an OwnedState of list"):
            put(held.state, "a", value)
    assert stored(held.state, "a") == ["x"]


def test_it_is_used_within_an_owner() -> None:
    state: OwnedState[int] = OwnedState()
    with pytest.raises(UsageError, match="is not in use by an owner"), state.at("a"):
        raise AssertionError("nothing is done")


def test_a_turn_is_taken_once_and_used_inside() -> None:
    state = holder().state
    turn = state.at("a")
    for use in (lambda: turn.value, lambda: turn.lease, lambda: turn.ttl, turn.refresh):
        with pytest.raises(UsageError, match="the turn with 'a' is not under way"):
            use()
    with turn:
        turn.value = 1
    with pytest.raises(UsageError, match="is not under way"):
        turn.value = 2
    with pytest.raises(UsageError, match="was taken already"), turn:
        pass


def test_a_body_within_a_body_of_the_same_key_is_refused_at_once() -> None:
    state = holder().state
    with state.at("a") as outer:
        outer.value = 1
        with pytest.raises(UsageError, match="has the turn with 'a' already"), state.at("a"):
            raise AssertionError("nothing is done")
    assert stored(state, "a") == 1


@pytest.mark.asyncio
async def test_a_blocking_turn_in_an_event_loop_is_refused() -> None:
    with pytest.raises(UsageError, match="would block the event loop"), holder().state.at("a"):
        raise AssertionError("nothing is done")


def test_who_does_not_want_to_wait_is_told() -> None:
    state = holder().state
    inside, done = threading.Event(), threading.Event()

    def serve() -> None:
        with state.at("a"):
            inside.set()
            done.wait()

    serving = threading.Thread(target=serve)
    serving.start()
    inside.wait()
    with pytest.raises(Busy), state.at("a", wait=0):
        raise AssertionError("nothing is done")
    done.set()
    serving.join()


def test_a_chunk_of_another_kind_of_state_is_refused() -> None:
    with pytest.raises(ValueError, match="not a chunk of an OwnedState"):
        holder().state.import_chunk(WHOLE, b"\x91\x90")


def test_a_key_outside_the_range_is_refused() -> None:
    first, second = holder(), holder()
    put(first.state, "ann", 1)
    [chunk] = copied(first.state, WHOLE)[1]
    with pytest.raises(ValueError, match="the key 'ann', which is not in"):
        second.state.import_chunk(KeyRange(b"\xff" * 8, None), chunk)
    assert (len(second.state), second.state.size_bytes) == (0, 0)


# --- forks and ends -------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_in_a_forked_child_every_turn_raises_and_none_waits_for_a_lock_of_the_parent() -> None:
    held = holder()
    inside = held.state.at("a")
    inside.__enter__()
    with held.state.entries.lock:
        in_another = threading.Thread(target=lambda: None)
        in_another.start()
        in_another.join()
        held.state.on_fork()  # what the child does first
        held.board.on_fork()
        raised: list[BaseException] = []

        def act() -> None:
            for body in (lambda: held.state.at("b").__enter__(), inside_ends):
                try:
                    body()
                except ForkedError as error:
                    raised.append(error)

        def inside_ends() -> None:
            inside.value = 1
            inside.__exit__(None, None, None)

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        thread.join(10)
    assert [type(each) for each in raised] == [ForkedError, ForkedError]


def test_an_owner_that_is_not_entered_yet_has_no_turns() -> None:
    held = Holder("an owner", TurnedClock(), OwnedState())
    assert held.state in _alive
    with pytest.raises(NotOwner), held.state.at("a"):
        raise AssertionError("nothing is done")


def test_an_owner_that_is_made_and_never_entered_leaves_its_state() -> None:
    from tenure import Owner  # noqa: PLC0415  # only this test makes one

    state: OwnedState[int] = OwnedState()
    address = "http://127.0.0.1:8001"
    first = Owner("http://127.0.0.1:7400", pool="carts", address=address, hand_off=state)
    with pytest.raises(UsageError, match="is not in use"), state.at("a"):
        raise AssertionError("nothing is done")
    with pytest.raises(ConfigurationError):
        Owner("http://127.0.0.1:7400", pool="carts", address=address, hand_off=state)
    del first
    gc.collect()
    Owner("http://127.0.0.1:7400", pool="carts", address=address, hand_off=state)
