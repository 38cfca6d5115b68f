"""What a reply used that did not come to its end, from what was counted and what was written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.replies.reply_reader import row_reader
from bardo.replies.written_tokens import OutputEstimates, WrittenTokens
from bardo.surfaces.library.decoding import provider_row
from bardo.values.errors import EmptyReply
from bardo.values.events import ContentChunk, Event, Finish, ThinkChunk, ToolCallChunk, ToolCallStart, UsageUpdate
from bardo.values.usage import Usage, UsageDetails

LETTERS = "word" * 100
"""A hundred tokens by its letters."""


def written(*frames: Event) -> WrittenTokens:
    """Return the count of a reply whose frames hold one event each."""
    count = WrittenTokens()
    for one in frames:
        count.feed([one])
    return count


def counted(output: int, **fields: Any) -> UsageUpdate:
    return UsageUpdate(Usage(input_tokens=12, output_tokens=output, **fields))


def test_of_a_reply_without_a_word_nothing_is_known() -> None:
    assert written().unfinished_usage() is None


@pytest.mark.parametrize(
    "frames",
    [
        (ContentChunk(0, LETTERS), ThinkChunk(1, LETTERS)),
        (ToolCallStart(0, id="c", name=""), ToolCallChunk(0, LETTERS), ContentChunk(1, LETTERS)),
    ],
    ids=["text-and-thinking", "arguments-and-text"],
)
def test_text_thinking_and_arguments_count(frames: tuple[Event, ...]) -> None:
    usage = written(counted(1), *frames).unfinished_usage()
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.approx) == (12, 201, True)


def test_thinking_that_passed_is_estimated_as_thinking() -> None:
    usage = written(ThinkChunk(0, LETTERS), ContentChunk(1, LETTERS)).unfinished_usage()
    assert usage is not None
    assert (usage.reasoning_tokens, usage.output_tokens) == (100, 200)


def test_a_count_on_the_way_holds_for_what_came_before_it() -> None:
    usage = written(ContentChunk(0, LETTERS), counted(90), ContentChunk(0, LETTERS)).unfinished_usage()
    assert usage is not None
    assert usage.output_tokens == 190


def test_a_count_that_says_too_little_of_what_came_is_none() -> None:
    usage = written(ContentChunk(0, LETTERS), counted(1), ContentChunk(0, LETTERS)).unfinished_usage()
    assert usage is not None
    assert usage.output_tokens == 200


def test_a_reply_whose_model_had_ended_and_was_counted_is_exact() -> None:
    usage = written(ContentChunk(0, LETTERS), Finish("stop"), counted(77)).unfinished_usage()
    assert usage is not None
    assert (usage.output_tokens, usage.approx) == (77, False)


def test_a_reply_whose_end_has_no_word_is_not_exact() -> None:
    usage = written(ContentChunk(0, LETTERS), Finish("unknown"), counted(77)).unfinished_usage()
    assert usage is not None
    assert usage.approx


def test_the_output_that_is_billed_is_told_by_the_estimate_too() -> None:
    details = UsageDetails(billed_output_tokens=1)
    usage = written(counted(1, details=details, cost_usd=0.1), ContentChunk(0, LETTERS)).unfinished_usage()
    assert usage is not None
    assert usage.details == UsageDetails()
    assert usage.cost_usd is None


def test_tokens_of_a_model_are_learned_from_its_whole_replies() -> None:
    estimates = OutputEstimates()
    estimates.learn(written(ContentChunk(0, LETTERS), counted(150)), "p", "m")
    assert estimates.correction("p", "m") == 1.5
    assert estimates.correction("p", "other") == 1.0
    assert estimates.correction("p", "m", "another caller") == 1.0
    estimates.learn(written(ContentChunk(0, LETTERS), counted(100)), "p", "m")
    assert 1.0 < estimates.correction("p", "m") < 1.5
    usage = written(ContentChunk(0, LETTERS)).unfinished_usage(1.5)
    assert usage is not None
    assert usage.output_tokens == 150


@pytest.mark.parametrize(
    "frames",
    [
        (ContentChunk(0, "short"), counted(3)),
        (ContentChunk(0, LETTERS), counted(9_000)),
        (ThinkChunk(0, "shown in part"), ContentChunk(1, LETTERS), counted(700)),
        (ContentChunk(0, LETTERS),),
    ],
    ids=["short", "far-from-its-text", "thinking-not-counted-apart", "not-counted"],
)
def test_what_says_nothing_of_a_models_tokens_is_not_learned(frames: tuple[Event, ...]) -> None:
    estimates = OutputEstimates()
    estimates.learn(written(*frames), "p", "m")
    assert estimates.correction("p", "m") == 1.0


def test_thinking_that_is_counted_apart_leaves_the_answer() -> None:
    estimates = OutputEstimates()
    estimates.learn(
        written(ThinkChunk(0, "brief"), ContentChunk(1, LETTERS), counted(620, reasoning_tokens=500)), "p", "m"
    )
    assert estimates.correction("p", "m") == 1.2


OPENAI_USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
GEMINI_USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("deepseek", {"choices": [], "usage": OPENAI_USAGE}),
        ("deepseek", {"choices": None, "usage": OPENAI_USAGE}),
        ("deepseek", {"choices": [{}], "usage": OPENAI_USAGE}),
        ("gemini", {"candidates": [], "usageMetadata": GEMINI_USAGE}),
        ("gemini", {"usageMetadata": GEMINI_USAGE}),
        ("anthropic", {"type": "message", "content": [], "usage": {"input_tokens": 5, "output_tokens": 7}}),
        ("anthropic", {"type": "message", "content": None, "usage": {"input_tokens": 5, "output_tokens": 7}}),
        ("bedrock", {"output": {"message": {"content": []}}, "usage": {"inputTokens": 5, "outputTokens": 7}}),
        ("bedrock", {"output": None, "usage": {"inputTokens": 5, "outputTokens": 7}}),
        ("cohere", {"message": {"content": []}, "usage": {"tokens": {"input_tokens": 5, "output_tokens": 7}}}),
        ("cohere", {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 5, "output_tokens": 7}}}),
        ("cohere", {"message": None, "usage": {"tokens": {"input_tokens": 5, "output_tokens": 7}}}),
        ("anthropic", {"usage": {"input_tokens": 5, "output_tokens": 7}}),
        ("bedrock", {"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 7}}),
        ("ollama", {"model": "m", "prompt_eval_count": 5, "eval_count": 7}),
        ("ollama", {"message": {"content": ""}, "prompt_eval_count": 5, "eval_count": 7}),
        ("openai-responses", {"usage": {"input_tokens": 5, "output_tokens": 7}}),
    ],
)
def test_a_whole_body_that_holds_nothing_is_an_empty_reply_with_its_usage(provider: str, body: dict[str, Any]) -> None:
    reader = row_reader(provider_row(provider), streamed=False)
    reader.read_whole(json.dumps(body).encode())
    usage = reader.unfinished_usage()
    assert type(reader.failure) is EmptyReply
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.approx) == (5, 7, False)


@pytest.mark.parametrize("cut", [b'{"choices": [', b'{"choices": []', b"[]", b'"choices"'])
def test_half_a_body_is_no_empty_reply(cut: bytes) -> None:
    reader = row_reader(provider_row("deepseek"), streamed=False)
    reader.read_whole(cut)
    assert reader.failure is not None
    assert type(reader.failure) is not EmptyReply


def test_an_empty_message_of_ollama_that_is_done_is_a_reply() -> None:
    reader = row_reader(provider_row("ollama"), streamed=False)
    reader.read_whole(json.dumps({"model": "m", "done": True, "eval_count": 7}).encode())
    assert reader.failure is None
    assert reader.usage.output_tokens == 7
