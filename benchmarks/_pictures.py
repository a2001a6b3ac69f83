"""Bars over a logarithmic axis, as an SVG: one for each system, in groups.

Curves are drawn by `tenure.sim.trace.drawing`, as in `tenure trace`.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tenure.sim.trace.drawing import COLOURS, Axis

WIDTH, LEFT, RIGHT, BAR, GAP = 820, 270, 110, 18, 14


class Bar(NamedTuple):
    """A bar, and what is written at its end. None for one without a length."""

    name: str
    value: float | None
    label: str


class Group(NamedTuple):
    """Bars under a heading."""

    name: str
    bars: Sequence[Bar]


def draw_bars(title: str, axis_name: str, groups: Sequence[Group]) -> str:
    """The picture, as the text of an SVG file. What is 0 has no bar, and its label."""
    values = [bar.value for group in groups for bar in group.bars if bar.value]
    axis = Axis(values, LEFT, WIDTH - RIGHT)
    parts: list[str] = []
    names: list[str] = []
    height = 50
    for group in groups:
        parts.append(_text(12, height + 13, group.name, weight="bold"))
        height += 20
        for bar in group.bars:
            if bar.name not in names:
                names.append(bar.name)
            colour = COLOURS[names.index(bar.name) % len(COLOURS)]
            end = LEFT
            if bar.value:
                end = round(max(axis.place(bar.value), LEFT + 1))
                parts.append(
                    f'<rect x="{LEFT}" y="{height}" width="{end - LEFT}" height="{BAR - 4}" '
                    f'fill="{colour}"/>'
                )
            parts.append(_text(LEFT - 8, height + 11, bar.name, anchor="end"))
            parts.append(_text(end + 6, height + 11, bar.label))
            height += BAR
        height += GAP
    grid = [
        f'<path d="M{axis.place(tick):g} 44V{height}" stroke="#ddd"/>'
        + _text(axis.place(tick), height + 16, f"{tick:g}", anchor="middle")
        for tick in axis.ticks()
    ]
    foot = _text((LEFT + WIDTH - RIGHT) / 2, height + 36, axis_name, anchor="middle")
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 48}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height + 48}" fill="white"/>',
        _text(12, 26, title, size=15),
    ]
    return "\n".join([*head, *grid, *parts, foot, "</svg>", ""])


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
