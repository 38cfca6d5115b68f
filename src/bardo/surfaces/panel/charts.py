"""Charts as they are drawn: places and sizes for SVG that a template writes. Nothing here needs a script.

A series has a pattern besides its colour, every bar says what it is when it is pointed at, and the figures stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

WIDTH = 1000.0
HEIGHT = 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 8.0, 18.0, 26.0
_MOST_LABELS = 12
_MOST_BARS = 15
_ROW = 30.0
MOST_SERIES = 6
"""How many series of a chart are told apart; the others are one more."""


class Bar(msgspec.Struct, frozen=True):
    """A rectangle of a series, and what it says."""

    x: float
    y: float
    width: float
    height: float
    series: int
    title: str


class Label(msgspec.Struct, frozen=True):
    """A text at a place."""

    x: float
    y: float
    text: str


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart. `series` are the names of what its colours and patterns stand for; `unknown` marks what is not known."""

    name: str
    title: str
    description: str
    width: float
    height: float
    bars: tuple[Bar, ...]
    lines: tuple[float, ...] = ()
    left: float = 0.0
    labels: tuple[Label, ...] = ()
    ticks: tuple[Label, ...] = ()
    values: tuple[Label, ...] = ()
    unknown: tuple[Label, ...] = ()
    series: tuple[str, ...] = ()


class Column(msgspec.Struct, frozen=True):
    """One column of a chart: its label, an amount for each series, and how many calls there are of which the amount is unknown."""

    label: str
    amounts: tuple[float, ...]
    unknown: int = 0


def column_chart(
    name: str, title: str, columns: Sequence[Column], series: Sequence[str], write: Callable[[float], str]
) -> Chart:
    """Return columns beside each other, each with its series on top of each other. Amounts below 0 are drawn as nothing."""
    scale = _Scale(max((sum(max(one, 0.0) for one in column.amounts) for column in columns), default=0.0))
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(columns))
    wide = max(1.0, min(step * 0.72, 48.0))
    bars: list[Bar] = []
    unknown: list[Label] = []
    for place, column in enumerate(columns):
        x, top = _LEFT + place * step + (step - wide) / 2, HEIGHT - _BOTTOM
        for index, amount in enumerate(column.amounts):
            tall = scale.height(amount)
            if tall <= 0:
                continue
            top -= tall
            said = (
                f"{column.label}, {series[index]}: {write(amount)}"
                if len(series) > 1
                else f"{column.label}: {write(amount)}"
            )
            bars.append(Bar(_near(x), _near(top), _near(wide), _near(tall), index, said))
        if column.unknown:
            unknown.append(
                Label(_near(x + wide / 2), _near(top - 5), f"{column.label}: {column.unknown:,} calls of unknown cost")
            )
    return Chart(
        name=name,
        title=title,
        description=_description(columns, write),
        width=WIDTH,
        height=HEIGHT,
        bars=tuple(bars),
        lines=tuple(_near(scale.y(tick)) for tick in scale.ticks),
        left=_LEFT,
        ticks=tuple(Label(_LEFT - 8, _near(scale.y(tick) + 4), write(tick)) for tick in scale.ticks),
        labels=tuple(_column_labels([one.label for one in columns], step)),
        unknown=tuple(unknown),
        series=tuple(series) if len(series) > 1 else (),
    )


def row_chart(name: str, title: str, rows: Sequence[Column], write: Callable[[float], str]) -> Chart:
    """Return bars below each other, the longest first, each with its name and its amount. What is too small to show is one more bar."""
    ordered = sorted(rows, key=lambda one: (-one.amounts[0], one.label))
    shown = ordered[:_MOST_BARS]
    if len(ordered) > len(shown) + 1:
        rest = ordered[_MOST_BARS - 1 :]
        together = Column(
            f"{len(rest)} others", (math.fsum(one.amounts[0] for one in rest),), sum(one.unknown for one in rest)
        )
        shown = [*ordered[: _MOST_BARS - 1], together]
    else:
        shown = ordered
    most = max((one.amounts[0] for one in shown), default=0.0)
    bars, labels, values, unknown = [], [], [], []
    name_width, value_width = 240.0, 150.0
    for place, row in enumerate(shown):
        y = place * _ROW + 6
        long = 0.0 if most <= 0 else max(0.0, row.amounts[0]) / most * (WIDTH - name_width - value_width)
        long = max(long, 2.0) if row.amounts[0] > 0 else 0.0
        said = f"{row.label}: {write(row.amounts[0])}"
        if long:
            bars.append(Bar(name_width, _near(y), _near(long), _ROW - 12, 0, said))
        labels.append(Label(name_width - 10, _near(y + 14), _cut(row.label)))
        text = "" if row.unknown and not row.amounts[0] else write(row.amounts[0])
        values.append(Label(_near(name_width + long + 8), _near(y + 14), text or "unknown"))
        if row.unknown and text:
            place_x = name_width + long + 14 + 7.2 * len(text)
            unknown.append(Label(_near(place_x), _near(y + 14), f"{row.label}: {row.unknown:,} calls of unknown cost"))
    return Chart(
        name=name,
        title=title,
        description=_description(shown, write),
        width=WIDTH,
        height=max(1, len(shown)) * _ROW + 4,
        bars=tuple(bars),
        labels=tuple(labels),
        values=tuple(values),
        unknown=tuple(unknown),
    )


