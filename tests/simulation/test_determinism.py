"""The same seed is the same run, byte for byte, in any process and under any hash seed."""

import os
import subprocess
import sys

import pytest

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
        ["--seeds", "40", "--hours", "1", "--canary", "requests-in-any-order", "--workers", "1"],
    ],
)
def test_what_is_printed_is_the_same_under_any_hash_seed(arguments: list[str]) -> None:
    once, again = printed(arguments, "1"), printed(arguments, "4242")
    assert once == again
    assert "fingerprint" in once


def test_many_cores_come_to_the_same_as_one() -> None:
    plans = [Trial(seed=seed, hours=0.1) for seed in range(4)]
    assert list(run_seeds(plans, workers=1)) == list(run_seeds(plans, workers=2))


def test_another_seed_is_another_run() -> None:
    one, other = (run_seed(Trial(seed=seed, hours=0.1)) for seed in (1, 2))
    assert one.fingerprint != other.fingerprint
