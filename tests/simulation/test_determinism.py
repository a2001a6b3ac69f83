"""The same seed is the same run, byte for byte, in any process and under any hash seed."""

import os
import subprocess
import sys

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import first_broken, run_without
from lab.simulate.command import TIERS
from lab.worlds.lease.run import run_seed, run_seeds
from lab.worlds.lease.trial import Trial
from tests.simulation import whole_stories

COMMAND = [sys.executable, "-m", "lab", "simulate"]


def printed(arguments: list[str], hash_seed: str) -> str:
    return printed_by([*COMMAND, *arguments], hash_seed)


def printed_by(command: list[str], hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", "2", "--seeds", "4", "--hours", "0.3"],
        ["--seed", "1", "--hours", "0.5", "--json"],
    ],
)
def test_what_is_printed_is_the_same_under_any_hash_seed(arguments: list[str]) -> None:
    once, again = printed(arguments, "1"), printed(arguments, "4242")
    assert once == again
    assert "fingerprint" in once


@pytest.mark.parametrize("tier", whole_stories.HOURS)
def test_the_whole_story_is_the_same_under_any_hash_seed(tier: str) -> None:
    """Ten seeds of each tier, event by event, with all details."""
    command = [sys.executable, "-m", whole_stories.__name__, tier]
    once, again = (printed_by(command, hash_seed).splitlines() for hash_seed in ("1", "2"))
    assert len(once) > whole_stories.SEEDS
    different = (pair for pair in zip(once, again, strict=False) if pair[0] != pair[1])
    assert next(different, None) is None
    assert len(once) == len(again)


def test_every_tier_has_whole_stories() -> None:
    assert TIERS.keys() < whole_stories.HOURS.keys()


def test_a_mutant_is_caught_in_the_same_way_each_time() -> None:
    """The story of a violation, too."""
    trials = [Trial(seed=seed) for seed in range(6, 20)]
    broken = mutant("lease", "requests-in-any-order")
    once, again = (run_without(broken, first_broken, run_seed, trials) for _ in range(2))
    assert once == again
    assert once.story


def test_many_cores_come_to_the_same_as_one() -> None:
    plans = [Trial(seed=seed, hours=0.1) for seed in range(4)]
    assert list(run_seeds(plans, workers=1)) == list(run_seeds(plans, workers=2))


def test_another_seed_is_another_run() -> None:
    one, other = (run_seed(Trial(seed=seed, hours=0.1)) for seed in (1, 2))
    assert one.fingerprint != other.fingerprint
