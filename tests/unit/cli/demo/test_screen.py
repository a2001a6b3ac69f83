"""The demo on a terminal: what can be read off the screen."""

from io import StringIO

from rich.console import Console

from tenure.cli.demo.display import DemoState
from tenure.cli.demo.screen import BUSIEST, BUSY_AT_MEAN, FEWEST_EVENTS, Event, Screen, draw
from tests.unit.cli.demo.pictures import picture, row


def drawn(shown: DemoState, *events: Event, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width, height=40)
    with console.capture() as capture:
        console.print(draw(shown, events))
    return capture.get()


def test_keys_are_shown_with_their_owner_up_down_or_missing() -> None:
    lines = [line.strip() for line in drawn(picture(3)).splitlines()]
    assert lines.count("█░·█░·") == 3


def test_owners_are_shown_with_what_became_of_them() -> None:
    text = drawn(picture(3, row(1), row(2, "killed"), row(3, "stopped", 0.0)))
    assert "█ 1    serving" in text
    assert "░ 2    killed 0.7 s ago, keys wait" in text
    assert "░ 3    stopped 0.7 s ago, keys moved" in text


def test_what_an_owner_serves_is_a_bar_beside_what_others_do() -> None:
    rows = row(1)._replace(served_per_second=30.0), row(2)._replace(served_per_second=10.0)
    text = drawn(picture(3, *rows, row(3, "draining"), row(4, "killed")))
    lines = {line.split()[1]: line.count("▪") for line in text.splitlines() if "64" in line}
    mean = (30.0 + 10.0 + 99.7 + 99.7) / 4
    assert lines == {
        "1": round(30 / mean * BUSY_AT_MEAN),
        "2": round(10 / mean * BUSY_AT_MEAN),
        "3": round(99.7 / mean * BUSY_AT_MEAN),
        "4": 0,
    }
    assert "█ 3    draining" in text, "it serves until everything is handed over"


def test_a_bar_ends_where_there_is_no_more_room() -> None:
    rows = [row(number)._replace(served_per_second=0.0) for number in range(2, 9)]
    lines = drawn(picture(3, row(1), *rows)).splitlines()
    bars = [line.count("▪") for line in lines if "64" in line]
    assert bars == [BUSIEST, 0, 0, 0, 0, 0, 0, 0]
    assert len({len(line.rstrip()) for line in lines if "64" in line}) == 1


def test_totals_and_time_are_shown() -> None:
    text = drawn(picture(3.2, double_owner=2))
    assert "leases: term 1.2 s, hold 1.3 s" in text
    assert "http://127.0.0.1:40000" in text
    assert "301 requests/s, 1,500 in all, 0 failed, 60 rerouted" in text
    assert "6 losses signalled, 1,070 keys republished" in text
    assert "2 keys served by two owners at once" in text


def test_all_of_it_fits_into_80_columns() -> None:
    rows = row(1), row(2, "killed"), row(3, "stopped", 0.0), row(4, "draining")
    busy = [each._replace(served_per_second=n * 9999.0) for n, each in enumerate(rows)]
    shown = picture(3599.9, *busy)._replace(
        manager="dashboard: http://127.0.0.1:38269 (manager-1)", requests_per_second=12_345.6
    )
    event = Event(3599.9, "killed owner 2 (kill -9)")
    wide = [line.rstrip() for line in drawn(shown, event, width=200).splitlines()]
    assert [line.rstrip() for line in drawn(shown, event, width=80).splitlines()] == wide


def test_events_are_shown_with_their_time() -> None:
    text = drawn(picture(3), Event(None, "starting"), Event(2.4, "killed owner 2"))
    assert "starting" in text
    assert "2 s  killed owner 2" in text


def test_a_low_terminal_shows_the_newest_events_and_never_none() -> None:
    output = StringIO()
    screen = Screen(Console(file=output, width=100, height=12, force_terminal=True))
    for number in range(5):
        screen.event(float(number), f"event {number}")
    screen.show(picture(3))
    screen.close()
    shown = [number for number in range(5) if f"event {number}" in output.getvalue()]
    assert shown == list(range(5))[-FEWEST_EVENTS:]
