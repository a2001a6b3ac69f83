"""The demo on a terminal, live: the key space as a strip of colours, the owners, what happened."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tenure.cli.demo.display import DemoState, OwnerRow

COLOURS = ("cyan", "yellow", "magenta", "green", "blue", "bright_red", "white", "bright_cyan")
STRIP_LINES = 3
MOST_EVENTS = 12
FEWEST_EVENTS = 3
OTHER_LINES = 16
"""The lines of the picture that are not owners or events."""
SERVED, UNSERVED, NOBODYS = "█", "░", "·"
BUSY, BUSY_AT_MEAN, BUSIEST = "▪", 8, 20
"""An owner's part of the load: so many squares for the mean, and no more than there is room for."""
UP = ("serving", "draining")
"""The states in which an owner serves what it has."""


def colour(number: int) -> str:
    """An owner's."""
    return COLOURS[(number - 1) % len(COLOURS)]


class Event(NamedTuple):
    """Something that happened."""

    at: float | None
    text: str


class Screen:
    """A picture that is drawn anew, in place."""

    def __init__(self, console: Console | None = None) -> None:
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._live = Live(
            console=console or Console(highlight=False),
            auto_refresh=False,
            vertical_overflow="crop",
        )
        self._live.start()

    def event(self, at: float | None, text: str) -> None:
        self._events.append(Event(at, text))

    def show(self, picture: DemoState) -> None:
        room = self._live.console.height - OTHER_LINES - len(picture.owners)
        shown = list(self._events)[-max(room, FEWEST_EVENTS) :]
        self._live.update(draw(picture, shown), refresh=True)

    def close(self) -> None:
        """See `Display`. The last picture stays."""
        self._live.stop()


def draw(picture: DemoState, events: Sequence[Event]) -> RenderableType:
    parts: list[RenderableType] = [
        *_title(picture),
        *_strip(picture),
        _owners(picture),
        *_totals(picture),
        Text(),
        *map(event_line, events),
    ]
    return Padding(Group(*parts), (0, 1))


def event_line(event: Event) -> Text:
    """Something that happened, with its time."""
    when = " " * 6 if event.at is None else f"{event.at:4.0f} s"
    return Text.assemble((when, "dim"), "  ", event.text, no_wrap=True, overflow="ellipsis")


def _title(picture: DemoState) -> list[Text]:
    clock = f"{picture.elapsed:.0f} of {picture.seconds:g} s"
    progress = picture.phase if picture.phase != "running" else clock
    leases = f"leases: term {picture.term:g} s, hold {picture.hold:g} s"
    return [
        Text.assemble(("tenure demo", "bold"), f"  {progress}   ", (leases, "dim")),
        Text(picture.manager, no_wrap=True, overflow="crop"),
    ]


def _strip(picture: DemoState) -> list[Text]:
    states = {row.number: row.state for row in picture.owners}
    cells = [_cell(number, states) for number in picture.strip]
    width = len(cells) // STRIP_LINES
    heading = Text.assemble(
        "All keys, by owner    ",
        (f"{SERVED} served   {UNSERVED} the owner is down, its lease still runs", "dim"),
    )
    lines = [
        Text.assemble(*cells[start : start + width], no_wrap=True, overflow="crop")
        for start in range(0, width * STRIP_LINES, width)
    ]
    return [heading, *lines]


def _cell(number: int | None, states: Mapping[int, str]) -> tuple[str, str]:
    if number is None:
        return NOBODYS, "dim"
    return (SERVED if states[number] in UP else UNSERVED), colour(number)


def _owners(picture: DemoState) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("owner")
    table.add_column("", min_width=30)
    for name in ("keys", "ranges", "users", "served/s", "421s"):
        table.add_column(name, justify="right")
    mean = sum(row.served_per_second for row in picture.owners) / len(picture.owners)
    for row in picture.owners:
        is_up = row.state in UP
        state = Text(_state(row), style="" if is_up else "bold red")
        if is_up:
            state.append(_bar(row.served_per_second / (mean or 1.0)), colour(row.number))
        table.add_row(
            Text(f"{SERVED if is_up else UNSERVED} {row.number}", style=colour(row.number)),
            state,
            f"{row.share:.0%}",
            f"{row.ranges}",
            f"{row.users}",
            f"{row.served_per_second:.0f}",
            f"{row.refused:,}",
        )
    return table


def _state(row: OwnerRow) -> str:
    match row.state:
        case "serving" | "starting" | "draining":
            return f"{row.state:<10}"
        case "killed" | "stopped":
            rest = "keys wait" if row.share else "keys moved"
            return f"{row.state} {row.state_seconds:.1f} s ago, {rest}"


def _bar(part: float) -> str:
    return BUSY * min(round(part * BUSY_AT_MEAN), BUSIEST)


def _totals(picture: DemoState) -> list[Text]:
    totals = picture.totals
    what = Text.assemble(
        f"{picture.clients} clients: ",
        (f"{picture.requests_per_second:.0f}", "bold"),
        " requests/s, ",
        (f"{totals.requests:,}", "bold"),
        " in all, ",
        (f"{totals.failed:,}", "bold red" if totals.failed else "bold"),
        " failed, ",
        (f"{totals.rerouted:,}", "bold"),
        " rerouted",
    )
    lost = Text.assemble(
        (f"{totals.losses_signalled:,}", "bold"),
        " losses signalled, ",
        (f"{totals.keys_republished:,}", "bold"),
        " keys republished",
    )
    twice = Text.assemble(
        (f"{picture.double_owner:,}", "bold red" if picture.double_owner else "bold green"),
        " keys served by two owners at once, ",
        (f"in a record of {picture.served:,} operations", "dim"),
    )
    return [what, lost, twice]
