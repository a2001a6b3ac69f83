"""Some seeds of services: every promise is kept; and a rule left out is noticed."""

from typing import Any

import msgspec
import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import first_broken, run_without
from lab.worlds.entity import faults as entity_faults
from lab.worlds.services.faults import FAULTS
from lab.worlds.services.run import run_services
from lab.worlds.services.trial import ServicesTrial
from tenure.errors import ConfigurationError
from tenure.sim.lease.faults import HAND_OFF_FAULTS


@pytest.mark.parametrize("seed", [1, 2])
def test_every_promise_of_services_is_kept(seed: int) -> None:
    outcome = run_services(ServicesTrial(seed=seed, hours=0.1, apart=0.1))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    seen = outcome.workload
    for what in ("published to all", "entries", "subscribed", "written", "sections written"):
        assert seen[what], what


CRASHES = {"faults": ("crash of an owner",), "fault_rate": 4.0}
MIXES: dict[str, dict[str, Any]] = {
    "published-before-the-queues": {
        "faults": ("crash of an owner", "queue refuses", "queue late"),
        "fault_rate": 4.0,
    },
    "refused-counts-as-taken": {"faults": ("queue refuses",), "fault_rate": 1.0},
    "lost-pool-not-told": CRASHES,
    "place-forgotten-in-a-move": {
        "faults": ("queue answer lost", "queue late", "leaving"),
        "fault_rate": 4.0,
    },
    "late-put-taken": {"faults": ("queue late", "crash of an owner"), "fault_rate": 4.0},
    "versions-begin-anew": CRASHES | {"stored": False},
}
"""The trials of mutants that all faults together hardly ever show."""


def trial(name: str, seed: int) -> ServicesTrial:
    """A seed of the mix by which the mutant is found soon."""
    return msgspec.structs.replace(whole_trial(name, seed), hours=0.1)


def whole_trial(name: str, seed: int) -> ServicesTrial:
    """The same, for an hour."""
    plan = ServicesTrial(seed=seed, apart=0.05)
    if name not in MIXES:
        return plan
    return msgspec.structs.replace(plan, has_all_faults=True, **({"stored": None} | MIXES[name]))


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
    """These are the rules that the first seeds reveal; `python -m lab hunt --tier services` has
    all.
    """
    trials = [trial(name, seed) for seed in range(7000, 7000 + SEEDS)]
    assert run_without(mutant("services", name), first_broken, run_services, trials) is not None


def test_every_mix_is_that_of_a_mutant() -> None:
    assert MIXES.keys() < mutants("services").keys()


def test_the_same_seed_of_services_is_the_same_run() -> None:
    first, again = (run_services(ServicesTrial(seed=3, hours=0.05)) for _ in range(2))
    assert first.fingerprint == again.fingerprint


def test_faults_of_transfers_that_programs_do_not_use_are_not_named() -> None:
    named = {*entity_faults.FAULTS.kinds, *FAULTS.kinds}
    assert not named & {each.name for each in HAND_OFF_FAULTS}
    with pytest.raises(ConfigurationError, match="no fault is called 'hand-off'"):
        FAULTS.chosen("hand-off")
