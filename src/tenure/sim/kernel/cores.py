"""Running many seeds one after another, or on many cores, and reporting progress."""

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from os import cpu_count
from typing import Any, TypeVar

W = TypeVar("W")
R = TypeVar("R")
LOOK_SECONDS = 0.2
OBJECTS = 50_000
"""How many more objects than before there are when a worker looks for garbage. Few of the many
objects that a world makes are garbage in cycles, so looking for it often is in vain.
"""

Progress = Callable[[int], None]
"""A function that is called now and then with the nanoseconds that all seeds together have
simulated so far.
"""
RunSeed = Callable[[W, Progress], R]
"""Simulates one seed, and reports its progress. It must be a function of a module, so that another
process can find it by name.
"""


def no_progress(simulated_ns: int) -> None: ...


def run_all(
    run: RunSeed[W, R], works: Sequence[W], workers: int = 0, tell: Progress = no_progress
) -> Iterator[R]:
    """The outcome of each piece of work, in order; on all cores unless told otherwise."""
    workers = min(workers or cpu_count() or 1, len(works))
    if workers > 1:
        yield from _on_cores(run, works, workers, tell)
        return
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS)
    try:
        yield from _one_by_one(run, works, tell)
    finally:
        gc.set_threshold(*usual)


def _one_by_one(run: RunSeed[W, R], works: Sequence[W], tell: Progress) -> Iterator[R]:
    before, last = 0, 0

    def told(now: int) -> None:
        nonlocal last
        last = now
        tell(before + now)

    for work in works:
        yield run(work, told)
        before, last = before + last, 0


def _on_cores(run: RunSeed[W, R], works: Sequence[W], workers: int, tell: Progress) -> Iterator[R]:
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
    simulated = context.Value("q", 0)
    with context.Pool(workers, _begin, (simulated,)) as pool:
        outcomes = pool.imap(_run_here, [(run, work) for work in works])
        for _ in works:
            while True:
                tell(simulated.value)
                try:
                    outcome = outcomes.next(timeout=LOOK_SECONDS)
                except multiprocessing.TimeoutError:
                    continue
                break
            yield outcome


_SHARED: dict[str, Any] = {}


def _begin(simulated: Any) -> None:
    """Prepare a worker to ignore interrupts: they are for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(OBJECTS)
    _SHARED["simulated"] = simulated


def _run_here(work: tuple[RunSeed[Any, Any], Any]) -> Any:
    run, what = work
    told = 0

    def tell(now: int) -> None:
        nonlocal told
        simulated = _SHARED["simulated"]
        with simulated.get_lock():
            simulated.value += now - told
        told = now

    return run(what, tell)
