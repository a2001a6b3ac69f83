"""How even a crowd's load is, from what owners say that they have served."""

import pytest

from leasehold.base.instants import Instant, seconds
from leasehold.cli.demo.crowds import WINDOW, Spread


def spread(*served: tuple[float, list[int]]) -> Spread:
    it = Spread()
    for at, counts in served:
        it.see(Instant(seconds(at)), counts)
    return it


def test_nothing_is_known_before_a_whole_window() -> None:
    assert Spread().most_to_mean is None
    assert spread((0, [0, 0]), (WINDOW / 1e9 - 0.1, [9, 9])).most_to_mean is None


@pytest.mark.parametrize(
    ("grown", "most_to_mean"), [([10, 10], 1.0), ([30, 10], 1.5), ([0, 8], 2.0), ([0, 0], 0.0)]
)
def test_it_is_the_most_that_one_has_served_beside_the_mean(
    grown: list[int], most_to_mean: float
) -> None:
    last = [before + more for before, more in zip([100, 7], grown, strict=True)]
    assert spread((0, [100, 7]), (3, last)).most_to_mean == most_to_mean


def test_what_was_served_before_the_window_does_not_count() -> None:
    assert spread((0, [0, 0]), (3, [90, 10]), (6, [100, 20])).most_to_mean == 1.0
