"""Every policy passes the public suite."""

import os
import subprocess
import sys

import pytest

from examples.steady_policy import Steady
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.outside import Outside
from tenure.protocol.balance.policy import Policy
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.tuning import ORDERED
from tenure.protocol.balance.weighted import Weighted
from tenure.testing.contracts.policy import PolicyContract
from tenure.testing.contracts.situations import digest

SPLITS = [bytes([i]) for i in range(1, 256)]
"""The contract counts churn by parts of the key space, so all split ranges are equally long."""
PROGRAM = """
from tenure.testing.contracts.situations import digest
from tests.contracts.test_policies import POLICIES
for name in sorted(POLICIES):
    print(name, digest(POLICIES[name]))
"""
POLICIES: dict[str, Policy] = {
    "deal": Deal(SPLITS),
    "ordered": Weighted(ORDERED, SPLITS),
    "ring": Ring(8),
    "steady": Steady(),
    "weighted": Weighted(),
}


class TestDeal(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return Deal(SPLITS)


class TestRing(PolicyContract):
    hostile_loads_move_at_most = 2.0
    bursts_move_at_most = 3.5  # the papers' policy moves points for ever, and has no budget
    drift_moves_at_most = 0.5
    drift_grows_at_most = 1.5  # up to 256 points of each owner: in a month

    @pytest.fixture
    def policy(self) -> Policy:
        return Ring(8)


class TestWeighted(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return Weighted()


class TestTheExample(PolicyContract):
    """With what is demanded of policies from outside."""

    @pytest.fixture
    def policy(self) -> Policy:
        return Outside(Steady())


class TestOrderedWeighted(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return Weighted(ORDERED, SPLITS)


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    """The hash seed is that of the process: here it differs from the one in the other process."""
    here = "".join(f"{name} {digest(POLICIES[name])}\n" for name in sorted(POLICIES))
    seeds = {"1", "2"} - {os.environ.get("PYTHONHASHSEED", "")}
    for seed in sorted(seeds):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        there = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout == here
