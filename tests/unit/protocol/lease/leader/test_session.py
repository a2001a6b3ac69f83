"""The manager's side of one incarnation: rising numbers, one hold, recalls by range."""

from itertools import combinations

import pytest

from tenure.base.instants import Instant
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Held


def session() -> Session:
    made = Session(1, "o", 11, Instant(10))
    made.take(5, 3, Instant(20), leaving=False)
    return made


@pytest.mark.parametrize(("sequence", "is_taken"), [(0, False), (4, False), (5, False), (6, True)])
def test_numbers_rise(sequence: int, is_taken: bool) -> None:
    """P2."""
    assert session().is_in_order(sequence) == is_taken


def test_the_hold_never_shrinks() -> None:
    """P3, P19."""
    made = session()
    made.take(6, 3, Instant(15), leaving=False)
    assert made.hold_until == 20


def test_a_request_answers_the_poke_that_was_under_way() -> None:
    made = session()
    made.poked = True
    made.take(6, 4, Instant(21), leaving=False)
    assert (made.poked, made.connection) == (False, 4)


def test_who_is_leaving_stays_so() -> None:
    made = session()
    made.take(6, 3, Instant(21), leaving=True)
    made.take(7, 3, Instant(22), leaving=False)
    assert made.leaving


def test_who_is_leaving_is_not_settled() -> None:
    """It must be told what becomes of what it has, even if no other owner is to have that."""
    made = session()
    made.settled = True
    made.take(6, 3, Instant(21), leaving=False)
    assert made.settled
    made.take(7, 3, Instant(22), leaving=True)
    assert not made.settled


@pytest.mark.parametrize("name", ["recalled", "orders"])
def test_what_was_told_of_a_range_is_forgotten_with_it(name: str) -> None:
    made = session()
    getattr(made, name).assign(WHOLE, Instant(30))
    made.untold.assign(WHOLE, value=True)
    assert made.is_moving
    made.forget_moves(WHOLE)
    assert not made.is_moving


def test_recalls_are_by_range() -> None:
    made = session()
    seen = [made.is_moving]
    made.recalled.assign(WHOLE, Instant(30))
    seen.append(made.is_moving)
    for returned in (KeyRange(b"", b"m"), KeyRange(b"m", None)):
        made.forget_moves(returned)
        seen.append(made.is_moving)
    assert seen == [False, True, True, False]


def test_what_the_application_still_has_is_found_without_a_walk() -> None:
    """A liar may list a hundred thousand ranges, and wait for the grant of as many."""
    bounds = [None if i > 8 else bytes([i]) for i in range(10)]
    pieces = [KeyRange(bytes([i]), bounds[i + 1]) for i in range(1, 9)]
    made = session()
    for count in range(4):
        for listed in combinations(pieces, count):
            made.letting_go = tuple(Held(start=r.start, end=r.end, number=0) for r in listed)
            for start, end in combinations(bounds, 2):
                assert start is not None
                asked = KeyRange(start, end)
                assert made.still_has(asked) == any(map(asked.overlaps, listed))
