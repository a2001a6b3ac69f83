"""Some seeds of caches: every promise is kept, and everything that may go wrong does."""

from collections import Counter

import pytest

from lab.worlds.volume.faults import FAULTS
from lab.worlds.volume.run import run_caches
from lab.worlds.volume.strikes import ALONE
from lab.worlds.volume.trial import VolumeTrial


@pytest.mark.parametrize("seed", range(12))
def test_every_promise_of_caches_is_kept(seed: int) -> None:
    outcome = run_caches(VolumeTrial(owners=False, seed=seed, hours=0.5))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.simulated_hours >= 0.5


def test_every_kind_of_fault_happens_within_sixty_seeds() -> None:
    counts: Counter[str] = Counter()
    workload: Counter[str] = Counter()
    for seed in range(60):
        outcome = run_caches(VolumeTrial(owners=False, seed=seed, hours=0.1))
        counts.update(outcome.faults)
        workload.update(outcome.workload)
    assert [kind for kind in ALONE.kinds if not counts[kind]] == []
    assert {"hits", "fetched", "found current", "writes done", "own writes written"} <= set(
        workload
    )


def test_the_same_seed_is_the_same_world() -> None:
    one, other = (run_caches(VolumeTrial(owners=False, seed=3, hours=0.2)) for _ in range(2))
    assert one == other


def test_where_nothing_may_go_wrong_nothing_does() -> None:
    outcome = run_caches(VolumeTrial(owners=False, seed=1, hours=0.2, faults=ALONE.chosen("none")))
    assert outcome.faults == {}
    assert outcome.violation is None
    assert "unreachable" not in outcome.workload


@pytest.mark.parametrize("seed", range(300, 308))
def test_every_promise_of_caches_is_kept_over_owners(seed: int) -> None:
    """Managers, owners, lookups, all faults of the core, and those of caches."""
    outcome = run_caches(VolumeTrial(owners=True, seed=seed, hours=0.2))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.workload["fetched"] > 0


def test_two_revocations_may_end_with_one_range() -> None:
    """Telling of the first made the owner revoke again, which ended the second meanwhile."""
    outcome = run_caches(VolumeTrial(owners=True, seed=920_039, hours=0.7))
    assert outcome.violation is None, (outcome.violation, *outcome.story)


def test_every_other_world_of_caches_has_owners() -> None:
    assert [VolumeTrial(seed=seed).has_owners for seed in range(4)] == [False, True, False, True]
    names = FAULTS.kinds
    assert len(names) == len(set(names))
    assert {"memory lost", "cut from the journal", "eviction"} <= set(names)
