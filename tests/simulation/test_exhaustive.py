"""Every story up to a bound is told, and none breaks a promise; those of mutants do, shortly."""

from collections.abc import Callable

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from lab.search.exhaustive import Found
from lab.worlds.lease.exhaustive import ONE_NAME, TWO_NAMES, in_short, search
from lab.worlds.lease.small import Limits


@pytest.mark.parametrize(
    ("names", "limits"),
    [
        (TWO_NAMES, Limits(ticks=3, late=1, lose=1)),
        (TWO_NAMES, Limits(ticks=3, double=1, lose=1)),
        (TWO_NAMES, Limits(ticks=5, freeze=1)),
        (TWO_NAMES, Limits(ticks=3, late=1, revoke=1)),
        (TWO_NAMES, Limits(ticks=3, journal=1)),
        (TWO_NAMES, Limits(ticks=2, crash=1, lose=1, starts=2)),
        (TWO_NAMES, Limits(ticks=5, manager_crash=1, starts=2)),
        (TWO_NAMES, Limits(ticks=3, manager_crash=1, lookups=1)),
        (TWO_NAMES, Limits(ticks=3, late=1, lookups=1)),
        (TWO_NAMES, Limits(ticks=4, lose=1, lookups=1)),
        (ONE_NAME, Limits(ticks=5, late=1, lose=1)),
        (ONE_NAME, Limits(ticks=6, freeze=1)),
    ],
    ids=lambda each: in_short(TWO_NAMES, each) if isinstance(each, Limits) else "-".join(each),
)
def test_no_story_breaks_a_promise(names: tuple[str, str], limits: Limits) -> None:
    """More and longer ones: `make exhaustive`."""
    found = search(limits, names=names)
    print(found)
    assert found.violation is None
    assert found.complete  # it was not cut off
    assert found.states > 1_000


def test_where_nothing_goes_wrong_the_key_moves_to_the_new_owner() -> None:
    found = search(Limits(ticks=4))
    assert found.violation is None
    assert found.states < 200


@pytest.mark.parametrize(
    ("broken", "limits", "names", "promise"),
    [
        ("no-hold-margin", Limits(lose=1, crash=1), TWO_NAMES, "freed too early"),
        ("requests-in-any-order", Limits(late=1), TWO_NAMES, "freed too early"),
        ("answer-to-an-older-request", Limits(late=1, lose=1), TWO_NAMES, "freed too early"),
        ("blunt/a-name-is-taken", Limits(), ONE_NAME, "freed too early"),
        ("answer-before-expiry", Limits(freeze=1), TWO_NAMES, "invariant"),
        ("answer-before-commit", Limits(ticks=3, journal=1), TWO_NAMES, "S4: told before"),
        ("blunt/no-wait", Limits(revoke=1), TWO_NAMES, "freed too early"),
        ("blunt/no-wait", Limits(manager_crash=1), TWO_NAMES, "freed too early"),
        ("answer-before-commit", Limits(manager_crash=1), TWO_NAMES, "S4: told before"),
        ("append-not-guarded", Limits(revoke=1, freeze=1), TWO_NAMES, "freed too early"),
        (
            "loss-by-last-flag",
            Limits(lookups=1, lose=1, starts=2, crash=1),
            TWO_NAMES,
            "S2: a loss was not signalled",
        ),
        ("loss-signalled-in-vain", Limits(lookups=1), TWO_NAMES, "S2: signalled in vain"),
    ],
)
def test_a_broken_machine_has_a_short_story(
    broken: str, limits: Limits, names: tuple[str, str], promise: str
) -> None:
    tier, _, name = broken.rpartition("/")
    found = run_without(mutant(tier or "lease", name), search, limits, names=names)
    assert found.violation is not None
    assert found.violation.startswith(promise)
    assert found.states < 50_000
    assert search(limits, names=names, most_states=found.states).violation is None


def steps_of(found: Found) -> list[str]:
    return [line for line in found.story if line.startswith("tick")]


@pytest.fixture
def takeover() -> Callable[[], Found]:
    return lambda: run_without(mutant("blunt", "no-wait"), search, Limits(revoke=1))


def test_the_story_is_the_shortest_and_ends_with_what_is_wrong(
    takeover: Callable[[], Found],
) -> None:
    found = takeover()
    assert len(steps_of(found)) <= 6
    assert any("the leadership is revoked early" in step for step in steps_of(found))
    assert found.story[-1].strip().startswith("committed: Left incarnation 1 is gone, which frees")


def test_a_search_is_the_same_each_time(takeover: Callable[[], Found]) -> None:
    assert takeover() == takeover()
