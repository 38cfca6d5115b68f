"""Tables of a page: cells, heads and pages of rows, which a template writes with a caption and scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from bardo.surfaces.panel.charts import Sparkline
from bardo.surfaces.panel.pages import query_text

PAGE_ROWS = 50
_MOST_PAGES = 100_000
Row = TypeVar("Row")


class Cell(msgspec.Struct, frozen=True):
    """What one cell shows: a text, where it leads to, a badge (`ok`, `warn`, `bad`, `info`), and a further line below."""

    text: str
    href: str = ""
    badge: str = ""
    below: str = ""


class Head(msgspec.Struct, frozen=True):
    """The head of a column. `number`: its cells are aligned by their last digit; `wrap`: long words of it are broken."""

    text: str
    number: bool = False
    wrap: bool = False


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table. The first cell of a row is its head. `foot` is a row of sums; `empty` is said where there are no rows."""

    name: str
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell | Sparkline | str, ...], ...]
    foot: tuple[Cell | str, ...] = ()
    empty: str = "Nothing is there yet."


class Pager(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of how many are shown, and where the ones before and after them are; empty where there are none."""

    first: int
    last: int
    total: int
    before: str = ""
    after: str = ""


def paged(
    rows: Sequence[Row], path: str, query: Mapping[str, str], *, name: str = "page", size: int = PAGE_ROWS
) -> tuple[Sequence[Row], Pager]:
    """Return the rows of the page that the query names, by its number from 1, and the way to the others."""
    pages = max(1, -(-len(rows) // size))
    number = min(page_number(query.get(name, "")), pages)
    begin = (number - 1) * size
    page_rows = rows[begin : begin + size]
    pager = Pager(
        first=begin + 1 if page_rows else 0,
        last=begin + len(page_rows),
        total=len(rows),
        before=f"{path}?{query_text(query, **{name: number - 1})}" if number > 1 else "",
        after=f"{path}?{query_text(query, **{name: number + 1})}" if number < pages else "",
    )
    return page_rows, pager


def page_number(written: str) -> int:
    """Return the number of a page that somebody wrote; 1 for what is none."""
    number = int(written) if written.isascii() and written.isdecimal() and len(written) < 8 else 1
    return max(1, min(number, _MOST_PAGES))
