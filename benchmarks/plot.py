"""Draw lines as SVG: one panel for each measure, one under the other, each from zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import msgspec

_WIDTH, _HEIGHT, _LEFT, _TOP = 720, 150, 70, 40
_COLOURS = ("#0b6e99", "#c4501b", "#3d7a2a", "#7a3d9a")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a panel."""

    name: str
    points: tuple[tuple[float, float], ...]


def plot(title: str, below: str, panels: Mapping[str, Sequence[Line]]) -> str:
    """Return an SVG document. `below` names what goes from left to right."""
    height = _TOP + len(panels) * (_HEIGHT + 40) + 30
    drawn = "".join(
        _panel(name, lines, _TOP + place * (_HEIGHT + 40)) for place, (name, lines) in enumerate(panels.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 30}" height="{height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/><text x="{_LEFT}" y="20" font-size="15">{escape(title)}</text>{drawn}'
        f'<text x="{_LEFT + _WIDTH / 2}" y="{height - 8}" text-anchor="middle">{escape(below)}</text></svg>\n'
    )


def _panel(name: str, lines: Sequence[Line], top: float) -> str:
    right = max((x for line in lines for x, _ in line.points), default=1.0) or 1.0
    most = (max((y for line in lines for _, y in line.points), default=1.0) or 1.0) * 1.1
    marks = "".join(
        f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * part:.3g}</text>'
        for part in (0.0, 0.5, 1.0)
        for y in (top + _HEIGHT * (1 - part),)
    )
    marks += f'<text x="{_LEFT + _WIDTH}" y="{top + _HEIGHT + 14}" text-anchor="end">{right:,.0f}</text>'
    drawn = "".join(_line(line, place, top, right, most) for place, line in enumerate(lines))
    return f'<text x="{_LEFT}" y="{top - 5}">{escape(name)}</text>{marks}{drawn}'


def _line(line: Line, place: int, top: float, right: float, most: float) -> str:
    colour = _COLOURS[place % len(_COLOURS)]
    points = " ".join(f"{_LEFT + _WIDTH * x / right:.1f},{top + _HEIGHT * (1 - y / most):.1f}" for x, y in line.points)
    label = f'<text x="{_LEFT + _WIDTH - 90 * (place + 1)}" y="{top - 5}" fill="{colour}">{escape(line.name)}</text>'
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>{label}'
