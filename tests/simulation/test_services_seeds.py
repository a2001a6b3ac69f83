"""Some seeds of services: every promise is kept; and a rule left out is noticed."""

import pytest

from tenure.errors import ConfigurationError
from tenure.sim.entity import faults as entity_faults
from tenure.sim.lease.faults import HAND_OFF_FAULTS
from tenure.sim.services.canaries import CANARIES, services_canary
from tenure.sim.services.faults import FAULTS
from tenure.sim.services.run import run_services
from tenure.sim.services.trial import ServicesTrial


@pytest.mark.parametrize("seed", [0, 1])
def test_every_promise_of_services_is_kept(seed: int) -> None:
    outcome = run_services(ServicesTrial(seed=seed, hours=0.1, apart=0.1))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    seen = outcome.workload
    for what in ("published to all", "entries", "subscribed", "written", "sections written"):
        assert seen[what], what


SOON = (
    "reader-not-taken-over",
    "acknowledged-and-kept",
    "published-under-any-id",
    "refused-counts-as-taken",
    "loss-dropped-when-read",
    "begins-in-silence",
    "lost-pool-not-told",
    "one-epoch",
    "version-stays",
    "versions-begin-anew",
    "section-alone",
)
SEEDS = 30


@pytest.mark.parametrize("name", SOON)
def test_a_rule_of_services_left_out_is_noticed(name: str) -> None:
    """These are the rules that the first seeds reveal; `tests.simulation.hunt --tier services` has
    all.
    """
    canary = services_canary(name)
    trials = (
        canary.trial(ServicesTrial(seed=seed, hours=0.1, apart=0.05))
        for seed in range(7000, 7000 + SEEDS)
    )
    assert any(run_services(each, canary).violation is not None for each in trials)


def test_every_canary_of_services_is_broken_only_while_it_runs() -> None:
    assert all(each.leaves_out for each in CANARIES)
    for each in CANARIES:
        [(owner, name, broken), *_] = each.patches
        with each.in_place():
            assert owner.__dict__[name] is broken
        assert owner.__dict__[name] is not broken


def test_the_same_seed_of_services_is_the_same_run() -> None:
    first, again = (run_services(ServicesTrial(seed=3, hours=0.05)) for _ in range(2))
    assert first.fingerprint == again.fingerprint


def test_faults_of_transfers_that_programs_do_not_use_are_not_named() -> None:
    named = {*entity_faults.FAULTS.kinds, *FAULTS.kinds}
    assert not named & {each.name for each in HAND_OFF_FAULTS}
    with pytest.raises(ConfigurationError, match="no fault is called 'hand-off'"):
        FAULTS.chosen("hand-off")
