"""`python -m tools.site.pictures FOLDER [--demo]`: draw what the documents show.

Every text in the folder becomes a diagram beside it. `top.json`, which `tenure top --json --once`
printed beside `make busy`, becomes the screen on which `tenure top` would show it today. With
`--demo`, the demo runs for some seconds, and its screen, with an owner that is down, becomes
`demo.svg`.
"""

import io
import re
import sys
import time
from pathlib import Path

import msgspec
from rich.console import Console, RenderableType

from tenure.cli.demo.display import DemoState
from tenure.cli.demo.run import run
from tenure.cli.demo.screen import Event, draw
from tenure.cli.demo.service import DemoSettings
from tenure.cli.top import Top
from tenure.cli.top import picture as drawn_top
from tools.site import sequence

SECONDS = 20.0
COLUMNS = 86
LINES = 30
EVENTS = 8
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich lets the picture load its font from elsewhere."""


class Camera:
    """A display of the demo that keeps every moment together with what had happened until then."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.moments: list[tuple[DemoState, tuple[Event, ...]]] = []

    def event(self, at: float | None, text: str) -> None:
        """See `Display`."""
        self.events.append(Event(at, text))

    def show(self, picture: DemoState) -> None:
        """See `Display`."""
        self.moments.append((picture, tuple(self.events[-EVENTS:])))

    def close(self) -> None:
        """See `Display`."""


def is_telling(picture: DemoState) -> bool:
    """Whether it shows what the demo is about: an owner is down."""
    states = [row.state for row in picture.owners]
    return picture.phase == "running" and ("killed" in states or "stopped" in states)


def demo_screen() -> str:
    """The screen of the demo while an owner is down."""
    camera = Camera()
    run(DemoSettings(seconds=SECONDS, owners=4, frontends=3, preset="test"), camera)
    moments = [each for each in camera.moments if is_telling(each[0])]
    picture, events = (moments or camera.moments)[-1]
    return screen(draw(picture, events), "demo")


def top_screen(recorded: bytes) -> str:
    """A look that `tenure top --json --once` printed, as `tenure top` draws it. Times are UTC."""
    seen = msgspec.json.decode(recorded, type=Top)
    events = (
        msgspec.structs.replace(each, at=each.at - time.localtime(each.at).tm_gmtoff)
        for each in seen.events
    )
    shown = msgspec.structs.replace(seen, events=tuple(events))
    return screen(drawn_top(shown, "", COLUMNS, LINES), "top")


def screen(drawn: RenderableType, name: str) -> str:
    """A terminal as an SVG that needs nothing from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print(drawn)
    return FONT.sub("", console.export_svg(title=f"tenure {name}", unique_id=name))


def main() -> None:
    """Draw."""
    folder = Path(sys.argv[1])
    for each in sorted(folder.glob("*.txt")):
        each.with_suffix(".svg").write_text(sequence.draw(each.read_text("utf-8")), "utf-8")
    recorded = (folder / "top.json").read_bytes()
    (folder / "top.svg").write_text(top_screen(recorded), "utf-8")
    if "--demo" in sys.argv[2:]:
        (folder / "demo.svg").write_text(demo_screen(), "utf-8")


if __name__ == "__main__":
    main()
