"""`python -m lab trace`: the experiments of the Volume Leases paper, as tables and pictures."""

import json as json_text
import os
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lab.trace.drawing import draw_figure
from lab.trace.figures import FIGURES, Cost, Draw, Figure, Run, Workload, costs_of, savings
from lab.trace.recorded import read_trace
from lab.trace.workload import PAPER, Trace, draw
from tenure.cli.output import put, say, show
from tenure.cli.waiting import WaitingLine
from tenure.errors import ConfigurationError

FROM_A_FILE = (5, 6, 7, 8, 9)
"""A recorded trace has the writes that it has: the others vary them."""
MOST_SCALE = 10.0


def trace(
    *,
    figure: list[int] | None = None,
    seed: int = 1,
    scale: float = 1.0,
    file: Path | None = None,
    out: Path | None = None,
    workers: int = 0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Replay four months of reads and writes against the paper's seven algorithms.

    Parameters
    ----------
    figure
        A figure of the paper, from 5 to 11; may be given several times. All by default.
    seed
        The seed of the workload; 1 by default.
    scale
        Multiply the paper's reads, writes, files and servers by this number; 1 by default.
    file
        Replay this trace instead. Each line is SECONDS read CLIENT SERVER FILE, or SECONDS write
        SERVER FILE.
    out
        Draw each figure into this directory, as an SVG.
    workers
        How many cores to use; by default all of them.
    json
        Print everything as one JSON object.
    """
    figures = [_figure(number) for number in figure or (FROM_A_FILE if file else FIGURES)]
    _check(figures, scale, file, workers)
    draw_one = partial(_recorded, file) if file else partial(_drawn, seed, scale)
    runs = [run for each in figures for run in each.runs()]
    costs = _replayed(runs, draw_one, workers or os.cpu_count() or 1)
    if out is not None:
        _draw_all(figures, costs, out)
    if json:
        put(json_text.dumps({str(each.number): each.curves(costs) for each in figures}))
        return 0
    for each in figures:
        _print(each, costs)
    if {5, 6} & {each.number for each in figures}:
        _summarise(costs)
    return 0


def _replayed(runs: list[Run], draw_one: Draw, workers: int) -> dict[Run, Cost]:
    said = "drawing the reads and writes"

    def tell(done: int, of: int) -> None:
        nonlocal said
        said = f"{done} of {of} replays"

    with WaitingLine(lambda: said):
        return costs_of(runs, draw_one, workers, tell)


def _figure(number: int) -> Figure:
    if number not in FIGURES:
        raise ConfigurationError(f"--figure {number}: the paper's are 5 to 11")
    return FIGURES[number]


def _check(figures: list[Figure], scale: float, file: Path | None, workers: int) -> None:
    if not 0 < scale <= MOST_SCALE:
        raise ConfigurationError(f"--scale {scale:g}: above 0 and at most {MOST_SCALE:g}")
    if workers < 0:
        raise ConfigurationError(f"--workers {workers}: 0 for all cores, or how many")
    if file is None:
        return
    for each in figures:
        if each.number not in FROM_A_FILE:
            raise ConfigurationError(
                f"--figure {each.number} changes how files are written, and a recorded trace has "
                "the writes that it has: leave out --file or this figure"
            )
    read_trace(file)  # a line that cannot be read is named before anything is begun


def _drawn(seed: int, scale: float, workload: Workload) -> Trace:
    size = PAPER.scaled(scale)
    if isinstance(workload, float):
        return draw(seed, size, multiplier=workload)
    return draw(seed, size, bursty=workload == "bursty")


def _recorded(file: Path, _: Workload) -> Trace:
    return read_trace(file)


def _print(figure: Figure, costs: dict[Run, Cost]) -> None:
    say("")
    say(f"Figure {figure.number}: {figure.title}")
    curves = figure.curves(costs)
    xs = sorted({x for points in curves.values() for x, _ in points})
    if figure.read == "periods":
        xs = [x for x in xs if x in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
    rows = [
        (name, *(_cell(dict(points), x, figure.read) for x in xs))
        for name, points in curves.items()
    ]
    show((figure.x_name, *(f"{x:g}" for x in xs)), rows, empty="nothing was replayed")


def _cell(points: dict[float, float], x: float, read: str) -> str:
    if read == "periods":  # of all loads at least as high
        return f"{max((y for at, y in points.items() if at >= x), default=0):,.0f}"
    return f"{points[x]:,.0f}" if x in points else ""


def _summarise(costs: dict[Run, Cost]) -> None:
    try:
        found = savings(costs)
    except (KeyError, ValueError):  # a figure that was not asked for has one of the runs
        return
    say("")
    say("Messages saved beside object leases, where a write waits at most so long")
    paper = {10.0: ("32 %", "39 %"), 100.0: ("30 %", "40 %")}
    rows = [
        (
            f"{each.write_delay:g} s",
            f"{each.volume:.0%}",
            f"{each.delayed:.0%}",
            *paper[each.write_delay],
        )
        for each in found
    ]
    show(("delay", "volume", "delayed", "volume (paper)", "delayed (paper)"), rows, empty="")
    stale = {
        run.x: cost.stale
        for run, cost in costs.items()
        if run.setting.name == "Poll(t)" and run.workload == "default"
    }
    if stale:
        say("")
        say("Stale reads under Poll(t); the paper has 1 % at 100,000 s and 5 % at 1,000,000 s")
        show(("timeout", "stale"), [(f"{x:g}", f"{stale[x]:.1%}") for x in (1e5, 1e6)], empty="")


def _draw_all(figures: list[Figure], costs: dict[Run, Cost], out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for each in figures:
            picture = draw_figure(
                f"Figure {each.number}: {each.title}",
                each.x_name,
                each.y_name,
                each.curves(costs),
            )
            (out / f"figure-{each.number}.svg").write_text(picture, "utf-8")
    except OSError as error:
        raise ConfigurationError(f"--out {out}: {error}; name a directory to write to") from error
