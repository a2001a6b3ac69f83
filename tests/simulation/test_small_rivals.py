"""Every story of two masters up to a bound is told (P25), and those of mutants are short."""

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from lab.worlds.lease.small import Limits
from lab.worlds.lease.small_rivals import Masters, in_short, search_masters

APART = Masters()
"""The second master comes while the first one's owner holds the key."""
BOTH = Masters(both=True, bound=5)
"""Both have granted the key before they can reach each other."""
ONE_KNOWS = Masters(lists=("01", "1"), named=False, both=True, alone=7, bound=10)


@pytest.mark.parametrize(
    ("masters", "limits"),
    [
        (APART, Limits(ticks=4, lose=1)),
        (BOTH, Limits(ticks=7, lose=1, starts=0)),
        (ONE_KNOWS, Limits(ticks=12, starts=0)),
    ],
    ids=lambda each: in_short(each) if isinstance(each, Masters) else "",
)
def test_no_story_of_two_masters_has_two_owners(masters: Masters, limits: Limits) -> None:
    found = search_masters(masters, limits)
    assert found.violation is None
    assert found.complete
    assert found.states > 300


@pytest.mark.parametrize(
    ("broken", "masters", "limits"),
    [
        ("grants-beside-a-rival", APART, Limits(ticks=4)),
        ("renews-beside-a-rival", BOTH, Limits(ticks=7, starts=0)),
    ],
)
def test_a_broken_master_has_a_short_story(broken: str, masters: Masters, limits: Limits) -> None:
    found = run_without(mutant("rivals", broken), search_masters, masters, limits)
    assert found.violation is not None
    assert found.violation.startswith("S1: two owners")


def test_what_nobody_can_see_is_not_promised() -> None:
    alone = Masters(named=False, both=True, bound=3)
    assert search_masters(alone, Limits(ticks=4, starts=0)).violation is not None
