"""Pictures as SVG: bars over a logarithmic axis, one for each system, in groups; and curves.

Curves over logarithmic axes are drawn by `lab.trace.drawing`, as in `python -m lab trace`.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

from lab.trace.drawing import COLOURS, Axis, Points

WIDTH, LEFT, RIGHT, BAR, GAP = 820, 270, 110, 18, 14
EVEN_WIDTH, EVEN_HEIGHT, EDGE, LEGEND = 820, 360, 70, 220


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


def draw_lines(title: str, x_name: str, y_name: str, curves: Mapping[str, Points]) -> str:
    """Curves over two even axes that begin at 0, as the text of an SVG file."""
    points = [point for each in curves.values() for point in each]
    x = EvenAxis(max((at for at, _ in points), default=1.0), EDGE, EVEN_WIDTH - LEGEND)
    y = EvenAxis(max((value for _, value in points), default=1.0), EVEN_HEIGHT - EDGE, 40)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {EVEN_WIDTH} {EVEN_HEIGHT}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{EVEN_WIDTH}" height="{EVEN_HEIGHT}" fill="white"/>',
        _text(12, 24, title, size=15),
        _text((EDGE + EVEN_WIDTH - LEGEND) / 2, EVEN_HEIGHT - 12, x_name, anchor="middle"),
        f'<g transform="rotate(-90 16 {EVEN_HEIGHT / 2:g})">',
        _text(16, EVEN_HEIGHT / 2, y_name, anchor="middle"),
        "</g>",
    ]
    for tick in x.ticks():
        at = x.place(tick)
        parts.append(f'<path d="M{at:g} {y.start:g}V{y.end:g}" stroke="#ddd"/>')
        parts.append(_text(at, y.start + 16, f"{tick:g}", anchor="middle"))
    for tick in y.ticks():
        at = y.place(tick)
        parts.append(f'<path d="M{x.start:g} {at:g}H{x.end:g}" stroke="#ddd"/>')
        parts.append(_text(x.start - 6, at + 4, f"{tick:g}", anchor="end"))
    for n, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[n % len(COLOURS)]
        path = " ".join(f"{x.place(at):g},{y.place(value):g}" for at, value in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = EVEN_WIDTH - LEGEND + 16
        parts.append(f'<rect x="{at}" y="{50 + n * 20}" width="18" height="3" fill="{colour}"/>')
        parts.append(_text(at + 25, 56 + n * 20, name))
    return "\n".join([*parts, "</svg>", ""])


class EvenAxis:
    """Goes from 0 to the first step at or above the most, from one pixel to another."""

    def __init__(self, most: float, start: float, end: float) -> None:
        rough = max(most, 1e-9) / 5
        power = 10.0 ** floor(log10(rough))
        self.step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * 0.999)
        self.steps = max(ceil(most / self.step - 1e-9), 1)
        self.start = start
        self.end = end

    def place(self, value: float) -> float:
        """The pixel of a value."""
        part = value / (self.step * self.steps)
        return round(self.start + part * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """The ends of all steps."""
        return [self.step * n for n in range(self.steps + 1)]


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
