"""Tables in one look: a bold head, columns by spaces, no frame, so that they read well in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

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


class Column(NamedTuple):
    """A column's head.

    Only `wrap` columns may hold line breaks. Where a table is too wide, they are wrapped and `cut` columns shortened before the others
    suffer. `least` keeps tables aligned that follow each other.
    """

    head: str
    right: bool = False
    wrap: bool = False
    cut: bool = False
    least: int | None = None


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, head: bool = True) -> Table:
    """Return a table. Cells are plain text, whatever they hold; words for outcomes get their colour."""
    made = Table(box=None, show_header=head, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(
            column.head,
            justify="right" if column.right else "left",
            overflow="fold" if column.wrap else "ellipsis",
            # rich narrows only columns that may wrap; the cells of `cut` columns refuse to.
            no_wrap=not (column.wrap or column.cut),
            min_width=column.least,
        )
    for row in rows:
        made.add_row(*(_cell(_clean(cell, column), cut=column.cut) for column, cell in zip(columns, row, strict=True)))
    return made


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