class Sparkline(msgspec.Struct, frozen=True, kw_only=True):
    """A small line of medians over time. `parts` are stretches without a gap, `dots` stand alone, `note` names the scale."""

    title: str
    width: float
    height: float
    parts: tuple[str, ...]
    dots: tuple[Label, ...]
    note: str = ""


def sparkline(
    title: str, amounts: Sequence[float | None], *, note: str = "", width: float = 140.0, height: float = 30.0
) -> Sparkline:
    """Return amounts by time as a line from 0; None is a gap in it."""
    most = max((one for one in amounts if one is not None), default=0.0) or 1.0
    step = width / max(1, len(amounts) - 1)
    stretches: list[list[tuple[float, float]]] = [[]]
    for place, amount in enumerate(amounts):
        if amount is None:
            stretches.append([])
        else:
            stretches[-1].append((_near(place * step), _near(height - 3 - amount / most * (height - 6))))
    lines = [" ".join(f"{x},{y}" for x, y in one) for one in stretches if len(one) > 1]
    dots = [Label(one[0][0], one[0][1], "") for one in stretches if len(one) == 1]
    return Sparkline(title=title, width=width, height=height, parts=tuple(lines), dots=tuple(dots), note=note)


class _Scale:
    """Amounts as heights: from 0 to the next round number above the largest."""

    def __init__(self, largest: float) -> None:
        step = _round_step(largest / 4) if largest > 0 else 0.0
        parts = max(1, math.ceil(largest / step - 1e-9)) if step else 1
        self.top = step * parts or 1.0
        self.ticks = tuple(step * place for place in range(parts + 1)) if step else (0.0,)

    def height(self, amount: float) -> float:
        """Return how tall an amount is drawn; what is more than nothing can be seen."""
        return 0.0 if amount <= 0 else max(1.0, amount / self.top * (HEIGHT - _TOP - _BOTTOM))

    def y(self, amount: float) -> float:
        """Return where an amount stands."""
        return HEIGHT - _BOTTOM - amount / self.top * (HEIGHT - _TOP - _BOTTOM)


def _round_step(least: float) -> float:
    """Return 1, 2 or 5 of a power of ten, no less than `least`."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * part for part in (1, 2, 5, 10) if unit * part >= least * (1 - 1e-9))


def _column_labels(labels: Sequence[str], step: float) -> list[Label]:
    every = max(1, math.ceil(len(labels) / _MOST_LABELS))
    # The last one always stands: it is the newest.
    places = range((len(labels) - 1) % every, len(labels), every)
    return [Label(_near(_LEFT + (place + 0.5) * step), HEIGHT - 8, labels[place]) for place in places]


def _description(columns: Sequence[Column], write: Callable[[float], str]) -> str:
    if not columns:
        return "No data."
    most = max(columns, key=lambda one: math.fsum(one.amounts))
    whole = math.fsum(amount for column in columns for amount in column.amounts)
    unknown = sum(column.unknown for column in columns)
    besides = f" {unknown:,} more calls have an unknown cost." if unknown else ""
    return (
        f"{len(columns)} bars, {write(whole)} in total. The largest is {most.label} with {write(math.fsum(most.amounts))}.{besides} "
        "The table below has all values."
    )


def _cut(text: str, longest: int = 28) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _near(number: float) -> float:
    return round(number, 1)
