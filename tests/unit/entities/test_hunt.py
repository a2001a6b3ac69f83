"""Seeds of a world under trouble come out clean; with a rule left out, the oracle says so."""

import asyncio

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from tests.unit.entities.hunt import Hunt

SEEDS = 12
SEEDS_OF_A_MUTANT = 40


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.asyncio
async def test_a_seed_is_clean(seed: int) -> None:
    await Hunt(seed).run()


def is_broken_by_a_seed() -> bool:
    for seed in range(SEEDS_OF_A_MUTANT):
        try:
            asyncio.run(Hunt(seed).run())
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize(
    "name",
    [
        "no-turns",
        "answers-not-kept",
        "new-id-each-time",
        "nothing-rolled-back",
        "moved-state-dropped",
        "not-in-reach",
        "old-instance",
        "frames-before-commit",
        "frames-taken-again",
        "over-gaps",
        "frames-forgotten",
        "all-confirmed-by-one",
        "early-alarms",
    ],
)
def test_a_rule_left_out_is_caught(name: str) -> None:
    assert run_without(mutant("entity", name), is_broken_by_a_seed)
