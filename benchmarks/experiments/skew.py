"""Servers with more than twice the mean load, over an hour (PRS, figure 10).

From the benchmark of balance (`benchmarks.balance`, `_balance`): simulated time, the real policy
and the real smoothing of what owners report.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks._pictures import draw_lines
from benchmarks._quick import sized
from benchmarks._report import Picture, Section, Table, prose
from benchmarks.balance import POLICIES, WIDE, figure_10

MINUTES = sized(60, 3)
SHOWN = (0, 1, 2, 5, 10, 30, 59)
TEXT = """{owners} owners, a million keys asked for by Zipf's law with exponent 0.8, reports every
15 s, as in the paper; {minutes} minutes from when the load begins. The mean is 20 % of what a
server bears, so that an owner with more than twice the mean carries more than 40 %, as the paper
shows them. Simulated time, with the real policy; a move takes 5 s. *At best*: owners of a key that
alone is more than twice the mean. `ring` moves points by what is reported,
too, but that only passes a hot key on to another owner."""


def run(tell: Callable[[str], None], minutes: int = MINUTES) -> Section:
    """Measure both policies, side by side, and return the section."""
    with ProcessPoolExecutor(len(POLICIES)) as pool:
        tell(f"{minutes} minutes under {' and '.join(POLICIES)}")
        running = {name: pool.submit(figure_10, name, minutes) for name in POLICIES}
        found = {name: each.result() for name, each in running.items()}
    title = f"Owners above twice the mean load, of {WIDE}"
    return Section(
        title="Owners above twice the mean load",
        text=prose(TEXT.format(owners=WIDE, minutes=minutes)),
        tables=[table(found)],
        pictures=[
            Picture(
                "skew.svg",
                title,
                draw_lines(
                    title,
                    "minutes",
                    "owners",
                    {
                        name: [(float(minute), float(n)) for minute, n in enumerate(counts)]
                        for name, (_, counts) in found.items()
                    },
                ),
            )
        ],
        notes=["PRS shows a few dozen such servers at first, and few at the hour's end."],
    )


def table(found: Mapping[str, tuple[int, Sequence[int]]]) -> Table:
    """How many there are, some minutes after the beginning."""
    [length] = {len(counts) for _, counts in found.values()}
    shown = [minute for minute in SHOWN if minute < length]
    rows = [
        [f"tenure, policy `{name}`", *(f"{counts[minute]}" for minute in shown), f"{best}"]
        for name, (best, counts) in found.items()
    ]
    return Table(["", *(f"minute {minute}" for minute in shown), "at best"], rows)
