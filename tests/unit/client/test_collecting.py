"""Collecting garbage may run anything, and so let other threads go on in the middle of a step."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from tenure.client.guard import Guard, Guards
from tenure.client.holdings import Board
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.testing.clock import TurnedClock

OBJECTS = 100
"""After how many new objects garbage is collected."""


@contextmanager
def at_each_collection(then: Callable[[], object]) -> Iterator[None]:
    """Call this wherever garbage is collected."""

    def call(phase: str, _: object) -> None:
        if phase == "start":
            then()

    before = gc.get_threshold()
    gc.callbacks.append(call)
    gc.set_threshold(OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(call)


def a_board(clock: TurnedClock) -> Board:
    """Of an owner that holds everything."""
    board = Board("hashed", clock)
    board.open()
    lease = Leased(start=b"", end=None, number=1, since=1, mark="renewed")
    assert board.publish(Holdings(7, 1, (lease,), clock.after(10)))
    return board


def test_names_of_keys_are_told_while_others_are_checked() -> None:
    board = a_board(TurnedClock())
    leases = [board.check(f"key-{i}") for i in range(5 * OBJECTS)]
    keys = [each.key for each in leases if each is not None]
    others = count()
    with at_each_collection(lambda: board.check(f"other-{next(others)}")):
        told = [board.names(keys) for _ in range(10 * OBJECTS)]  # they are new objects, too
    assert next(others) > 1
    assert all(each[:2] == ("key-0", "key-1") for each in told)


def test_bodies_that_begin_keep_nobody_from_being_told_of_a_loss() -> None:
    clock = TurnedClock()
    guards = Guards(a_board(clock), clock, "an owner", lambda _: None)
    entered: list[Guard] = []

    def begin() -> None:
        if len(entered) < 6 * OBJECTS:
            entered.append(Guard(guards, f"key-{len(entered)}"))
            entered[-1].__enter__()

    for _ in range(5 * OBJECTS):
        begin()
    with at_each_collection(begin):
        for _ in range(3):
            guards.tell_losers()
    assert len(entered) > 5 * OBJECTS
    for each in entered:
        each.__exit__(None, None, None)
