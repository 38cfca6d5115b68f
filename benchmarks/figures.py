"""Figures with their spread, and the tables they stand in: bardo's column first, every other with its ratio to bardo's."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """The median of several rounds, with the lowest and the highest of them."""

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure | None:
        """Return the figure of these rounds, None where there are none."""
        if not values:
            return None
        return cls(median=statistics.median(values), low=min(values), high=max(values), rounds=len(values))

    @property
    def spread_percent(self) -> float:
        """Half the distance from the lowest to the highest round, as a part of the median."""
        return 50 * (self.high - self.low) / abs(self.median) if self.median else 0.0

    def text(self) -> str:
        """Return the figure as a reader wants it: three digits, and the spread."""
        spread = f" ±{self.spread_percent:.0f} %" if self.rounds > 1 else ""
        return f"{in_digits(self.median)}{spread}"


def in_digits(value: float) -> str:
    """Return a number with about three digits."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3f}" if 0 < size < 1 else f"{value:.2f}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One thing measured, in one unit, for everyone who was measured. `cannot` names those who cannot do it at all."""

    measure: str
    unit: str
    figures: dict[str, Figure] = {}
    failed: dict[str, str] = {}
    cannot: tuple[str, ...] = ()

    @classmethod
    def of_one_round(cls, measure: str, unit: str, values: Mapping[str, float]) -> Row:
        """Return a row of values that were measured once, by column."""
        figures = {name: Figure(median=one, low=one, high=one, rounds=1) for name, one in values.items()}
        return cls(measure=measure, unit=unit, figures=figures)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one subject. `columns` begins with the one that others are compared with.

    `floor` names the column of what no contestant is expected to undercut: figures show their ratio to it too. `shares`: the figures are
    shares, which show the ends of their interval instead of ratios.
    """

    subject: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    floor: str = ""
    shares: bool = False

    def figure(self, measure: str, column: str) -> Figure | None:
        """Return one cell, None where it is empty."""
        return next((row.figures.get(column) for row in self.rows if row.measure == measure), None)

    def markdown(self) -> str:
        """Return the table in Markdown, with the notes below it."""
        head = ("measure", *(f"**{name}**" if name == self.columns[0] else name for name in self.columns))
        lines = [head, ("---", *["---:"] * len(self.columns)), *map(self._cells, self.rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        notes = "".join(f"\n- {note}" for note in self.notes)
        return f"## {self.title}\n\n{table}\n{notes}\n" if notes else f"## {self.title}\n\n{table}\n"

    def _cells(self, row: Row) -> tuple[str, ...]:
        if self.shares:
            return f"{row.measure}, {row.unit}", *(_share_cell(row, name) for name in self.columns)
        base, floor = row.figures.get(self.columns[0]), row.figures.get(self.floor)
        return f"{row.measure}, {row.unit}", *(_cell(row, name, base, floor) for name in self.columns)

    def ratio(self, measure: str, column: str, base: str) -> float | None:
        """Return how many times the figure of `base` that of `column` is; None where one is missing or not above zero."""
        return _ratio(self.figure(measure, column), self.figure(measure, base))


def _ratio(figure: Figure | None, base: Figure | None) -> float | None:
    if figure is None or base is None or figure.median <= 0 or base.median <= 0:
        return None
    return figure.median / base.median


def _share_cell(row: Row, column: str) -> str:
    figure = row.figures.get(column)
    if figure is None:
        return "failed" if column in row.failed else "–"
    return f"{figure.median:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _cell(row: Row, column: str, base: Figure | None, floor: Figure | None) -> str:
    figure = row.figures.get(column)
    if figure is None:
        return "cannot" if column in row.cannot else "failed" if column in row.failed else "–"
    to_base = None if figure is base else _ratio(figure, base)
    to_floor = None if figure is floor else _ratio(figure, floor)
    text = figure.text() if to_base is None else f"{figure.text()} ({in_digits(to_base)}×)"
    return text if to_floor is None else f"{text} [{in_digits(to_floor)}×]"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What bardo aims at, and where it stands."""

    says: str
    limit: float
    unit: str
    found: float | None
    better: Literal["lower", "higher"] = "lower"

    @property
    def met(self) -> bool | None:
        """Whether it is reached; None where it was not measured."""
        if self.found is None:
            return None
        return self.found <= self.limit if self.better == "lower" else self.found >= self.limit


def targets_markdown(targets: Sequence[Target]) -> str:
    """Return the targets as a table."""
    words: Mapping[bool | None, str] = {True: "met", False: "**not met**", None: "not measured"}
    sign = {"lower": "≤", "higher": "≥"}
    lines = ["## Targets", "", "| target | limit | found | |", "| --- | ---: | ---: | --- |"]
    for target in targets:
        found = "–" if target.found is None else f"{in_digits(target.found)} {target.unit}"
        limit = f"{sign[target.better]} {in_digits(target.limit).removesuffix('.00')} {target.unit}"
        lines.append(f"| {target.says} | {limit} | {found} | {words[target.met]} |")
    return "\n".join(lines) + "\n"
