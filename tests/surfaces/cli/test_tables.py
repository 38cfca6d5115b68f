"""Tables look the same whether bardo writes their lines itself or rich makes them narrow."""

from __future__ import annotations

import io
import random
import re

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from bardo.surfaces.render.tables import Column, table

WORDS = (
    "ok",
    "down",
    "missing: X_KEY",
    "",
    "größe",
    "日本語",
    "a\nb",
    "a\tb",
    "x" * 30,
    "$0.5 / 1",
    "👩 x",
    "a\u0301b",
    "\x1b[31m",
    " first",
    "last ",
)


def printed(what: RenderableType, width: int, *, colours: bool) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines that a console prints, without the spaces at their ends, and the texts that have a colour."""
    system = "standard" if colours else None
    target = Console(file=io.StringIO(), width=width, force_terminal=colours, color_system=system, highlight=False)  # type: ignore[arg-type]
    target.print(what)
    assert isinstance(target.file, io.StringIO)
    text = target.file.getvalue()
    coloured = [(colour, words.strip()) for colour, words in re.findall(r"\x1b\[([1-9]\d*)m([^\x1b]*)", text)]
    lines = [line.rstrip() for line in re.sub(r"\x1b\[\d+m", "", text).split("\n")]
    return lines, [one for one in coloured if one[1]]


@pytest.mark.parametrize("colours", [False, True], ids=["plain", "coloured"])
def test_a_table_is_written_as_rich_writes_it(colours: bool) -> None:
    chance = random.Random(29)
    for _ in range(150):
        columns = [
            Column(
                chance.choice(WORDS[:6]),
                right=chance.random() < 0.3,
                wrap=chance.random() < 0.3,
                cut=chance.random() < 0.3,
                least=chance.choice((None, 8)),
            )
            for _ in range(chance.randint(1, 5))
        ]
        rows = [[chance.choice(WORDS) for _ in columns] for _ in range(chance.randint(0, 4))]
        made = table(columns, rows, head=chance.random() < 0.7)
        width = chance.choice((20, 40, 80, 300))
        assert printed(made, width, colours=colours) == printed(made.as_rich(), width, colours=colours), (columns, rows)


def test_a_long_table_that_fits_is_written_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table([Column("model"), Column("price", right=True)], [(f"model-{number}", "$1") for number in range(5_000)])
    monkeypatch.setattr("rich.table.Table.__rich_console__", None)
    lines, _ = printed(made, 100, colours=False)
    assert lines[:2] == ["model       price", "model-0        $1"]
    assert len(lines) == 5_002


LONG = "openrouter/anthropic/claude-sonnet-5-20261101-preview"


def lines_at(width: int, columns: list[Column], rows: list[list[str]]) -> list[str]:
    return printed(table(columns, rows), width, colours=False)[0]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_what_a_row_is_about_loses_no_letter_at_any_width(width: int) -> None:
    chance = random.Random(width)
    for _ in range(60):
        columns = [
            Column(
                f"head{place}",
                right=chance.random() < 0.3,
                wrap=chance.random() < 0.3,
                cut=chance.random() < 0.3,
                keep=place == 0 or chance.random() < 0.3,
                drop=chance.choice((0, 1, 2)),
            )
            for place in range(chance.randint(1, 8))
        ]
        rows = [[chance.choice([LONG, "m1", "a name", "日本語" * 9]) for _ in columns] for _ in range(3)]
        lines = lines_at(width, columns, rows)
        assert all(cell_len(line) <= width for line in lines), lines
        # A name that is wider than the screen goes on in the next line.
        whole = "".join("".join(lines).split())
        for row in rows:
            for column, cell in zip(columns, row, strict=True):
                if column.keep:
                    assert cell in lines or "".join(cell.split()) in whole, (cell, lines)


def test_columns_go_before_a_row_becomes_a_block() -> None:
    columns = [Column("model", keep=True), Column("cost"), Column("thinking", drop=1), Column("failed", drop=2)]
    row = ["m" * 30, "$1.00", "1,000", "2"]
    assert lines_at(60, columns, [row])[0].split() == ["model", "cost", "thinking", "failed"]
    assert lines_at(52, columns, [row])[0].split() == ["model", "cost", "thinking"]
    assert lines_at(40, columns, [row])[0].split() == ["model", "cost"]
    assert lines_at(30, columns, [row]) == ["m" * 30, "  cost $1.00  thinking 1,000", "  failed 2", ""]


def test_other_columns_are_wrapped_and_shortened_before_a_row_becomes_a_block() -> None:
    columns = [Column("model", keep=True), Column("why", wrap=True), Column("question", cut=True)]
    lines = lines_at(60, columns, [["m" * 30, "word " * 8, "letters" * 8]])
    assert lines[1].startswith("m" * 30)
    assert "\u2026" in lines[1]
    assert len(lines) > 3
