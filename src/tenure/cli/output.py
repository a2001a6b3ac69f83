"""Output: tables for people on a terminal, lines with tabs for programs, errors as one paragraph.

Names and addresses come from other processes. They are shown with their control characters escaped,
so that an owner cannot steer the terminal of whoever lists the owners.
"""

import sys
from collections.abc import Iterable, Sequence

from tenure.observe.events import printable


def say(text: str) -> None:
    """A line for whoever started the command."""
    print(printable(text), flush=True)


def complain(text: str) -> None:
    """An error, in one paragraph."""
    print(f"tenure: {printable(text)}", file=sys.stderr)


def show(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table: drawn on a terminal, a line of names and then tabbed lines elsewhere."""
    lines = [[printable(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [columns, *lines]:
            print("\t".join(line))
    elif lines:
        _draw(columns, lines)
    else:
        print(empty)


def _draw(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))  # Text, for names may look like markup
    Console().print(table)
