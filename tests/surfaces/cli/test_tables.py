"""Tables look the same whether bardo writes their lines itself or rich makes them narrow."""

from __future__ import annotations

import io
import random
import re

import pytest
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
