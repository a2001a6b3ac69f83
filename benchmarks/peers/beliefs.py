"""What each member believed to hold, and when: gaps, overlaps and moves read from that.

A member asks itself every few milliseconds, and writes a line when the answer has changed, and when
it did not get to ask for a while (it was stopped, or the machine was busy). Times are of the clock
that all processes of a host share.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

PARTITIONS = 64
PAUSE_SECONDS = 0.1
"""A member that has not asked for this long does not count as believing: it did not run."""


class Run(NamedTuple):
    """Equal answers in a row: what was held, from the first to the last of them."""

    held: int
    since: float
    to: float | None = None
    """The end of the run; None while it goes on."""


Member = Sequence[Run]
Span = tuple[float, float]


class BeliefWriter:
    """Writes a line where a run begins, and one where it has ended."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._held = -1
        self._last = 0.0

    def add(self, at: float, held: int) -> None:
        if held != self._held or at - self._last > PAUSE_SECONDS:
            ended = f"- {self._last!r}\n" if self._held >= 0 else ""
            os.write(self._file, f"{ended}+ {at!r} {held:x}\n".encode())
            self._held = held
        self._last = at


def read(path: Path) -> list[Run]:
    """Return what was written so far."""
    found: list[Run] = []
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        match line.split():
            case ["+", at, held] if line.endswith("\n"):
                found.append(Run(int(held, 16), float(at)))
            case ["-", at] if line.endswith("\n"):
                found[-1] = found[-1]._replace(to=float(at))
    return found


def spans(runs: Member, partition: int, end: float) -> list[Span]:
    """Return the times in which a member believed to hold a partition; to the end, if it still did
    when last heard.

    It believed until it was asked again, so that a single answer counts too; but a time in which it
    did not run does not count.
    """
    found: list[Span] = []
    for run, after in zip_longest(runs, runs[1:]):
        if not run.held >> partition & 1:
            continue
        to = end if run.to is None else run.to
        if after is not None and after.since - to <= PAUSE_SECONDS:
            to = after.since
        if found and found[-1][1] == run.since:
            found[-1] = (found[-1][0], to)
        else:
            found.append((run.since, to))
    return found


def without(holders: Iterable[Sequence[Span]], begin: float, end: float) -> float:
    """Seconds between two instants in which nobody held it."""
    return (
        end
        - begin
        - sum(to - since for since, to, count in _counted(holders, begin, end) if count > 0)
    )


def together(holders: Iterable[Sequence[Span]], begin: float, end: float) -> float:
    """Seconds between two instants in which more than one held it."""
    return sum(to - since for since, to, count in _counted(holders, begin, end) if count > 1)


def _counted(
    holders: Iterable[Sequence[Span]], begin: float, end: float
) -> Iterable[tuple[float, float, int]]:
    """Stretches, and how many held it."""
    edges = [(begin, 0), (end, 0)]
    for spans_of_one in holders:
        for since, to in spans_of_one:
            if max(since, begin) < min(to, end):
                edges += [(max(since, begin), 1), (min(to, end), -1)]
    edges.sort()
    count = 0
    for (since, step), (to, _) in pairwise(edges):
        count += step
        yield since, to, count


def holds(runs: Member, partition: int) -> bool:
    """Whether it did when last heard."""
    return bool(runs) and bool(runs[-1].held >> partition & 1)
