"""`bardo catalog`: every row, for people and for programs."""

from __future__ import annotations

from pathlib import Path

from bardo.catalog.load import builtin
from bardo.reasoning.registry import formats
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


def test_every_format_shows_an_example_and_says_where_beginnings_are() -> None:
    ran = bardo("catalog", "formats")
    line = next(line for line in ran.out.splitlines() if line.startswith("mistral "))
    assert "[THINK]6 * 7[/THINK]42" in line
    assert "the prompt holds it" in ran.err
    rows = {row["name"]: row for row in bardo("catalog", "formats", "--json").json}
    assert rows["mistral"]["example"] == "[THINK]6 * 7[/THINK]42"
    assert rows["deepseek_r1"]["example"] == "6 * 7</think>42"
    assert rows["mistral"]["start"] == "[THINK]"


def test_formats_of_the_configuration_are_listed_first(folder: Path) -> None:
    (folder / "lab.toml").write_text('[[reasoning_formats]]\nname = "lab"\nstart = "[["\nend = "]]\\n"\n')
    assert bardo("catalog", "formats", "-c", "lab.toml").out.splitlines()[1].split() == ["lab", "[[6", "*", r"7]]\n42"]
    assert bardo("catalog", "formats", "-c", "lab.toml", "--json").json[0]["example"] == "[[6 * 7]]\n42"
