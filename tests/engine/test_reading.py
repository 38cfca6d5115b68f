"""How a reply's text is read: by the model's own format, and from where the request, the server or the format says it begins."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.engine.reading import PLAIN, Reading, reading_of
from bardo.reasoning import ReasoningFormat
from bardo.reasoning.registry import builtin_formats
from bardo.values.request import Tool


def row(preset: str) -> ProviderRow:
    found = builtin().provider(preset)
    assert found is not None
    return found


def reading(preset: str, model: str, **more: Any) -> Reading:
    return reading_of(row(preset), model, **more)


def test_text_is_text_where_the_provider_separates_thinking() -> None:
    assert reading("deepseek", "deepseek-r1") is PLAIN
    assert reading("anthropic", "claude-sonnet-5", tools=[Tool(name="t")]) is PLAIN


BEGINNINGS: dict[str, tuple[str, str, dict[str, Any], bool]] = {
    "the format says so": ("llama-server", "deepseek-r1", {}, True),
    "nothing is known": ("llama-server", "Qwen3.5-9B", {}, False),
    "the server renders it so": ("llama-server", "Qwen3.5-9B", {"rendered": True}, True),
    "the server renders it otherwise than the format says": ("llama-server", "deepseek-r1", {"rendered": False}, False),
    "the request turns it on": (
        "llama-server",
        "Qwen3.5-9B",
        {"toggles": {"enable_thinking": True}, "rendered": False},
        True,
    ),
    "the request turns it off": (
        "llama-server",
        "Qwen3.5-9B",
        {"toggles": {"enable_thinking": False}, "rendered": True},
        False,
    ),
    "a host may hide it": ("together", "deepseek-r1", {"rendered": True}, False),
}


@pytest.mark.parametrize(("preset", "model", "more", "inside"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_where_a_reply_begins(preset: str, model: str, more: dict[str, Any], inside: bool) -> None:
    assert reading(preset, model, **more).starts_inside is inside


def test_a_format_of_the_users_own_is_looked_for_everywhere() -> None:
    own = builtin_formats().with_rows([ReasoningFormat(name="mull", start="[[", end="]]", patterns=("mull",))])
    found = reading("deepseek", "mull-1", formats=own)
    assert found.reasoning is not None
    assert found.reasoning.name == "mull"


def test_calls_are_looked_for_where_tools_are_declared() -> None:
    assert reading("vllm", "Qwen/Qwen3-32B").calls is None
    assert reading("vllm", "Qwen/Qwen3-32B", tools=[Tool(name="t", hosted=True)]).calls is None
    found = reading("vllm", "Qwen/Qwen3-32B", tools=[Tool(name="t")])
    assert found.calls is not None
    assert found.tools == (Tool(name="t"),)
