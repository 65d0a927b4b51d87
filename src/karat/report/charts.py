"""Charts as SVG texts: lines with bands, and bars. They take their colours from the page's style.

Every text that comes from a name is escaped; numbers are written short, so that pages stay small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from karat.report.tables import rounded

WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 12, 34
#: how many colours the style has, and the dashes that tell more lines apart
COLOURS = 8
DASHES = ("", "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Line:
    """Points of one model, with a spread around each; ``number`` gives its colour and dash."""

    name: str
    number: int
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float]


def colour(number: int) -> str:
    """Return the class of a colour."""
    return f"c{number % COLOURS}"


def line_chart(lines: Sequence[Line], x_label: str, about: str) -> str:
    """Return curves over a common axis, each with its band and a point per value."""
    shown = [line for line in lines if any(map(math.isfinite, line.y))]
    if not shown:
        return ""
    across = _Axis([x for line in shown for x in line.x], LEFT, WIDTH - RIGHT)
    edges = [
        y + sign * s
        for line in shown
        for y, s in zip(line.y, line.spread, strict=True)
        for sign in (-1, 1)
    ]
    upward = _Axis([*edges], HEIGHT - BOTTOM, TOP)
    parts = [
        *_grid(across, upward),
        *(part for line in shown for part in _line(line, across, upward)),
    ]
    parts.append(
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 4}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
    )
    return _svg(parts, WIDTH, HEIGHT, about)


def bar_chart(values: Sequence[tuple[str, int, float]], about: str) -> str:
    """Return a bar from 0 for each name, with its number and value."""
    known = [(name, number, value) for name, number, value in values if math.isfinite(value)]
    if not known:
        return ""
    step, start = 22, 130
    axis = _Axis([0.0, *(value for _, _, value in known)], start, WIDTH - 52)
    parts = []
    for row, (name, number, value) in enumerate(known):
        y = row * step + 4
        x, end = sorted((axis.at(0.0), axis.at(value)))
        short = name if len(name) <= 20 else name[:19] + "…"
        parts.append(
            f'<g><title>{escape(name)}: {value:.6g}</title><text class="name" x="{start - 8}" '
            f'y="{y + 12}" text-anchor="end">{escape(short)}</text>'
            f'<rect class="bar {colour(number)}" x="{x:.1f}" y="{y}" '
            f'width="{max(end - x, 1):.1f}" height="15" rx="2"/>'
            f'<text class="value" x="{end + 5:.1f}" y="{y + 12}">{rounded(value)}</text></g>'
        )
    return _svg(parts, WIDTH, step * len(known) + 8, about)


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Return round numbers that lie within an interval, about as many as wanted.

    >>> ticks(0.0, 0.4)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    if not high > low:
        return [low]
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


class _Axis:
    """Turns values into places between two ends, with a little room at the edges."""

    def __init__(self, values: Iterable[float], begin: float, end: float) -> None:
        known = [value for value in values if math.isfinite(value)]
        self.low, self.high = min(known), max(known)
        if self.low == self.high:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.begin, self.end = begin, end

    def at(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def _grid(across: _Axis, upward: _Axis) -> Iterator[str]:
    for value in ticks(upward.low, upward.high):
        y = upward.at(value)
        yield (
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    for value in ticks(across.low, across.high):
        yield (
            f'<text class="tick" x="{across.at(value):.1f}" y="{HEIGHT - BOTTOM + 14}" '
            f'text-anchor="middle">{value:g}</text>'
        )


def _line(line: Line, across: _Axis, upward: _Axis) -> Iterator[str]:
    points = [
        (across.at(x), upward.at(y), upward.at(y + s), upward.at(y - s), x, y)
        for x, y, s in zip(line.x, line.y, line.spread, strict=True)
        if math.isfinite(y)
    ]
    kind = colour(line.number)
    if any(line.spread):
        edge = [f"{x:.1f},{top:.1f}" for x, _, top, *_ in points]
        edge += [f"{x:.1f},{low:.1f}" for x, _, _, low, *_ in reversed(points)]
        yield f'<polygon class="band {kind}" points="{" ".join(edge)}"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, *_ in points)
    dash = DASHES[line.number // COLOURS % len(DASHES)]
    style = f' stroke-dasharray="{dash}"' if dash else ""
    yield f'<polyline class="line {kind}" points="{path}"{style}/>'
    if len(points) <= 12:
        for x, y, *_, at, value in points:
            yield (
                f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
                f"<title>{escape(line.name)} at {at:g}: {value:.4g}</title></circle>"
            )


def _svg(parts: Iterable[str], width: float, height: float, about: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(about)}">'
        f"{''.join(parts)}</svg>"
    )
