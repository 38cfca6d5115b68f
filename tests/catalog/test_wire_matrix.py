"""The rows say what the collected facts say: every model of every provider of `wire_matrix.json`, where it lies beside the project."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bardo.catalog.forms import builtin_forms
from bardo.catalog.models import builtin_models

MATRIX = Path(__file__).resolve().parents[3] / "shared" / "wire_matrix.json"
# The file's names of providers, as rows of models and endpoints know them.
OWNERS = {
    "dashscope": "qwen",
    "llama_server": "llama-server",
    "nvidia_nim": "nvidia",
    "huggingface_router": "huggingface",
}
_GENERAL = {("ollama", "*")}
# Levels of a model that nobody lists, and ids that were retired.
_UNKNOWN = {"grok-4.7*", "deepseek-chat", "deepseek-reasoner"}


def _providers() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(MATRIX.read_text(encoding="utf-8")) if MATRIX.is_file() else {}
    providers: dict[str, Any] = facts.get("providers", {})
    return providers


def _rows() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (OWNERS.get(name, name), glob, row)
        for name, provider in _providers().items()
        for row in provider.get("models", ())
        for glob in row["match"]
        if (name, glob) not in _GENERAL and glob not in _UNKNOWN
    ]


def _named(glob: str) -> str:
    """Return an id that the glob stands for."""
    dated = re.sub(r"-20?2?5?\*$", "-2025-08-07", glob)
    return dated.replace("*-thinking*", "qwen3-4b-thinking").replace("*b*", "9b").replace("*", "")


@pytest.mark.parametrize(("owner", "glob", "fact"), _rows(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_model_row_agrees_with_the_facts(owner: str, glob: str, fact: dict[str, Any]) -> None:
    known = "kimi-code" if glob.startswith("kimi-for-coding") else owner
    row = builtin_models().find(known, _named(glob)).row
    assert row is not None
    if fact.get("efforts"):
        assert list(row.efforts or ()) == fact["efforts"]
    if "omit" in fact:
        assert row.omit == fact["omit"]
    if "off" in fact and fact["control"] != ["none"]:
        assert bool(row.off) == (fact["off"] is not None)
    if "default_effort" in fact:
        assert row.default_effort == fact["default_effort"]
    span = fact.get("budget")
    if span and row.budget:
        assert row.budget.min == max(1, span["min"])
        assert row.budget.max == (span["max"] if isinstance(span["max"], int) else None)


@pytest.mark.parametrize("name", _providers())
def test_every_provider_has_an_endpoint(name: str) -> None:
    owner = OWNERS.get(name, name).replace("_", "-")
    owners = {one.owner for one in builtin_forms().endpoints}
    assert owner in owners or owner == "huggingface"
