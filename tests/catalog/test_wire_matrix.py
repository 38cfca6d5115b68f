"""The rows say what the collected facts say: every model of every provider, where the facts lie beside the project."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.wire_facts import providers

from bardo.catalog.forms import builtin_forms
from bardo.catalog.models import builtin_models
from support.offenders import each_case

# The file's names of providers, as rows of models and endpoints know them.
OWNERS = {
    "dashscope": "qwen",
    "llama_server": "llama-server",
    "nvidia_nim": "nvidia",
    "huggingface_router": "huggingface",
}
_GENERAL = {("ollama", "*")}
# Levels of a model that nobody lists, and ids that were retired.
_UNKNOWN = {"deepseek-chat", "deepseek-reasoner"}


def _rows() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (OWNERS.get(name, name), glob, row)
        for name, provider in providers().items()
        for row in provider.get("models", ())
        for glob in row["match"]
        if (name, glob) not in _GENERAL and glob not in _UNKNOWN
    ]


def _named(glob: str) -> str:
    """Return an id that the glob stands for."""
    if glob == "gemini-2.5-*-tts*":
        return "gemini-2.5-pro-preview-tts"
    dated = re.sub(r"-20?2?5?\*$", "-2025-08-07", glob)
    dated = dated.replace("-*-20*", "-small-2006").replace("-*-25*", "-small-2509")
    return dated.replace("*-thinking*", "qwen3-4b-thinking").replace("*b*", "9b").replace("*", "")


@each_case("owner, glob, fact", _rows(), ids=lambda value: value if isinstance(value, str) else "", optional=True)
def test_a_model_row_agrees_with_the_facts(owner: str, glob: str, fact: dict[str, Any]) -> None:
    known = "kimi-code" if glob.startswith("kimi-for-coding") else owner
    row = builtin_models().find(known, _named(glob)).row
    assert row is not None
    if fact.get("efforts"):
        assert list(row.efforts or ()) == fact["efforts"]
    if "omit" in fact:
        assert row.omit == fact["omit"]
    if "off" in fact and fact.get("control") != ["none"]:
        assert bool(row.off) == (fact["off"] is not None or "none" in fact.get("efforts", ()))
    if "default_effort" in fact:
        assert row.default_effort == fact["default_effort"]
    span = fact.get("budget")
    if span and row.budget:
        assert row.budget.min == max(1, span["min"])
        assert row.budget.max == (span["max"] if isinstance(span["max"], int) else None)


@each_case("name", providers(), optional=True)
def test_every_provider_has_an_endpoint(name: str) -> None:
    owner = OWNERS.get(name, name).replace("_", "-")
    owners = {one.owner for one in builtin_forms().endpoints}
    assert owner in owners or owner == "huggingface"
