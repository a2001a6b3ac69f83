"""A figure as an SVG: curves over two logarithmic axes, with a legend."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 80, 250, 40, 50
COLOURS = (
    *("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e"),
    *("#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"),
)

Points = Sequence[tuple[float, float]]


class Axis:
    """A logarithmic axis from one pixel to another. Values that are not above 0 have no place on
    it.
    """

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        logs = [log10(value) for value in values if value > 0] or [0.0]
        self.low = floor(min(logs))
        self.high = max(ceil(max(logs)), self.low + 1)
        self.start = start
        self.end = end

    def place(self, value: float) -> float:
        """The pixel of a value."""
        part = (log10(value) - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def draw_figure(title: str, x_name: str, y_name: str, curves: Mapping[str, Points]) -> str:
    """The picture, as the text of an SVG file."""
    shown = {name: [point for point in points if min(point) > 0] for name, points in curves.items()}
    x = Axis((x for points in shown.values() for x, _ in points), LEFT, WIDTH - RIGHT)
    y = Axis((y for points in shown.values() for _, y in points), HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 22, title, size=15),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_name, anchor="middle"),
        f'<g transform="rotate(-90 16 {HEIGHT / 2:g})">',
        _text(16, HEIGHT / 2, y_name, anchor="middle"),
        "</g>",
        *_grid(x, y),
    ]
    for n, (name, points) in enumerate(shown.items()):
        colour = COLOURS[n % len(COLOURS)]
        path = " ".join(f"{x.place(at):g},{y.place(value):g}" for at, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        height = TOP + 10 + n * 20
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 20}" y="{height}" width="18" height="3" fill="{colour}"/>'
        )
        parts.append(_text(WIDTH - RIGHT + 45, height + 6, name))
    return "\n".join([*parts, "</svg>", ""])


def _grid(x: Axis, y: Axis) -> list[str]:
    parts = []
    for tick in x.ticks():
        at = x.place(tick)
        parts.append(f'<path d="M{at:g} {y.start:g}V{y.end:g}" stroke="#ddd"/>')
        parts.append(_text(at, y.start + 16, f"{tick:g}", anchor="middle"))
    for tick in y.ticks():
        at = y.place(tick)
        parts.append(f'<path d="M{x.start:g} {at:g}H{x.end:g}" stroke="#ddd"/>')
        parts.append(_text(x.start - 6, at + 4, f"{tick:g}", anchor="end"))
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
    )
