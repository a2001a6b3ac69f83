"""The same seed is the same run, byte for byte, in any process and under any hash seed."""

import os
import subprocess
import sys

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import first_broken, run_without
from tenure.sim.lease.run import run_seed, run_seeds
from tenure.sim.lease.trial import Trial

COMMAND = [sys.executable, "-m", "tenure", "simulate"]


def printed(arguments: list[str], hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )
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
