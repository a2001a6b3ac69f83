"""The demo with caches, as it is shown and summed up."""

from io import StringIO

import msgspec
from rich.console import Console

from lab.demo.caches.cache_reports import CacheFrontendReport
from lab.demo.caches.cache_summary import CacheSummary, cache_lines
from lab.demo.caches.cache_view import (
    CacheLines,
    CacheOwnerRow,
    CachePicture,
    CacheScreen,
    draw_caches,
)
from tenure.cli.demo.screen import Event

TOTALS = CacheFrontendReport(
    is_warm=True, reads=1000, hits=900, writes=50, slowest_write_ns=41_000_000
)
PICTURE = CachePicture(
    elapsed=12.0,
    seconds=60.0,
    phase="running",
    owners=(
        CacheOwnerRow(1, "serving", 0.75, 80, 40),
        CacheOwnerRow(2, "killed", 0.25, 20, 10),
    ),
    totals=TOTALS,
    reads_per_second=100.0,
    judged=990,
    stale=0,
)
SUMMARY = CacheSummary(
    reads=12_345,
    hits=12_000,
    stale=0,
    writes=50,
    slowest_write_ms=41.5,
    owner_kills=3,
    moves=4,
    judged=12_345,
    failed=0,
    unknown=1,
    not_written=0,
    slowest_read_ms=99.0,
    loads=345,
    owner_stops=1,
    owner_restarts=2,
    frontend_stops=1,
    slowest_dark_seconds=0.1,
    products=200,
    owners=4,
    frontends=3,
    preset="test",
    seconds=60.0,
)


def drawn(picture: CachePicture, *events: Event) -> str:
    console = Console(file=StringIO(), width=100, height=40)
    with console.capture() as capture:
        console.print(draw_caches(picture, events))
    return capture.get()


def test_owners_reads_and_events_are_on_the_screen() -> None:
    text = drawn(PICTURE, Event(11.0, "killed owner 2 (kill -9)"))
    assert "python -m lab demo caches  12 of 60 s" in text
    [one, two] = [line.split() for line in text.splitlines() if line.split()[:1] in (["1"], ["2"])]
    assert (one, two) == (["1", "serving", "75%", "80", "40"], ["2", "killed", "25%", "20", "10"])
    assert "100 reads/s, 90.0% from memory; 50 writes, the slowest 41 ms" in text
    assert "0 stale reads, in a record of 990" in text
    assert "11 s  killed owner 2" in text
    assert "starting" in drawn(PICTURE._replace(phase="starting"))


def test_without_a_terminal_there_is_a_line_for_each_event_and_now_and_then_one_more() -> None:
    stream = StringIO()
    lines = CacheLines(stream)
    lines.event(None, "starting")
    lines.show(PICTURE._replace(elapsed=4.9))
    lines.show(PICTURE._replace(elapsed=5.0))
    lines.show(PICTURE._replace(elapsed=5.2))
    lines.close()
    first, second = stream.getvalue().splitlines()
    assert first.strip() == "starting"
    assert second.split()[:3] == ["5.0", "s", "100"]


def test_the_last_picture_stays_on_the_screen() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=100, height=40)
    screen = CacheScreen(console)
    screen.event(1.0, "woke frontend 1")
    screen.show(PICTURE)
    screen.close()
    assert isinstance(console.file, StringIO)
    assert "woke frontend 1" in console.file.getvalue()


def test_the_summary_counts_for_people_and_says_whether_all_was_well() -> None:
    lines = list(cache_lines(SUMMARY))
    assert "   12,345  reads in 60 s, at 3 frontends" in lines
    assert "        0  stale reads, in a record of 12,345" in lines
    assert lines[-1] == "No read returned less than what was written before."
    bad = msgspec.structs.replace(SUMMARY, stale=1)
    assert list(cache_lines(bad))[-1].endswith("that must never be.")
    assert (SUMMARY.is_good, bad.is_good) == (True, False)
