"""How a reply's text is read: by the model's own format, and from where the request, the server or the format says it begins."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.planning.text_formats import PLAIN, ReplyOpening, TextFormats, seen_start, text_formats_of
from bardo.reasoning import ReasoningFormat
from bardo.reasoning.registry import builtin_formats
from bardo.values.request import Tool


def row(preset: str) -> ProviderRow:
    found = builtin().provider(preset)
    assert found is not None
    return found


def reading(preset: str, model: str, **more: Any) -> TextFormats:
    return text_formats_of(row(preset), model, **more)


def test_text_is_text_where_the_provider_separates_thinking() -> None:
    assert reading("deepseek", "deepseek-r1") is PLAIN
    assert reading("anthropic", "claude-sonnet-5", tools=[Tool(name="t")]) is PLAIN


DECIDED, UNDECIDED = False, True
OFF, ON = {"enable_thinking": False}, {"enable_thinking": True}
STREAMS: dict[str, tuple[str, str, ReplyOpening, tuple[bool, bool]]] = {
    "only the format says inside": ("vllm", "deepseek-r1", ReplyOpening(), (True, UNDECIDED)),
    "only the format says inside, and the server separates": (
        "llama-server",
        "deepseek-r1",
        ReplyOpening(),
        (False, UNDECIDED),
    ),
    "an answer in a schema": ("vllm", "deepseek-r1", ReplyOpening(schema=True), (False, UNDECIDED)),
    "nothing is known": ("llama-server", "Qwen3.5-9B", ReplyOpening(), (False, DECIDED)),
    "the prompt opens the thinking": ("vllm", "Qwen3.5-9B", ReplyOpening(rendered=True), (True, UNDECIDED)),
    "the prompt does not, though the format says so": (
        "llama-server",
        "deepseek-r1",
        ReplyOpening(rendered=False),
        (False, DECIDED),
    ),
    "the prompt of a request that says off is closed": (
        "llama-server",
        "Qwen3.5-9B",
        ReplyOpening(toggles=OFF, off=True, rendered=False),
        (False, DECIDED),
    ),
    "off was asked, and the prompt opens the thinking all the same": (
        "vllm",
        "deepseek-r1",
        ReplyOpening(off=True, rendered=True),
        (False, UNDECIDED),
    ),
    "off was asked of a model that thinks": ("ollama", "qwen3:4b", ReplyOpening(off=True), (False, UNDECIDED)),
    "off was asked of a model that nobody knows": ("vllm", "llama-3.1", ReplyOpening(off=True), (False, DECIDED)),
    "the request turns it on": ("vllm", "Qwen3.5-9B", ReplyOpening(toggles=ON), (True, UNDECIDED)),
    "earlier replies began inside": ("vllm", "lab-model", ReplyOpening(seen="inside"), (True, UNDECIDED)),
    "earlier replies began inside, and a schema is asked": (
        "vllm",
        "deepseek-r1",
        ReplyOpening(seen="inside", schema=True),
        (False, UNDECIDED),
    ),
    "earlier replies were separated": (
        "vllm",
        "deepseek-r1",
        ReplyOpening(seen="separated", rendered=True),
        (False, DECIDED),
    ),
    "off was honoured before": ("ollama", "qwen3:4b", ReplyOpening(off=True, seen="outside"), (False, DECIDED)),
    "a host may hide it": ("together", "deepseek-r1", ReplyOpening(rendered=True), (False, DECIDED)),
    "an unknown server": ("openai-compatible", "deepseek-r1", ReplyOpening(), (True, UNDECIDED)),
}


@pytest.mark.parametrize(("preset", "model", "known", "expected"), STREAMS.values(), ids=STREAMS)
def test_a_stream_is_held_only_where_the_evidence_leaves_its_beginning_open(
    preset: str, model: str, known: ReplyOpening, expected: tuple[bool, bool]
) -> None:
    found = reading(preset, model, beginning=msgspec.structs.replace(known, streamed=True))
    assert (found.starts_inside, found.undecided) == expected


@pytest.mark.parametrize(("preset", "model"), [("vllm", "any"), ("ollama", "qwen3:4b"), ("together", "deepseek-r1")])
def test_a_whole_reply_is_decided_by_its_own_text(preset: str, model: str) -> None:
    assert reading(preset, model).undecided
    assert not reading(preset, model, beginning=ReplyOpening(seen="separated")).undecided


def test_less_is_held_of_a_stream_the_more_is_known_and_all_of_a_whole_reply() -> None:
    def limit(**known: Any) -> int | None:
        return reading("vllm", "deepseek-r1", beginning=ReplyOpening(**known)).hold_limit

    assert limit() is None
    seen, guessed, answer = (
        limit(streamed=True, seen="inside"),
        limit(streamed=True),
        limit(streamed=True, schema=True),
    )
    assert seen is not None
    assert guessed is not None
    assert answer is not None
    assert seen < guessed < answer


def test_what_a_host_says_of_a_model_without_a_format_is_text() -> None:
    assert not reading("together", "any").undecided


def test_one_reply_without_thinking_says_nothing_of_the_next_unless_it_was_told_so() -> None:
    assert seen_start("none", off=False) is None
    assert seen_start("none", off=True) == "outside"
    assert seen_start("unclosed", off=False) is None


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
