"""`python -m lab simulate NAME`: `tenure simulate` without a rule, to read how that is noticed."""

import sys
from collections.abc import Sequence

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from tenure.cli.app import run

DEFAULT_TIER = "lease"


def main(arguments: Sequence[str]) -> int:
    """Simulate the mutant that is named first, with the options of `tenure simulate` after it."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m lab simulate MUTANT [options of tenure simulate]", file=sys.stderr)
        return 2
    name, *options = arguments
    return run_without(mutant(tier_of(options), name), run, ["simulate", *options])


def tier_of(options: Sequence[str]) -> str:
    """The tier that these options simulate."""
    if "--columns" in options:
        return "columns"
    for before, option in zip(("", *options), options, strict=False):
        if before == "--tier" or option.startswith("--tier="):
            return option.removeprefix("--tier=")
    return DEFAULT_TIER
