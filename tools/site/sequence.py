"""Draws a sequence diagram from a text, as an SVG for light and dark.

The first line of the text is its title, the second names who takes part. Then each line is one
step, from top to bottom: `A > B: what A tells B`, `A - what A does`, or `= what is so from now on`.
An arrow with `x>` does not arrive.
"""

import re
import textwrap
from html import escape
from typing import NamedTuple

WIDTH, COLUMN_TOP, FIRST, MARGIN = 860, 52, 112, 90
LINE_HEIGHT, STEP = 15, 16
LETTERS = {"arrow": 6.4, "note": 6.2}
"""How wide a letter is at most: text is wrapped by it, since there is no browser here to ask."""
STEPS = re.compile(
    r"(?P<who>[\w ]+?) (?:(?P<arrow>x?>) (?P<whom>[\w ]+): (?P<said>.+)|- (?P<does>.+))"
)
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#5b6470}.t{font-weight:600;font-size:15px}"
    ".w{font-weight:600;fill:#fff}.b{fill:#3f51b5}.l{stroke:#9aa3ad;stroke-dasharray:3 4}"
    ".a{stroke:#3f51b5;stroke-width:1.5;fill:none}.h{fill:#3f51b5}.n{fill:#9aa3ad;fill-opacity:.18}"
    ".x{stroke:#c62828;stroke-width:2}.s{font-style:italic}"
    "@media(prefers-color-scheme:dark){text{fill:#aeb6bf}.a{stroke:#9fa8da}.h{fill:#9fa8da}}"
)


class Drawn(NamedTuple):
    """A piece of the picture, and how far down it reaches."""

    parts: list[str]
    bottom: float


def draw(text: str) -> str:
    """The SVG. Raises ValueError for a line that is not a step between those who take part."""
    title, names, *steps = [line for line in text.splitlines() if line.strip()]
    who = [name.strip() for name in names.split(",")]
    gap = (WIDTH - 2 * MARGIN) / (len(who) - 1)
    at = {name: MARGIN + gap * number for number, name in enumerate(who)}
    parts, y = list[str](), float(FIRST)
    for line in steps:
        drawn = _step(line, at, y)
        parts += drawn.parts
        y = drawn.bottom + STEP
    heads = []
    for name, x in at.items():
        heads.append(f'<line class="l" x1="{x:g}" y1="{COLUMN_TOP}" x2="{x:g}" y2="{y:g}"/>')
        heads.append(
            f'<rect class="b" x="{x - 62:g}" y="{COLUMN_TOP - 16}" width="124" height="28" rx="5"/>'
        )
        heads.append(_text(x, COLUMN_TOP + 3, name, "w", "middle"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            _text(WIDTH / 2, 20, title, "t", "middle"),
            *heads,
            *parts,
            "</svg>",
            "",
        ]
    )


def _step(line: str, at: dict[str, float], y: float) -> Drawn:
    if line.startswith("= "):
        lines = textwrap.wrap(line[2:], int(WIDTH / LETTERS["note"]) - 8)
        return Drawn(_lines(WIDTH / 2, y, lines, "s", "middle"), y + LINE_HEIGHT * (len(lines) - 1))
    found = STEPS.fullmatch(line)
    if not found or not {found["who"], found["whom"] or found["who"]} <= set(at):
        raise ValueError(f"not a step between {', '.join(at)}: {line}")
    if found["does"]:
        return _note(at[found["who"]], found["does"], y)
    return _arrow(
        at[found["who"]], at[found["whom"]], found["said"], y, arrives=found["arrow"] == ">"
    )


def _note(x: float, said: str, y: float) -> Drawn:
    lines = textwrap.wrap(said, 26)
    width = max(map(len, lines)) * LETTERS["note"] + 18
    left = min(max(x - width / 2, 4), WIDTH - width - 4)
    height = LINE_HEIGHT * len(lines) + 8
    box = (
        f'<rect class="n" x="{left:g}" y="{y - 14:g}" width="{width:g}" height="{height}" rx="4"/>'
    )
    words = _lines(left + width / 2, y, lines, "", "middle")
    return Drawn([box, *words], y + height - 16)


def _arrow(start: float, end: float, said: str, y: float, *, arrives: bool) -> Drawn:
    way = 1 if end > start else -1
    lines = textwrap.wrap(said, int((abs(end - start) - 24) / LETTERS["arrow"]))
    down = y + LINE_HEIGHT * (len(lines) - 1) + 7
    tip = end - 2 * way if arrives else start + 0.8 * (end - start)
    parts = _lines((start + end) / 2, y, lines, "", "middle")
    parts.append(f'<path class="a" d="M{start:g} {down:g}H{tip:g}"/>')
    if arrives:
        back = tip - 9 * way
        parts.append(
            f'<path class="h" d="M{tip:g} {down:g}L{back:g} {down - 4.5:g}V{down + 4.5:g}Z"/>'
        )
    else:
        cross = f"M{tip - 5:g} {down - 5:g}l10 10m0 -10l-10 10"
        parts.append(f'<path class="x" d="{cross}"/>')
    return Drawn(parts, down + 4)


def _lines(x: float, y: float, lines: list[str], kind: str, anchor: str) -> list[str]:
    return [_text(x, y + LINE_HEIGHT * n, line, kind, anchor) for n, line in enumerate(lines)]


def _text(x: float, y: float, said: str, kind: str, anchor: str) -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(said)}</text>'
