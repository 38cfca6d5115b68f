"""Tables in one look: a bold head, columns by spaces, no frame, so that they read well in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from bardo.surfaces.render.wording import one_line, printable

# The colours of words that say how something went.
_STYLES = {
    "ok": "green",
    "healthy": "green",
    "degraded": "yellow",
    "resting": "yellow",
    "missing": "yellow",
    "down": "red",
    "visible": "green",
    "summarized": "cyan",
    "opaque": "yellow",
    "cancelled": "yellow",
    "warning": "yellow",
    "broken": "red",
    "error": "red",
    "failed": "red",
    "problem": "red",
}
_GAP = 2
_READABLE = 10


class Column(NamedTuple):
    """A column's head.

    Only `wrap` columns may hold line breaks. A `keep` column says what a row is about: no letter of it is lost. Where a table is too wide,
    columns with a number to `drop` are left out, the highest first; then `wrap` columns are wrapped and `cut` ones shortened; where that
    does not suffice for what is kept, each row becomes a block of lines. `least` keeps tables aligned that follow each other.
    """

    head: str
    right: bool = False
    wrap: bool = False
    cut: bool = False
    least: int | None = None
    keep: bool = False
    drop: int = 0


class TextTable:
    """A table of cells of plain text, whatever they hold; words for outcomes get their colour.

    Where it fits, its lines are written without rich, which takes a thousand times as long: lists of models have 60,000 rows.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, head: bool) -> None:
        self._columns = columns
        self._rows = [tuple(map(_clean, row, columns)) for row in rows]
        self._head = head

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [tuple(column.head for column in self._columns)] * self._head + self._rows
        widths = [
            max([column.least or 0, *(cell_len(line[place]) for line in lines)])
            for place, column in enumerate(self._columns)
        ]
        fits = sum(widths) + _GAP * (len(widths) - 1) <= options.max_width
        if not fits and any(column.keep for column in self._columns):
            yield from self._narrow(widths, options.max_width)
            return
        if not fits or not lines or any("\n" in cell or "\t" in cell for line in lines for cell in line):
            yield self.as_rich()
            return
        styles = {word: Style.parse(name) for word, name in _STYLES.items()}
        bold = Style.parse("bold")
        for number, line in enumerate(lines):
            plain = ""
            for column, cell, width in zip(self._columns, line, widths, strict=True):
                text = cell.rstrip() if column.right else cell
                space = " " * (width - cell_len(text))
                shown = f"{space}{text}" if column.right else f"{text}{space}"
                style = bold if self._head and number == 0 else styles.get(cell.partition(" ")[0])
                if style is not None:
                    yield Segment(plain)
                    yield Segment(shown, style)
                    shown, plain = "", ""
                plain += shown + " " * _GAP
            yield Segment(f"{plain[:-_GAP]}\n")

    def _narrow(self, widths: Sequence[int], most: int) -> RenderResult:
        """Return the table without columns that may go, or its rows as blocks: what a row is about stands there whole."""
        shown = list(range(len(widths)))
        may_go = sorted(
            (column.drop, place) for place, column in enumerate(self._columns) if column.drop and not column.keep
        )
        while (width := self._least_width(shown, widths)) > most and may_go:
            shown.remove(may_go.pop()[1])
        if width <= most:
            columns = [
                column._replace(least=widths[place], cut=False) if column.keep else column
                for place, column in enumerate(self._columns)
            ]
            rows = [[row[place] for place in shown] for row in self._rows]
            made = TextTable([columns[place] for place in shown], rows, head=self._head)
            total = sum(widths[place] for place in shown) + _GAP * (len(shown) - 1)
            yield made if total <= most else made.as_rich()
            return
        for row in self._rows:
            about = [cell for column, cell in zip(self._columns, row, strict=True) if column.keep and cell]
            yield Text("  ".join(about), style="bold", overflow="fold")
            rest = [
                f"{column.head} {cell}".strip()
                for column, cell in zip(self._columns, row, strict=True)
                if cell and not column.keep
            ]
            yield Padding(Text("  ".join(rest), overflow="fold"), (0, 0, 0, _GAP))

    def _least_width(self, shown: Sequence[int], widths: Sequence[int]) -> int:
        """Return how wide some columns are at least, of which those that may be wrapped or shortened are as narrow as can be read."""
        needed = 0
        for place in shown:
            column, width = self._columns[place], widths[place]
            flexible = not column.keep and (column.wrap or column.cut)
            needed += min(width, max(_READABLE, column.least or 0, cell_len(column.head))) if flexible else width
        return needed + _GAP * (len(shown) - 1)

    def as_rich(self) -> Table:
        """Return the table as rich makes it narrow."""
        made = Table(box=None, show_header=self._head, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in self._columns:
            made.add_column(
                column.head,
                justify="right" if column.right else "left",
                overflow="fold" if column.wrap else "ellipsis",
                # rich narrows only columns that may wrap; the cells of `cut` columns refuse to.
                no_wrap=not (column.wrap or column.cut),
                min_width=column.least,
            )
        for row in self._rows:
            made.add_row(*(_cell(cell, cut=column.cut) for column, cell in zip(self._columns, row, strict=True)))
        return made


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, head: bool = True) -> TextTable:
    """Return a table."""
    return TextTable(columns, rows, head=head)


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, one pair a line."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(Text(one_line(name)), _cell(printable(value)))
    return made


def _clean(text: str, column: Column) -> str:
    """Return a cell that keeps to its row: only `wrap` columns hold several lines."""
    return printable(text) if column.wrap else one_line(text)


def _cell(text: str, *, cut: bool = False) -> Text:
    cell = Text(text, style=_STYLES.get(text.partition(" ")[0], ""))
    if cut:
        cell.no_wrap, cell.overflow = True, "ellipsis"
    return cell
