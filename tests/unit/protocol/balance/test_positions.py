"""Positions of keys in ordered pools: blended over time, few, and fronts where keys rise."""

from collections.abc import Sequence

import pytest

from tenure.base.instants import seconds
from tenure.base.keys import Key
from tenure.protocol.balance.positions import KEPT_POSITIONS, MEMORY_NS, MOST_POSITIONS, Positions

SPAN = seconds(3)


def take(
    known: Positions,
    met: Sequence[Key],
    rate: float = 10.0,
    start: Key = b"",
    end: Key | None = None,
    span: int = SPAN,
    new: float = 0.5,
) -> None:
    known.blend(start, end, sorted(met), rate, span, new)
    known.thin([(start, end)])
    known.invariants()


def names(first: int, count: int = 40) -> list[Key]:
    return [b"%06d" % (first + i) for i in range(count)]


def test_a_sample_shares_its_range_s_load() -> None:
    known = Positions()
    take(known, [b"a", b"c", b"c", b"d"], 8.0, new=1.0)
    assert [(each.key, each.rate) for each in known.all()] == [(b"a", 2), (b"c", 4), (b"d", 2)]
    assert known.rate(b"b", b"d") == 4


def test_what_is_no_longer_met_fades_and_what_was_asked_is_remembered() -> None:
    known = Positions()
    take(known, [b"a"], 8.0)
    take(known, [b"c"], 8.0)
    a, c = known.all()
    assert (a.rate, c.rate) == (2.0, 4.0)
    assert a.mass == pytest.approx(8 * 3, rel=0.01)
    take(known, [], 0.0, span=MEMORY_NS)
    assert known.all()[0].mass == pytest.approx(8 * 3 / 2.718, rel=0.01)


def test_another_range_is_left_as_it_is() -> None:
    known = Positions()
    take(known, [b"a", b"n"])
    before = known.all()[1]
    take(known, [b"b"], end=b"m")
    assert known.all()[-1] == before


def test_many_positions_become_few_that_say_the_same() -> None:
    known = Positions()
    for first in range(0, 4_000, 40):
        take(known, names(first), new=1.0, start=b"%06d" % first, end=b"%06d" % (first + 40))
    total, mass = known.rate(b"", None), sum(each.mass for each in known.all())
    known.thin([(b"", None)])
    assert known.size <= MOST_POSITIONS * 20
    while known.size > MOST_POSITIONS:
        known.thin([(b"", None)])
    assert known.size >= KEPT_POSITIONS
    assert known.rate(b"", None) == pytest.approx(total)
    assert sum(each.mass for each in known.all()) == pytest.approx(mass)
    assert known.all()[-1].key == b"003999", "the last stays: a front is above it"


def test_keys_that_rise_have_a_front() -> None:
    known = Positions()
    for second in range(0, 30, 3):
        take(known, names(second * 40), 100.0)
    [(front, rate)] = known.fronts()
    assert front == b"%06d" % (27 * 40 + 39) + b"\0"
    assert rate == pytest.approx(100.0)


def test_keys_that_stay_the_same_have_none() -> None:
    known = Positions()
    for _ in range(10):
        take(known, names(0))
    assert known.fronts() == []


def test_what_lies_above_few_known_positions_once_is_no_front() -> None:
    """After a move, the new owner's first sample may lie above all that was known there."""
    known = Positions()
    take(known, names(0, 5))
    take(known, names(100))
    take(known, names(100))
    assert known.fronts() == []


def test_a_front_goes_on_in_the_range_above_it() -> None:
    known = Positions()
    for second in range(0, 9, 3):
        take(known, names(second * 40))
    [(front, _)] = known.fronts()
    take(known, names(1_000), start=front)
    [(after, _)] = known.fronts()
    assert after > front


def test_a_front_that_has_stopped_is_forgotten() -> None:
    known = Positions()
    for second in range(0, 9, 3):
        take(known, names(second * 40))
    assert known.fronts()
    for _ in range(10):
        take(known, names(0))
    assert known.fronts() == []


def test_a_range_that_is_full_to_its_end_has_no_front() -> None:
    """There is nothing above it that another owner could have."""
    known = Positions()
    end = b"%06d" % 279 + b"\0"
    for second in range(0, 9, 3):
        take(known, names(second * 40), end=end)
    assert known.fronts() == []
