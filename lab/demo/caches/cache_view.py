"""The demo with caches, live in a terminal or as lines."""

from collections import deque
from typing import NamedTuple, Protocol, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lab.demo.caches.cache_reports import CacheFrontendReport
from tenure.cli.demo.display import OwnerState
from tenure.cli.demo.screen import Event, colour, event_line

STATUS_SECONDS = 5.0
EVENTS_SHOWN = 12


class CacheOwnerRow(NamedTuple):
    """An owner, as it last reported."""

    number: int
    state: OwnerState
    share: float
    loads: int
    stores: int


class CachePicture(NamedTuple):
    """All that is shown, at one moment."""

    elapsed: float
    seconds: float
    phase: str
    owners: tuple[CacheOwnerRow, ...]
    totals: CacheFrontendReport
    reads_per_second: float
    judged: int
    stale: int


class CacheDisplay(Protocol):
    """A way to show it."""

    def event(self, at: float | None, text: str) -> None:
        """Something happened, so many seconds after the beginning."""
        ...

    def show(self, picture: CachePicture) -> None:
        """How it is now. Called several times a second."""
        ...

    def close(self) -> None:
        """End the display."""
        ...


class CacheLines:
    """Plain lines on a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_status = STATUS_SECONDS

    def event(self, at: float | None, text: str) -> None:
        when = " " * 8 if at is None else f"{at:6.1f} s"
        self._stream.write(f"{when}  {text}\n")
        self._stream.flush()

    def show(self, picture: CachePicture) -> None:
        if picture.elapsed >= self._next_status:
            self._next_status += STATUS_SECONDS
            self.event(picture.elapsed, cache_status(picture))

    def close(self) -> None:
        self._stream.flush()


def cache_status(picture: CachePicture) -> str:
    """How it goes, in a line."""
    totals = picture.totals
    part = totals.hits / (totals.reads or 1)
    return (
        f"{picture.reads_per_second:.0f} reads/s, {part:.1%} from memory; {totals.writes:,} "
        f"writes, the slowest {totals.slowest_write_ns / 1e6:.0f} ms; failed {totals.failed:,}; "
        f"stale {picture.stale:,} of {picture.judged:,} judged"
    )


class CacheScreen:
    """A picture that is drawn anew, in place."""

    def __init__(self, console: Console | None = None) -> None:
        self._events: deque[Event] = deque(maxlen=EVENTS_SHOWN)
        self._live = Live(
            console=console or Console(highlight=False),
            auto_refresh=False,
            vertical_overflow="crop",
        )
        self._live.start()

    def event(self, at: float | None, text: str) -> None:
        self._events.append(Event(at, text))

    def show(self, picture: CachePicture) -> None:
        self._live.update(draw_caches(picture, tuple(self._events)), refresh=True)

    def close(self) -> None:
        """See `CacheDisplay`. The last picture stays."""
        self._live.stop()


def draw_caches(picture: CachePicture, events: tuple[Event, ...]) -> RenderableType:
    clock = f"{picture.elapsed:.0f} of {picture.seconds:g} s"
    progress = clock if picture.phase == "running" else picture.phase
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("owner", ""):
        table.add_column(name)
    for name in ("keys", "asked for", "written"):
        table.add_column(name, justify="right")
    for row in picture.owners:
        is_up = row.state in ("serving", "draining")
        table.add_row(
            Text(f"{row.number}", style=colour(row.number)),
            Text(row.state, style="" if is_up else "bold red"),
            f"{row.share:.0%}",
            f"{row.loads:,}",
            f"{row.stores:,}",
        )
    stale = Text.assemble(
        (f"{picture.stale:,}", "bold red" if picture.stale else "bold green"),
        " stale reads, ",
        (f"in a record of {picture.judged:,}", "dim"),
    )
    parts: list[RenderableType] = [
        Text.assemble(("python -m lab demo caches", "bold"), f"  {progress}"),
        table,
        Text(cache_status(picture), no_wrap=True, overflow="ellipsis"),
        stale,
        Text(),
        *map(event_line, events),
    ]
    return Padding(Group(*parts), (0, 1))
