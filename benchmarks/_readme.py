"""The table in the README: read from the sections of `RESULTS.md`, never written by hand.

It stands between two comments. It has the figures that decide a choice, from full measurements.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks._report import Measured, Table

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- measured: written by `make bench` -->", "<!-- end of what was measured -->"
NEEDED = ("check", "changes", "stopped", "cut")
ROWS = (
    ("tenure", "tenure", "tenure: `check`"),
    ("tenure, nobody sees the process end", "tenure", "tenure: `check`"),
    ("kazoo SetPartitioner, time_boundary 1 s", "kazoo SetPartitioner", "kazoo: `Lock.contenders`"),
    ("redis-py Lock", "redis-py Lock", "redis-py: `Lock.owned`"),
    ("etcd lease", "etcd lease", "etcd: range of the key"),
    ("PostgreSQL advisory lock", "PostgreSQL advisory lock", "PostgreSQL: `SELECT 1`"),
)
"""The names of the rows: where members come and go, elsewhere, and where a check is measured."""
MUCH_LOAD = 5.0
"""On a machine with two cores, the peers and their members alone cause this much load."""
HEAD = [
    "",
    "a sure check, µs",
    "no owner after a join, s",
    "after a clean leave, s",
    "after `kill -9`, s",
    "two owners: stopped and woken, ms",
    "two owners: cut off, ms",
]


def block(measured: Sequence[Measured]) -> str | None:
    """The text between the comments; None if something was not measured in full."""
    found = {each.name: each for each in measured if each.form == "full"}
    if not set(NEEDED) <= set(found):
        return None
    tables = {name: found[name].section.tables[0] for name in NEEDED}
    rows = []
    for change, title, check in ROWS:
        asked, moved = _row(tables["check"], check), _row(tables["changes"], change)
        stopped, cut = _row(tables["stopped"], title), _row(tables["cut"], title)
        if asked and moved and stopped and cut:
            gaps = [moved[1], moved[4], moved[7]]
            rows.append([change, f"{float(asked[1]):,.0f}", *gaps, stopped[2], cut[3]])
    dates = sorted({found[name].when[:10] for name in NEEDED})
    when = dates[0] if len(dates) == 1 else f"between {dates[0]} and {dates[-1]}"
    loads = [float(load) for name in NEEDED for load in found[name].load.split(" to ")]
    busy = " on a machine with other work to do" if max(loads) > MUCH_LOAD else ""
    words = (
        f"Measured {when}{busy} (load {min(loads):.0f} "
        f"to {max(loads):.0f}): the longest that one of 64 partitions had no owner among eight "
        "processes, and the longest that two owned one; every term was 13 s. PostgreSQL never "
        "takes a lock from a process that is stopped or cut off, so its keys wait. [All "
        "results](benchmarks/RESULTS.md), including those in which others are ahead; `make bench` "
        "measures them again."
    )
    return "\n".join([BEGIN, "", *Table(HEAD, rows).lines(), words, "", END])


def _row(table: Table, title: str) -> list[str] | None:
    return next((row for row in table.rows if row[0].startswith(title)), None)


def written(text: str, block: str) -> str:
    """The README with this block."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + block + after
