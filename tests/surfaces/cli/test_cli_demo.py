"""`bardo demo`: every provider, every client dialect, and nothing left behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from bardo.simulators import PRESETS, presets
from bardo.surfaces.cli import demo as demonstration
from support.own_threads import own_threads
from surfaces.cli.support import bardo, on_terminal, program

pytestmark = pytest.mark.each_python

KNOWN = presets()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_every_provider_answers_in_every_dialect_and_nothing_is_left(temporary: Path) -> None:
    before = own_threads()
    ran = bardo("demo", *KNOWN, "--json")
    assert ran.err == ""
    assert ran.code == 0
    found = ran.json
    assert found["ok"] is True
    assert [row["provider"] for row in found["rows"]] == KNOWN
    assert {row["client_dialect"] for row in found["rows"]} == {row.dialect for row in demonstration._ASKS}
    assert {(row["client_dialect"], row["streamed"]) for row in found["rows"]} == {
        (ask.dialect, streamed) for ask in demonstration._ASKS for streamed in (False, True)
    }
    assert {row["answer"] for row in found["rows"]} == {"1161"}
    assert list(temporary.iterdir()) == []
    assert own_threads() <= before


def test_thinking_is_told_as_it_is() -> None:
    rows = {
        row["provider"]: row
        for row in bardo("demo", "vllm", "openai_chat", "anthropic", "gemini", "--json").json["rows"]
    }
    told = {name: (row["visibility"], row["tokens_approx"]) for name, row in rows.items()}
    assert told == {
        "vllm": ("visible", True),
        "openai_chat": ("opaque", False),
        "anthropic": ("summarized", False),
        "gemini": ("summarized", False),
    }
    assert rows["vllm"]["reasoning"].startswith("I need to work out 27 * 43.")


def test_the_table_reads_well_in_a_pipe_and_in_a_terminal() -> None:
    piped = program("demo", "anthropic", "inline_think")
    assert (piped.code, piped.err) == (0, "")
    line = next(line for line in piped.out.splitlines() if line.startswith("inline_think"))
    assert line.split() == ["inline_think", "openai_chat", "openai_responses", "stream", "visible", "~30", "1161"]
    code, _, shown = on_terminal("demo", "anthropic", "inline_think")
    assert code == 0
    assert "…" not in shown.partition("provider")[2].partition("dialect ")[0]


def test_a_row_that_fails_is_told_with_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PRESETS["vllm"], "models", ("q+fault:status=500", "q"))
    ran = bardo("demo", "vllm", "groq")
    assert ran.code == 1
    assert "bardo: vllm: status 500" in ran.err
    assert "failed" in next(line for line in ran.out.splitlines() if line.startswith("vllm"))
    assert "1161" in next(line for line in ran.out.splitlines() if line.startswith("groq"))
