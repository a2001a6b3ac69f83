"""The quick form of every benchmark: seconds, on a machine that does other things as well.

`python -m benchmarks --quick` asks for it, and `.ci/run` does so for every change: a benchmark that
no longer runs is found at once. Counts (of appends, losses, bytes) keep their bounds. A few samples
of a time say little, so a time or a ratio may be three times its bound: that finds what has become
several times as expensive, and not a machine's bad day.

What is a time on the wall also counts how long the processes of others had the processors. It may
be eight times its bound then: that finds what waits for a term, or for ever, and nothing finer. How
much work something is, is bounded by CPU, by counts, or beside something else in the same run.
"""

import os

VARIABLE = "TENURE_QUICK_BENCHMARKS"
QUICK = os.environ.get(VARIABLE) == "1"
LENIENCE = 3
LENIENCE_OF_WAITS = 8


def sized(full: int, quick: int) -> int:
    """How many, or how large."""
    return quick if QUICK else full


def at_most(bound: float) -> float:
    """The bound of a time or a ratio that may not be higher."""
    return bound * LENIENCE if QUICK else bound


def soon(bound: float) -> float:
    """The bound of a wait, which is measured by the clock on the wall."""
    return bound * LENIENCE_OF_WAITS if QUICK else bound


def at_least(bound: float) -> float:
    """The bound of a ratio that may not be lower."""
    return bound / LENIENCE if QUICK else bound
