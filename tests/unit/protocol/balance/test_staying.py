"""The simplest rule: a range with an owner stays, and one without goes to the owner
that has least.
"""

from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.policy import NOBODY, Candidate, Pin, Situation
from tenure.protocol.balance.staying import Staying
from tenure.protocol.lease.table import Right

QUARTERS = [b"", b"\x40", b"\x80", b"\xc0"]
NEVER = RangeMap(Right(NOBODY, 0, 0))


def stayed(last: list[int], *candidates: Candidate, pins: tuple[Pin, ...] = ()) -> list[int]:
    staying = Staying(RangeMap.at_starts(QUARTERS, last))
    plan = staying(Situation(candidates, NEVER, pins=pins))
    return [plan.owners[start] for start in QUARTERS]


def test_what_has_an_owner_stays_however_uneven() -> None:
    assert stayed([1, 1, 1, 1], Candidate(1, "a"), Candidate(2, "b")) == [1, 1, 1, 1]


def test_what_belonged_to_the_gone_goes_to_who_has_least_for_its_capacity() -> None:
    a, b = Candidate(1, "a"), Candidate(2, "b")
    assert stayed([1, 3, 4, 5], a, b) == [1, 2, 1, 2]
    assert stayed([1, 3, 4, 5], a._replace(capacity=9.0), b) == [1, 2, 1, 1]


def test_who_is_cordoned_keeps_and_is_given_nothing() -> None:
    assert stayed([1, 3, 4, 5], Candidate(1, "a", cordoned=True), Candidate(2, "b")) == [1, 2, 2, 2]


def test_without_candidates_nobody_has_anything() -> None:
    assert stayed([1, 1, 2, 2]) == [NOBODY] * 4


def test_pins_hold() -> None:
    pins = (Pin(b"\x80", "b"),)
    assert stayed([1, 1, 1, 1], Candidate(1, "a"), Candidate(2, "b"), pins=pins) == [1, 1, 2, 1]
