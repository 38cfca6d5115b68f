"""`bardo catalog`: every row, for people and for programs."""

from __future__ import annotations

from bardo.catalog.load import builtin
from bardo.reasoning.formats import formats
from surfaces.cli.support import bardo, on_terminal


def test_every_provider_is_listed_with_its_key_variable() -> None:
    lines = bardo("catalog").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [row.id for row in builtin().providers]
    assert any(line.split()[:3] == ["anthropic", "anthropic_messages", "ANTHROPIC_API_KEY"] for line in lines)
    assert [row["id"] for row in bardo("catalog", "providers", "--json").json] == [
        row.id for row in builtin().providers
    ]


def test_every_format_is_listed_on_a_line_of_its_own() -> None:
    lines = bardo("catalog", "formats").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(formats())
    assert [row["name"] for row in bardo("catalog", "formats", "--json").json] == list(formats())


def test_the_lists_fit_a_terminal_of_a_hundred_columns() -> None:
    for which in ("providers", "formats"):
        shown = on_terminal("catalog", which)[2]
        assert "\x1b[1m" in shown
        assert (
            max(len(line.replace("\x1b[1m", "").replace("\x1b[0m", "").rstrip()) for line in shown.splitlines()) <= 100
        )
