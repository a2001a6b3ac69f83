"""Messages, state and bursts of seven algorithms (Volume Leases, figures 5 to 11).

`python -m lab trace` replays four months of reads and writes, drawn to be as the paper says of its
own (which is lost), by the paper's algorithms; two of them are those of our caches.
"""

import os
from collections.abc import Callable

from benchmarks._quick import QUICK, sized
from benchmarks._report import Picture, Section, Table, prose
from lab.trace.drawing import draw_figure
from lab.trace.figures import FIGURES, Cost, Run, Workload, costs_of, savings
from lab.trace.workload import PAPER, Trace, draw

SCALE = sized(100, 2) / 100
SEED = 1
CHOSEN = tuple(FIGURES) if not QUICK else (5, 6, 9)
TEXT = """A trace drawn to be as the paper describes its own, at {scale:g} times its size: reads,
writes, clients, files and servers of four months. Delay is volume leases with delayed
invalidations, which our caches use. *Saved* is how many messages less than object leases are sent
where a write waits for at most so long; *stale* is how many reads of Poll are."""
SAVED = {10.0: ("32 %", "39 %"), 100.0: ("30 %", "40 %")}
"""Volume leases', and with delayed invalidations (5.1)."""
STALE = {1e5: "1 %", 1e6: "5 %"}


class Drawing:
    """Draws the trace; sent to other processes."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, workload: Workload) -> Trace:
        size = PAPER.scaled(self.scale)
        if isinstance(workload, float):
            return draw(SEED, size, multiplier=workload)
        return draw(SEED, size, bursty=workload == "bursty")


def run(tell: Callable[[str], None], scale: float = SCALE) -> Section:
    """All figures, and what the paper says of them."""
    figures = [FIGURES[number] for number in CHOSEN]
    runs = [each for figure in figures for each in figure.runs()]

    def told(done: int, of: int) -> None:
        tell(f"{done} of {of} replays")

    costs = costs_of(runs, Drawing(scale), os.cpu_count() or 1, told)
    pictures = [
        Picture(
            f"volumes-{each.number}.svg",
            f"Figure {each.number}: {each.title}",
            draw_figure(each.title, each.x_name, each.y_name, each.curves(costs)),
        )
        for each in figures
    ]
    return Section(
        title="Volume leases: messages, state and bursts",
        text=prose(TEXT.format(scale=scale)),
        tables=[saved(costs), stale(costs)],
        pictures=pictures,
    )


def saved(costs: dict[Run, Cost]) -> Table:
    """Beside what the paper says."""
    head = ["", "saved by volume leases", "the paper", "saved by delay", "the paper"]
    rows = []
    for each in savings(costs):
        volume, delayed = SAVED[each.write_delay]
        wait = f"tenure's trace, a write waits {each.write_delay:g} s"
        rows.append([wait, f"{each.volume:.0%}", volume, f"{each.delayed:.0%}", delayed])
    return Table(head, rows)


def stale(costs: dict[Run, Cost]) -> Table:
    """Compare the stale reads of Poll with those that the paper reports."""
    found = {
        run.x: cost.stale
        for run, cost in costs.items()
        if run.setting.name == "Poll(t)" and run.workload == "default"
    }
    rows = [
        [f"Poll, timeout {timeout:,.0f} s", f"{found[timeout]:.1%}", paper]
        for timeout, paper in STALE.items()
    ]
    return Table(["", "stale reads", "the paper"], rows)
