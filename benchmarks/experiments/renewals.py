"""Messages that are sent all the time, over real sockets: renewals that change nothing, and first
tables.

The figures are those of the benchmarks `renewal` and `tables`.
"""

import asyncio
from collections.abc import Callable
from statistics import median

from benchmarks import renewal, tables
from benchmarks._manager import allow_many_files, running_manager
from benchmarks._quick import QUICK
from benchmarks._report import Promise, Section, Table, prose

BOUND_US, BOUND_BYTES, BOUND_SECONDS = 40, 200, 0.5
TEXT = """{owners} owners renew what they hold: in short, by the fingerprint of it, as owners do,
and with the whole list, as owners of the first version do. CPU is of the manager's process, kernel
included, for each renewal; one at a time is the dear case, in which each wakes the manager for
itself alone. Below, {lookups:,} lookups ask at once for their first table, of {ranges:,} ranges;
a
client's CPU is from its bytes to the routes that readers find by, and until one key is found."""


def run(tell: Callable[[str], None]) -> Section:
    """Measure, and return a section with both tables."""
    allow_many_files()
    rows, found = [], []
    with running_manager("--preset", "paper") as manager:
        for ranges in renewal.RANGES:
            tell(f"{ranges} ranges each")
            found.append(asyncio.run(renewal.find(manager, ranges)))
    for each in found:
        for how, figures in (("in short", each.short), ("the whole list", each.whole)):
            cpu = [f"{median(of) * 1e6:.0f}" for of in (figures.alone, figures.together)]
            sent = [f"{size:,}" for size in figures.bytes]
            rows.append([f"tenure, {each.ranges:.0f} ranges, {how}", *cpu, *sent])
    tell("first tables")
    with running_manager("--preset", "paper") as manager:
        pool = renewal.make_pool(manager, tables.RANGES // renewal.OWNERS)
        spent, data = asyncio.run(tables.measure(manager, pool))
    taken = [tables.read_first(data) for _ in range(9)]
    reading, finding = (f"{min(each) * 1e3:.2f}" for each in zip(*taken, strict=True))
    head = ["", "CPU, one at a time, µs", f"CPU, {renewal.OWNERS} at once, µs"]
    first = [f"{min(spent):.2f}", f"{len(data):,}", reading, finding]
    return Section(
        title="Renewals, and first tables",
        text=prose(
            TEXT.format(owners=renewal.OWNERS, lookups=tables.LOOKUPS, ranges=tables.RANGES)
        ),
        tables=[
            Table([*head, "asked, bytes", "answered, bytes"], rows),
            Table(
                ["", "manager's CPU, s", "each, bytes", "client's CPU, ms", "one key found, ms"],
                [[f"{tables.LOOKUPS:,} first tables at once", *first]],
            ),
        ],
        promises=[] if QUICK else promises(found, min(spent)),
    )


def promises(found: list[renewal.Found], seconds: float) -> list[Promise]:
    """These are the promises of the full form: the few renewals of the quick one are ten clock
    ticks of CPU.
    """
    shorts = [each.short for each in found]
    cpu = max(median(of) for each in shorts for of in (each.alone, each.together)) * 1e6
    sent = max(size for each in shorts for size in each.bytes)
    return [
        Promise("a renewal in short", f"{cpu:.0f} µs", f"{BOUND_US} µs", cpu <= BOUND_US),
        Promise("its bytes, each way", f"{sent}", f"{BOUND_BYTES}", sent <= BOUND_BYTES),
        Promise(
            f"{tables.LOOKUPS:,} first tables",
            f"{seconds:.2f} s",
            f"{BOUND_SECONDS} s",
            seconds <= BOUND_SECONDS,
        ),
    ]
