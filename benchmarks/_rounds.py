"""Measures small things on a machine that does other things as well.

The compared things are measured in turn, round by round, in one process: what disturbs one disturbs
the other. The figure is the median of the rounds; a ratio is taken of each pair first.
"""

import gc
from collections.abc import Callable, Sequence
from statistics import median
from time import thread_time_ns
from typing import Any

from benchmarks._quick import sized

ROUNDS = sized(41, 21)


def measure(
    loops: dict[str, Callable[[Sequence[Any]], None]],
    arguments: dict[str, Sequence[Any]],
    rounds: int = ROUNDS,
) -> dict[str, list[float]]:
    """Nanoseconds for each argument, in each round, of each loop."""
    found: dict[str, list[float]] = {name: [] for name in loops}
    gc.collect()
    for _ in range(rounds):
        for name, loop in loops.items():
            given = arguments[name]
            began = thread_time_ns()
            loop(given)
            found[name].append((thread_time_ns() - began) / len(given))
    return found


def ratio(of: list[float], to: list[float]) -> float:
    """How many times `to` what is measured takes, in the median of the rounds."""
    return median(a / b for a, b in zip(of, to, strict=True))


def line(what: str, figure: str, bound: str, *, is_kept: bool) -> str:
    """One line of the report."""
    return f"{what:<52} {figure:>12}   bound {bound:<10} {'kept' if is_kept else 'NOT KEPT'}"
