"""Replies that no recording holds: rare steps, odd orders, and what breaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused, UpstreamTimeout
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import ReasoningPolicy, Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from dialects.gemini_interactions.replies import (
    DIALECT,
    REQUEST,
    completed,
    delta,
    events_of,
    payloads,
    read,
    read_steps,
    read_stream,
    sse,
    start,
    stop,
    write_stream,
)

NAME = "gemini_interactions"
SIGNATURE = Opaque("signature", "c2lnbmVk", "google-gemini-v1")
CLAUDE = Opaque("signature", "Y2xhdWRl", "anthropic-claude-v1")
IMAGE = {"type": "image", "data": "AAAA", "mime_type": "image/png"}
CITED = [{"type": "url_citation", "url": "https://example.org", "start_index": 0, "end_index": 2}]
SEARCH = {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["q"]}}


def written_both_ways(response: Response, events: list[Event]) -> tuple[Response, Response]:
    return (
        read(DIALECT.encode_response(response, REQUEST), stream=False),
        read(write_stream(events), stream=True),
    )


def test_a_step_with_several_contents_is_several_blocks() -> None:
    texts = [{"type": "text", "text": "a"}, IMAGE, IMAGE, {"type": "text", "text": "b", "annotations": CITED}]
    response = read_steps({"type": "model_output", "content": texts})
    assert response.blocks == (
        TextBlock("a"),
        UnknownBlock(NAME, {"type": "model_output", "content": [IMAGE, IMAGE]}),
        TextBlock("b", carried=Carried(NAME, {"annotations": CITED})),
    )
    assert response.text == "ab"


STREAMED: dict[str, tuple[list[dict[str, Any]], tuple[Any, ...]]] = {
    "annotations after the text": (
        [
            start(0, type="model_output"),
            delta(0, type="text", text="hi"),
            delta(0, type="text_annotation_delta", annotations=CITED),
            stop(0),
        ],
        (TextBlock("hi", carried=Carried(NAME, {"annotations": CITED})),),
    ),
    "a call of nothing": (
        [start(0, type="function_call", id="c", name="f", arguments={}), stop(0)],
        (ToolCallBlock(id="c", name="f", arguments="{}"),),
    ),
    "a call that is whole at once": (
        [start(0, type="function_call", id="c", name="f", arguments={"a": 1}, signature="c2lnbmVk"), stop(0)],
        (ToolCallBlock(id="c", name="f", arguments='{"a":1}', opaque=(SIGNATURE,)),),
    ),
    "calls that alternate": (
        [
            start(0, type="function_call", id="c", name="f", arguments={}),
            start(1, type="function_call", id="d", name="g", arguments={}),
            delta(1, type="arguments_delta", arguments='{"b"'),
            delta(0, type="arguments_delta", arguments='{"a":1}'),
            delta(1, type="arguments_delta", arguments=":2}"),
            stop(1),
            stop(0),
        ],
        (ToolCallBlock(id="c", name="f", arguments='{"a":1}'), ToolCallBlock(id="d", name="g", arguments='{"b":2}')),
    ),
    "a step nobody knows": (
        [start(0, type="google_search_call", id="s1"), delta(0, **{**SEARCH, "id": ""}), stop(0)],
        (UnknownBlock(NAME, SEARCH),),
    ),
    "an image among the text": (
        [
            start(0, type="model_output"),
            delta(0, type="text", text="see"),
            delta(0, **IMAGE),
            delta(0, type="text", text="that"),
            stop(0),
        ],
        (TextBlock("see"), UnknownBlock(NAME, {"type": "model_output", "content": [IMAGE]}), TextBlock("that")),
    ),
    "an output of nothing": ([start(0, type="model_output"), stop(0)], (TextBlock(""),)),
    "a thought with fields nobody knows": (
        [start(0, type="thought", mood="calm"), delta(0, type="thought_mood", mood="glad"), stop(0)],
        (
            ReasoningBlock(
                format="google-gemini-v1",
                carried=Carried(NAME, {"mood": "calm", "deltas": [{"type": "thought_mood", "mood": "glad"}]}),
            ),
        ),
    ),
    "a step that was not announced": ([delta(4, type="text", text="hi")], (TextBlock("hi"),)),
    "steps that never stopped": ([start(0, type="model_output"), delta(0, type="text", text="hi")], (TextBlock("hi"),)),
    "an output with a field of its own": (
        [start(0, type="model_output", error={"code": 3}), delta(0, type="text", text="hi"), stop(0)],
        (TextBlock("hi", carried=Carried(NAME, {"step": {"error": {"code": 3}}})),),
    ),
}


@pytest.mark.parametrize("case", STREAMED)
def test_streams_are_read_and_written_back(case: str) -> None:
    given, blocks = STREAMED[case]
    response = read_stream(*given, completed())
    assert response.error is None
    assert response.blocks == blocks
    assert read(DIALECT.encode_response(response, REQUEST), stream=False).blocks == blocks


def test_fields_of_the_reply_are_carried_once() -> None:
    opening = {"event_type": "interaction.created", "interaction": {"id": "v1_1", "environment_id": "e"}}
    end = completed(environment_id="e", service_tier="standard", created="2026-05-15T18:52:36.5Z")
    response = read_stream(opening, end)
    fields = {"environment_id": "e", "service_tier": "standard", "created": "2026-05-15T18:52:36.5Z"}
    assert response.carried == Carried(NAME, fields)
    assert response.created == 1778871156
    assert read(DIALECT.encode_response(response, REQUEST), stream=False).created == response.created


def test_usage_in_the_middle_is_replaced_by_the_last() -> None:
    first = {**delta(0, type="text", text="a"), "metadata": {"total_usage": {"total_input_tokens": 3}}}
    usage = {"total_input_tokens": 3, "total_output_tokens": 2, "total_tokens": 5, "total_cached_tokens": 1}
    assert read(sse(start(0, type="model_output"), first), stream=True).usage.input_tokens == 3
    told = read_stream(first, completed(usage=usage)).usage
    assert (told.input_tokens, told.output_tokens, told.cached_input_tokens) == (3, 2, 1)


USAGES = {
    "beside": (
        {"total_input_tokens": 5, "total_output_tokens": 2, "total_thought_tokens": 4, "total_tokens": 11},
        (5, 6, 4),
    ),
    "no total": ({"total_input_tokens": 5, "total_output_tokens": 2, "total_thought_tokens": 4}, (5, 6, 4)),
    "inside by the total": (
        {"total_input_tokens": 5, "total_output_tokens": 6, "total_thought_tokens": 4, "total_tokens": 11},
        (5, 6, 4),
    ),
    "tools beside the input": (
        {"total_input_tokens": 5, "total_tool_use_tokens": 7, "total_output_tokens": 2, "total_tokens": 14},
        (12, 2, None),
    ),
    "thoughts alone": ({"total_thought_tokens": 4}, (None, 4, 4)),
    "impossible": ({"total_input_tokens": -1, "total_output_tokens": 2}, (None, 2, None)),
}


@pytest.mark.parametrize("case", USAGES)
def test_counts_are_brought_under_one_algebra(case: str) -> None:
    raw, expected = USAGES[case]
    response = read_steps(usage=raw)
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == expected
    assert bool(response.degraded) is (case == "impossible")
    assert json.loads(DIALECT.encode_response(response, REQUEST))["usage"] == raw


def test_foreign_counts_are_written_in_the_dialects_own_way() -> None:
    usage = Usage(input_tokens=10, output_tokens=7, reasoning_tokens=4, cached_input_tokens=3)
    written = json.loads(DIALECT.encode_response(Response(usage=usage), REQUEST))["usage"]
    assert written == {
        "total_input_tokens": 10,
        "total_cached_tokens": 3,
        "total_output_tokens": 3,
        "total_thought_tokens": 4,
        "total_tool_use_tokens": 0,
        "total_tokens": 17,
        "input_tokens_by_modality": [{"modality": "text", "tokens": 10}],
    }


FOREIGN: list[Event] = [
    ReplyStart(id="r1", model="claude", created=1_700_000_000),
    ThinkStart(0, "anthropic-claude-v1"),
    ThinkChunk(0, "let "),
    ThinkChunk(0, "me"),
    ThinkEnd(0),
    OpaqueState(0, CLAUDE),
    ContentChunk(1, "Look"),
    ContentChunk(1, "ing."),
    ToolCallStart(2, "c1", "f"),
    ToolCallStart(3, "c2", "g"),
    ToolCallChunk(3, '{"b":2}'),
    ToolCallChunk(2, '{"a":'),
    ToolCallChunk(2, "1}"),
    ToolCallEnd(2),
    ToolCallEnd(3),
    OpaqueState(3, SIGNATURE),
    OpaqueState(1, CLAUDE),
    UsageUpdate(Usage(input_tokens=10, output_tokens=7, reasoning_tokens=4)),
    Finish("tool_calls", "tool_use"),
]


def test_a_foreign_reply_says_the_same_whole_and_streamed() -> None:
    for told in written_both_ways(fold(FOREIGN), FOREIGN):
        assert told.error is None
        assert (told.id, told.model, told.created) == ("r1", "claude", 1_700_000_000)
        assert told.blocks == (
            ReasoningBlock(summary=("let me",), format="google-gemini-v1", opaque=(CLAUDE,)),
            TextBlock("Looking.", opaque=(CLAUDE,)),
            ToolCallBlock(id="c1", name="f", arguments='{"a":1}'),
            ToolCallBlock(id="c2", name="g", arguments='{"b":2}', opaque=(SIGNATURE,)),
        )
        assert told.finish == Finish("tool_calls", "requires_action")
        assert (told.usage.input_tokens, told.usage.output_tokens, told.usage.reasoning_tokens) == (10, 7, 4)


def test_steps_of_a_stream_begin_and_end_once() -> None:
    open_steps: set[int] = set()
    for payload in payloads(write_stream(FOREIGN)):
        if payload["event_type"] == "step.start":
            assert payload["index"] not in open_steps
            open_steps.add(payload["index"])
        elif payload["event_type"] == "step.stop":
            open_steps.remove(payload["index"])
    assert open_steps == set()


def test_parts_of_a_summary_stay_apart() -> None:
    events: list[Event] = [
        ThinkStart(0, "openai-responses-v1"),
        *(ThinkChunk(0, text, part) for text, part in (("a", 0), ("b", 0), ("c", 1), ("d", 1))),
        Finish("stop"),
    ]
    for told in written_both_ways(fold(events), events):
        assert [block.summary for block in told.reasoning_blocks] == [("ab", "cd")]


def test_text_that_goes_on_after_another_block_has_a_step_of_its_own() -> None:
    events: list[Event] = [
        ContentChunk(0, "a"),
        ThinkStart(1),
        ThinkChunk(1, "hm"),
        ContentChunk(0, "b"),
        ThinkChunk(1, "so"),
        Finish("stop"),
    ]
    told = read(write_stream(events), stream=True)
    assert told.text == "ab"
    assert [block.summary for block in told.reasoning_blocks] == [("hm",), ("so",)]


def test_what_only_other_dialects_know_is_left_out() -> None:
    events: list[Event] = [
        ContentChunk(0, "a"),
        BlockFields(0, "openai_chat", {"logprobs": []}),
        UnknownContent(1, "anthropic_messages", {"type": "x"}),
        ReplyFields("openai_chat", {"system_fingerprint": "fp"}),
        ContentChunk(0, "other", choice=1),
        Finish("stop"),
    ]
    for told in written_both_ways(fold(events), events):
        assert told.blocks == (TextBlock("a"),)
        assert told.carried == Carried("gemini_interactions", {"service_tier": "standard"})


def test_bardos_own_words_stand_in_the_last_event() -> None:
    *_, last = payloads(write_stream([ContentChunk(0, "a"), Finish("stop"), Extension({"receipt": {"a": 1}})]))
    assert last["interaction"]["bardo"] == {"receipt": {"a": 1}}
    assert json.loads(DIALECT.encode_response(Response(bardo={"receipt": 1}), REQUEST))["bardo"] == {"receipt": 1}


def test_a_client_that_wants_no_summaries_gets_the_state_alone() -> None:
    policy = ReasoningPolicy(mode="auto", visible=False)
    request = Request(model="m", messages=(), dialect=NAME, reasoning=policy)
    events: list[Event] = [ThinkStart(0), ThinkChunk(0, "secret"), OpaqueState(0, CLAUDE), Finish("stop")]
    streamed = read(write_stream(events, request), stream=True)
    whole = read(DIALECT.encode_response(fold(events), request), stream=False)
    expected = (ReasoningBlock(format="google-gemini-v1", opaque=(CLAUDE,)),)
    assert (streamed.blocks, whole.blocks) == (expected, expected)


@pytest.mark.parametrize(
    ("finish", "status"),
    [
        (Finish("stop", "stop"), "completed"),
        (Finish("stop", "completed"), "completed"),
        (Finish("length", "max_tokens"), "incomplete"),
        (Finish("length", "budget_exceeded"), "budget_exceeded"),
        (Finish("pause", "pause_turn"), "incomplete"),
        (Finish("refusal", "SAFETY"), "completed"),
        (Finish("unknown", ""), "completed"),
    ],
    ids=str,
)
def test_endings_are_written_in_the_dialects_words(finish: Finish, status: str) -> None:
    assert payloads(write_stream([ContentChunk(0, "a"), finish]))[-1]["interaction"]["status"] == status
    assert json.loads(DIALECT.encode_response(Response(finish=finish), REQUEST))["status"] == status


def test_a_reply_that_ends_with_a_call_asks_for_its_result() -> None:
    events: list[Event] = [ToolCallStart(0, "c", "f"), ToolCallEnd(0), Finish("stop", "stop")]
    for told in written_both_ways(fold(events), events):
        assert told.finish.raw == "requires_action"


def test_an_empty_reply_is_still_well_formed() -> None:
    told = read(write_stream([]), stream=True)
    assert (told.error, told.blocks, told.model) == (None, (), REQUEST.model)


def test_an_error_in_the_stream_is_the_end_of_it() -> None:
    error = {"event_type": "error", "error": {"code": "resource_exhausted", "message": "too much"}}
    response = read(
        sse(start(0, type="model_output"), delta(0, type="text", text="hi"), error, completed()), stream=True
    )
    assert response.text == "hi"
    assert isinstance(response.error, UpstreamRefused)
    assert (response.error.status, response.error.upstream_code) == (429, "resource_exhausted")


def test_an_interaction_that_failed_is_a_failure() -> None:
    response = read_steps(status="failed", errors=[{"code": "internal", "message": "it broke"}])
    assert isinstance(response.error, UpstreamRefused)
    assert (response.error.message, response.error.status) == ("it broke", 500)


def test_a_failure_is_written_as_an_error_and_ends_the_stream() -> None:
    stream = write_stream([ContentChunk(0, "a"), Failed(UpstreamTimeout("too slow")), ContentChunk(0, "b")])
    told = payloads(stream)
    assert told[-1]["event_type"] == "error"
    assert told[-1]["error"]["code"] == "deadline_exceeded"
    assert read(stream, stream=True).text == "a"


@pytest.mark.parametrize(
    "body",
    [b"", b"not json", b"[]", b'{"a":1}', b'{"object":"interaction","steps":{}}', b'{"steps":[1]}'],
    ids=str,
)
def test_what_is_no_interaction_is_malformed(body: bytes) -> None:
    assert isinstance(read(body, stream=False).error, BrokenStream if not body else MalformedReply)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"event_type": "step.delta", "delta": {"type": "text", "text": None}}, "text is null"),
        ({"event_type": "step.delta", "delta": {"type": "text", "text": 5, "x": 1}}, "text is a number"),
        ({"event_type": "step.delta", "delta": {"type": "thought_summary"}}, "content is null"),
        ({"event_type": "step.delta", "index": True, "delta": {"type": "text"}}, "index is no whole number"),
        ({"event_type": "step.start", "step": "a"}, "step is a string"),
        ({"event_type": "interaction.completed", "interaction": None}, "interaction is null"),
        ({"object": "interaction", "steps": [{"type": "thought", "summary": [5]}]}, "summary[0] is a number"),
        ({"object": "interaction", "steps": [5]}, "steps[0] is a number"),
        ({"object": "interaction", "usage": []}, "usage is an array"),
        ({"delta": []}, "neither an event nor an interaction"),
    ],
)
def test_what_is_wrong_in_a_reply_is_named(body: dict[str, Any], words: str) -> None:
    error = read(json.dumps(body).encode(), stream=False).error
    assert error is not None
    assert error.message == f"the reply is no interaction: {words}"


def test_steps_before_one_that_is_wrong_are_read() -> None:
    steps = [{"type": "model_output", "content": [{"type": "text", "text": "a"}]}, {"type": "thought", "summary": {}}]
    found = read(json.dumps({"object": "interaction", "steps": steps}).encode(), stream=False)
    assert found.text == "a"
    assert isinstance(found.error, MalformedReply)


def test_a_piece_without_the_name_of_its_event_is_read() -> None:
    piece = b'data: {"index": 0, "delta": {"type": "text", "text": "a"}}\n\n'
    events = events_of(sse(start(0, type="model_output")) + piece, stream=True)
    assert ContentChunk(0, "a") in events


def test_contents_without_a_type_are_kept_beside_the_text() -> None:
    step = {"type": "model_output", "content": [{"a": 1}, {"type": "text", "text": "b"}, {"type": 5}]}
    found = read(json.dumps({"object": "interaction", "status": "completed", "steps": [step]}).encode(), stream=False)
    kept = [block.value["content"] for block in found.blocks if isinstance(block, UnknownBlock)]
    assert kept == [[{"a": 1}], [{"type": 5}]]
