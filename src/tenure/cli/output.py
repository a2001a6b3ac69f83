"""Output: tables for people on a terminal, lines with tabs for programs, errors as one paragraph.

Names and addresses come from other processes. They are shown with their control characters escaped,
so that an owner cannot steer the terminal of whoever lists the owners.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tenure.cli.waiting import without_line
from tenure.observe.events import printable

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLE = "Example:\n\n  tenure {}"
"""The end of a command's help."""


def say(text: str) -> None:
    """A line for whoever started the command."""
    put(printable(text))


def put(text: str) -> None:
    """A text as it is, such as JSON, of which other processes may have written what it quotes:
    characters that could steer a terminal stand there as JSON escapes them.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\n\t" else json.dumps(c)[1:-1] for c in text)
    with without_line():
        print(text, flush=True)


def remark(text: str) -> None:
    """A line beside what was asked for, on standard error."""
    with without_line():
        print(printable(text), file=sys.stderr)


def complain(text: str) -> None:
    """An error, in one paragraph."""
    remark(f"tenure: {text}")


def counted(count: int, noun: str) -> str:
    """A number of things, as a sentence has it."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def clear() -> None:
    """Begin again at the top of the terminal, if there is one."""
    if sys.stdout.isatty():
        with without_line():
            print("\x1b[H\x1b[2J", end="")


def show(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    can_go: Sequence[str] = (),
) -> None:
    """A table: drawn on a terminal, a line of names and then tabbed lines elsewhere.

    Columns in `can_go` are left out, in this order, while the terminal is too narrow for the rest.
    """
    lines = [[printable(str(cell)) for cell in row] for row in rows]
    with without_line():
        if not sys.stdout.isatty():
            for line in [columns, *lines]:
                print("\t".join(line))
        elif lines:
            _draw(columns, lines, can_go)
        else:
            print(empty)


def _draw(columns: Sequence[str], lines: Sequence[Sequence[str]], can_go: Sequence[str]) -> None:
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    unlimited = console.options.update(width=sys.maxsize)
    left_out = 0
    table = _table(columns, lines, ())
    while Measurement.get(console, unlimited, table).maximum > console.width and left_out < len(
        can_go
    ):
        left_out += 1
        table = _table(columns, lines, can_go[:left_out])
    console.print(table)


def _table(
    columns: Sequence[str], lines: Sequence[Sequence[str]], left_out: Sequence[str]
) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    kept = [n for n, column in enumerate(columns) if column not in left_out]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for n in kept:
        table.add_column(columns[n], overflow="fold")
    for line in lines:
        table.add_row(*(Text(line[n]) for n in kept))  # Text, because names may look like markup
    return table
