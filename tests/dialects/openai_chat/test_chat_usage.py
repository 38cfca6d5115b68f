"""Usage in Chat Completions, read and written."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.dialects.openai_chat.usage import decode_usage, encode_usage
from bardo.values.usage import Usage
from dialects.openai_chat.chat import ROW, chunk, message, row_with, streamed

OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 30,
    "total_tokens": 130,
    "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 20},
}
READ: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "OpenAI": (OPENAI, {"input_tokens": 100, "output_tokens": 30, "reasoning_tokens": 20, "cached_input_tokens": 60}),
    "xAI, whose total tells": (
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35, "completion_tokens_details": {"reasoning_tokens": 20}},
        {"output_tokens": 25, "reasoning_tokens": 20},
    ),
    "DeepSeek": ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4}, {"cached_input_tokens": 4}),
    "Moonshot": ({"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 4}, {"cached_input_tokens": 4}),
    "Qwen": (
        {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cache_creation_input_tokens": 3}},
        {"cache_write_tokens": 3},
    ),
    "Copilot": ({"prompt_tokens": 10, "completion_tokens": 5, "reasoning_tokens": 2}, {"reasoning_tokens": 2}),
    "the names of the Responses dialect": (
        {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}},
        {"input_tokens": 10, "output_tokens": 5, "reasoning_tokens": 2},
    ),
    "details null": ({"prompt_tokens": 10, "completion_tokens_details": None}, {"input_tokens": 10, "reasoning_tokens": None}),
    "OpenRouter's price": ({"prompt_tokens": 10, "cost": 0.5}, {"cost_usd": 0.5}),
    "no price": ({"prompt_tokens": 10, "cost": None}, {"cost_usd": None}),
    "a price of nothing": ({"prompt_tokens": 10, "cost": 0}, {"cost_usd": 0.0}),
    "Perplexity's price": ({"prompt_tokens": 10, "cost": {"request_cost": 0.1, "total_cost": 0.25}}, {"cost_usd": 0.25}),
    "xAI's price": ({"prompt_tokens": 10, "cost_in_usd_ticks": 4389400}, {"cost_usd": 0.00043894}),
    "a price beyond all bounds": ({"prompt_tokens": 10, "cost": 10**400}, {"cost_usd": None}),
    "nothing reported": ({}, {"input_tokens": None, "output_tokens": None, "reasoning_tokens": None}),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "fields"), READ.values(), ids=READ.keys())
def test_reading(raw: dict[str, Any], fields: dict[str, Any]) -> None:
    usage, doubts = decode_usage(raw, excludes_reasoning=None)
    assert {name: getattr(usage, name) for name in fields} == fields
    assert usage.raw == raw
    assert doubts == ()


def test_venices_price_stands_beside_the_usage() -> None:
    assert (
        decode_usage({"prompt_tokens": 1}, excludes_reasoning=None, cost={"usd": 0.25, "diem": 0})[0].cost_usd == 0.25
    )
    response = streamed(
        chunk({"content": "a"}, "stop"), {"choices": [], "cost": {"usd": 0.25}, "usage": {"prompt_tokens": 1}}
    )
    assert response.usage.cost_usd == 0.25


def test_impossible_counts_are_left_out_and_reported() -> None:
    raw = {"prompt_tokens": -1, "completion_tokens": -9, "completion_tokens_details": {"reasoning_tokens": 2.5}}
    usage, doubts = decode_usage(raw, excludes_reasoning=None)
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (None, None, None)
    assert [(doubt.what, doubt.asked) for doubt in doubts] == [
        ("usage.input_tokens", -1),
        ("usage.output_tokens", -9),
        ("usage.reasoning_tokens", 2.5),
    ]


def test_more_reasoning_than_output_is_capped_and_reported() -> None:
    raw = {
        "prompt_tokens": 5,
        "completion_tokens": 10,
        "total_tokens": 15,
        "completion_tokens_details": {"reasoning_tokens": 96},
    }
    response = message(content="a", usage=raw)
    assert (response.usage.output_tokens, response.usage.reasoning_tokens) == (10, 10)
    assert [(lost.asked, lost.sent) for lost in response.degraded] == [(96, 10)]


@pytest.mark.parametrize(("excludes_reasoning", "output"), [(True, 50), (False, 30), (None, 30)])
def test_the_providers_row_says_where_reasoning_is_counted(excludes_reasoning: bool | None, output: int) -> None:
    response = message(content="a", usage=OPENAI, row=row_with(output_excludes_reasoning=excludes_reasoning))
    assert response.usage.output_tokens == output


def test_a_later_report_replaces_an_earlier_one_but_forgets_nothing() -> None:
    first = {"prompt_tokens": 10, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 1}}
    response = streamed(chunk({"content": "a"}, usage=first), chunk({}, "stop", usage={"completion_tokens": 5}))
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (10, 5, 1)
    assert usage.raw == {"completion_tokens": 5}


@pytest.mark.parametrize(
    "frame",
    [{"choices": [], "x_groq": {"usage": OPENAI}}, chunk({}, "stop", choice_usage=OPENAI)],
    ids=["Groq", "Moonshot"],
)
def test_usage_may_stand_elsewhere(frame: dict[str, Any]) -> None:
    assert streamed(chunk({"content": "a"}, "stop"), frame).usage.total_tokens == 130


def test_usage_in_every_frame_is_told_when_it_changes() -> None:
    assert (
        streamed(*(chunk({"content": "a"}, usage={"completion_tokens": n}) for n in (1, 1, 2))).usage.output_tokens == 2
    )


@pytest.mark.parametrize(
    "raw", [raw for raw, _ in READ.values() if raw], ids=[name for name, (raw, _) in READ.items() if raw]
)
def test_what_is_written_reads_back(raw: dict[str, Any]) -> None:
    usage, _ = decode_usage(raw, excludes_reasoning=None)
    written = encode_usage(usage)
    assert written is not None
    again, doubts = decode_usage(written, excludes_reasoning=None)
    assert (again.reasoning_tokens, again.cached_input_tokens) == (usage.reasoning_tokens, usage.cached_input_tokens)
    assert (again.input_tokens or 0, again.output_tokens or 0) == (usage.input_tokens or 0, usage.output_tokens or 0)
    assert doubts == ()


def test_further_fields_of_the_provider_are_kept() -> None:
    raw = {**OPENAI, "queue_time": 0.1, "completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 3}}
    written = encode_usage(decode_usage(raw, excludes_reasoning=None)[0])
    assert written == {**raw, "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0}}


def test_usage_of_another_dialect_is_written_in_these_names() -> None:
    usage = Usage(input_tokens=9, output_tokens=5, cache_write_tokens=2, raw={"input_tokens": 3, "iterations": []})
    assert encode_usage(usage) == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cache_write_tokens": 2},
    }


def test_unknown_usage_is_not_written() -> None:
    assert encode_usage(Usage(raw=OPENAI)) is None
    assert ROW.quirks.output_excludes_reasoning is None


def test_more_cached_than_input_is_capped_and_reported() -> None:
    # Grok on Azure has been recorded with 377 prompt tokens, 515 of them cached.
    usage, [doubt] = decode_usage(
        {"prompt_tokens": 377, "prompt_tokens_details": {"cached_tokens": 515}}, excludes_reasoning=None
    )
    assert (usage.input_tokens, usage.cached_input_tokens) == (377, 377)
    assert (doubt.what, doubt.asked, doubt.sent) == ("usage.cached_input_tokens", 515, 377)


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        (Usage(input_tokens=7), 7),
        (Usage(output_tokens=5), 5),
        (Usage(input_tokens=7, raw={"prompt_tokens": 7, "total_tokens": 30}), 30),
        (Usage(input_tokens=7, raw={"prompt_tokens": 7, "total_tokens": None}), 7),
    ],
    ids=["no output", "no input", "the provider's total", "no total"],
)
def test_the_total_of_an_unknown_count_is_what_is_known(usage: Usage, total: int) -> None:
    written = encode_usage(usage)
    assert written is not None
    assert written["total_tokens"] == total
