"""The manager's side of one incarnation: rising numbers, one hold, recalls by range."""

import pytest

from tenure.base.instants import Instant
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.leader.session import Session


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
    """It is to be told what becomes of what it has, also where nobody else is to have that."""
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
