"""Replies written for clients of the Responses dialect."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bardo.dialects.openai_responses import DIALECT
from bardo.dialects.openai_responses.wire import SealContent, attach, opened
from bardo.dialects.shared.states import unseal
from bardo.values.blocks import Opaque, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, fields_for
from bardo.values.errors import BrokenStream, UpstreamRefused
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
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
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from dialects.openai_responses.replies import ARRIVAL, REQUEST, events_of, payloads, read_whole, write_stream

START = ReplyStart(id="chatcmpl-1", model="other-1", created=7)
CLAUDE = Opaque("signature", "SIGNED", "anthropic-claude-v1")
CIPHER = Opaque("encrypted", "CIPHER", "openai-responses-v1")
LATE_ID = Opaque("id", "rs_9", "openai-responses-v1")
GROK = Opaque("encrypted", "SEEN", "xai-responses-v1")
STOP = Finish("stop", "end_turn")


def told(*events: Event, request: Request = REQUEST) -> list[dict[str, Any]]:
    return payloads(write_stream([START, *events], request))


def names(written: list[dict[str, Any]]) -> list[str]:
    """Return the events between the opening and the end, without what they have in common."""
    return [one["type"].removeprefix("response.") for one in written[2:-1]]


def final(written: list[dict[str, Any]]) -> dict[str, Any]:
    response: dict[str, Any] = written[-1]["response"]
    return response


def test_a_message_is_told_as_openai_tells_it() -> None:
    written = told(ContentChunk(0, "Hi "), ContentChunk(0, "you"), STOP)
    assert [one["type"] for one in written] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [one["sequence_number"] for one in written] == list(range(10))
    ids = {one["item_id"] for one in written if "item_id" in one} | {written[2]["item"]["id"], written[8]["item"]["id"]}
    assert len(ids) == 1
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": "Hi you"}
    item = {"type": "message", "id": ids.pop(), "status": "completed", "role": "assistant", "content": [part]}
    assert written[8]["item"] == item
    assert final(written)["output"] == [item]
    assert (final(written)["id"], final(written)["created_at"], final(written)["model"]) == ("chatcmpl-1", 7, "other-1")


def test_event_names_stand_in_the_frames_too() -> None:
    stream = write_stream([START, ContentChunk(0, "Hi"), ContentChunk(0, "ho"), STOP])
    frames = [frame.split(b"\n") for frame in stream.strip().split(b"\n\n")]
    assert all(msgspec.json.decode(data[6:])["type"] == event[7:].decode() for event, data in frames)


def test_full_thinking_is_content_of_a_reasoning_item() -> None:
    written = told(
        ThinkStart(0, "reasoning_content"),
        ThinkChunk(0, "Let me "),
        ThinkChunk(0, "think"),
        ThinkEnd(0),
        ContentChunk(1, "Hi"),
        STOP,
    )
    assert names(written)[:8] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
    ]
    item = final(written)["output"][0]
    assert item["content"] == [{"type": "reasoning_text", "text": "Let me think"}]
    assert item["summary"] == []


def test_summaries_are_parts() -> None:
    written = told(ThinkStart(0), ThinkChunk(0, "one", 0), ThinkChunk(0, "two", 1), ThinkEnd(0), STOP)
    assert names(written) == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert [part["text"] for part in final(written)["output"][0]["summary"]] == ["one", "two"]
    assert [one["summary_index"] for one in written if one["type"].endswith("summary_text.delta")] == [0, 1]


def test_own_state_is_written_as_it_is_and_other_state_sealed() -> None:
    own = told(
        ThinkStart(0, "openai-responses-v1"),
        OpaqueState(0, Opaque("id", "rs_9", CIPHER.format)),
        OpaqueState(0, CIPHER),
    )
    assert own[2]["item"] == {"type": "reasoning", "id": "rs_9", "summary": []}
    assert final(own)["output"][0]["encrypted_content"] == "CIPHER"
    other = told(ThinkStart(0, CLAUDE.format), ThinkChunk(0, "hm"), OpaqueState(0, CLAUDE), ThinkEnd(0), STOP)
    assert opened(final(other)["output"][0]["encrypted_content"]) == SealContent((CLAUDE,), text="hm")


LATE: dict[str, list[Event]] = {
    "of a text": [ContentChunk(0, "Hi"), OpaqueState(0, CLAUDE), ContentChunk(0, " you")],
    "of a text that is over": [ContentChunk(0, "Hi"), ThinkStart(1), ThinkChunk(1, "x"), OpaqueState(0, CLAUDE)],
    "of the first of two texts": [ContentChunk(0, "a"), OpaqueState(0, CLAUDE), ContentChunk(1, "b")],
    "an id that comes after the first word": [
        ThinkStart(0, CIPHER.format),
        ThinkChunk(0, "x", 0),
        OpaqueState(0, LATE_ID),
    ],
    "of a look-alike": [ThinkStart(0, GROK.format), ThinkChunk(0, "x", 0), OpaqueState(0, GROK), ContentChunk(1, "Hi")],
    "of a call": [ToolCallStart(0, "call_1", "f"), ToolCallChunk(0, "{}"), OpaqueState(0, CLAUDE), ToolCallEnd(0)],
    "of a call that is over": [ToolCallStart(0, "call_1", "f"), ToolCallEnd(0), OpaqueState(0, CLAUDE)],
    "of thinking that is over": [ThinkStart(0), ThinkChunk(0, "x"), ContentChunk(1, "Hi"), OpaqueState(0, CLAUDE)],
}
BEHIND = (ToolCallStart(7, "call_7", "g"), ToolCallEnd(7))
EARLY: dict[str, tuple[list[Event], type]] = {
    "a text": ([OpaqueState(0, CLAUDE), ContentChunk(0, "Hi")], TextBlock),
    "a call": ([OpaqueState(0, CLAUDE), ToolCallStart(0, "call_1", "f"), ToolCallEnd(0)], ToolCallBlock),
    "thinking": ([OpaqueState(0, CLAUDE), ThinkStart(0), ThinkChunk(0, "x")], ReasoningBlock),
}


def given_back(output: list[dict[str, Any]]) -> list[tuple[type, tuple[Opaque, ...]]]:
    """Return the kinds and states of the blocks that a client gives back with the next request."""
    body = msgspec.json.encode({"model": "m", "input": output})
    (turn,) = DIALECT.decode_request(body, ARRIVAL).messages
    return kinds_and_states(turn.blocks)


def kinds_and_states(blocks: Sequence[Any]) -> list[tuple[type, tuple[Opaque, ...]]]:
    return [(type(block), tuple(block.opaque)) for block in blocks]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", LATE)
def test_state_that_has_no_place_comes_back_where_it_belongs(name: str, streamed: bool) -> None:
    events = [START, *LATE[name], STOP]
    response = fold(events)
    whole = msgspec.json.decode(DIALECT.encode_response(response, REQUEST))
    ended = final(payloads(write_stream(events)))
    output = ended["output"] if streamed else whole["output"]
    assert given_back(output) == kinds_and_states(response.blocks)
    assert "bardo" not in ended


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("empty", [True, False], ids=["empty", "own"])
def test_an_answer_is_the_last_item_and_has_one_text(empty: bool, streamed: bool) -> None:
    text: list[Event] = [ContentChunk(0, "Hi"), *([ContentChunk(1, "")] if empty else [])]
    events = [START, *text, OpaqueState(int(empty), CLAUDE), STOP]
    response = fold(events)
    whole = msgspec.json.decode(DIALECT.encode_response(response, REQUEST))
    written = payloads(write_stream(events))
    output = (final(written) if streamed else whole)["output"]
    assert [part["text"] for part in output[-1]["content"]] == ["Hi"]
    assert given_back(output) == kinds_and_states(response.blocks)
    [done] = [one["item"] for one in written if one["type"] == "response.output_item.done"]
    assert done == whole["output"][-1]
    assert not any("encrypted_content" in one.get("item", {}) for one in written[:-3])


def test_a_message_gives_its_state_back_to_its_last_text() -> None:
    sealed = attach("text", [CLAUDE])
    refusal = {"type": "refusal", "refusal": "no"}
    texts: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": []} for text in ("a", "b")]
    message = {"type": "message", "role": "assistant", "encrypted_content": sealed}
    for content, states in (
        ([*texts, refusal], [(TextBlock, ()), (TextBlock, (CLAUDE,)), (RefusalBlock, ())]),
        ([refusal], [(RefusalBlock, ()), (TextBlock, (CLAUDE,))]),
    ):
        body = msgspec.json.encode({"model": "m", "input": [{**message, "content": content}]})
        (turn,) = DIALECT.decode_request(body, ARRIVAL).messages
        assert [(type(block), getattr(block, "opaque", ())) for block in turn.blocks] == states


def test_a_message_keeps_a_field_that_bardo_did_not_seal() -> None:
    message = {"type": "message", "role": "assistant", "content": "a", "encrypted_content": "their own"}
    body = msgspec.json.encode({"model": "m", "input": [message]})
    (turn,) = DIALECT.decode_request(body, ARRIVAL).messages
    [text] = turn.blocks
    assert isinstance(text, TextBlock)
    assert fields_for("openai_responses", text.carried)["item"] == {"encrypted_content": "their own"}


@pytest.mark.parametrize("name", EARLY)
def test_state_that_comes_before_its_block_comes_back_with_it(name: str) -> None:
    events, kind = EARLY[name]
    output = final(told(*events, *BEHIND, STOP))["output"]
    assert given_back(output) == [(kind, (CLAUDE,)), (ToolCallBlock, ())]


def test_calls_may_alternate() -> None:
    written = told(
        ToolCallStart(0, "call_0", "f"),
        ToolCallStart(1, "call_1", "g"),
        ToolCallChunk(0, '{"a":'),
        ToolCallChunk(1, '{"b":'),
        ToolCallChunk(0, "1}"),
        ToolCallChunk(1, "2}"),
        ToolCallEnd(1),
        ToolCallEnd(0),
        Finish("tool_calls"),
    )
    calls = final(written)["output"]
    assert [(call["call_id"], call["name"], call["arguments"]) for call in calls] == [
        ("call_0", "f", '{"a":1}'),
        ("call_1", "g", '{"b":2}'),
    ]
    ends = [one for one in written if one["type"] == "response.function_call_arguments.done"]
    assert [(one["name"], one["arguments"]) for one in ends] == [("g", '{"b":2}'), ("f", '{"a":1}')]


def test_text_that_goes_on_after_something_else_is_not_lost() -> None:
    events: list[Event] = [
        START,
        ContentChunk(0, "a"),
        ThinkStart(1),
        ThinkChunk(1, "x"),
        ContentChunk(0, "b"),
        ThinkChunk(1, "y"),
        STOP,
    ]
    again = fold(events_of([write_stream(events)], sse=True))
    assert (again.text, again.reasoning.content) == ("ab", "x\n\ny")


def test_neighbouring_texts_share_a_message_and_foreign_fields_are_left_out() -> None:
    fields = BlockFields(0, "anthropic_messages", {"citations": [1]})
    written = told(ContentChunk(0, "a"), fields, ContentChunk(1, "b"), RefusalChunk(2, "no"), STOP)
    (message,) = final(written)["output"]
    assert [part.get("text", part.get("refusal")) for part in message["content"]] == ["a", "b", "no"]
    assert "citations" not in msgspec.json.encode(written).decode()


def test_an_unknown_block_of_another_dialect_is_left_out() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    written = told(UnknownContent(0, "gemini", {"x": 1}), UnknownContent(1, "openai_responses", item), STOP)
    assert final(written)["output"] == [item]
    assert names(written) == ["output_item.added", "output_item.done"]


def test_annotations_are_told_as_they_come() -> None:
    fields = BlockFields(0, "openai_responses", {"annotations": [{"type": "url_citation"}]})
    written = told(ContentChunk(0, "Hi"), fields, fields, STOP)
    notes = [one for one in written if one["type"] == "response.output_text.annotation.added"]
    assert [one["annotation_index"] for one in notes] == [0, 1]
    assert len(final(written)["output"][0]["content"][0]["annotations"]) == 2


@pytest.mark.parametrize(
    ("finish", "ending", "details"),
    [
        (Finish("stop", "end_turn"), "completed", None),
        (Finish("tool_calls", "tool_use"), "completed", None),
        (Finish("length", "MAX_TOKENS"), "incomplete", {"reason": "max_output_tokens"}),
        (Finish("refusal", "refusal"), "incomplete", {"reason": "content_filter"}),
        (None, "completed", None),
    ],
    ids=["stop", "calls", "length", "refusal", "none"],
)
def test_the_end_says_why(finish: Finish | None, ending: str, details: Any) -> None:
    written = told(ContentChunk(0, "Hi"), *([finish] if finish else []))
    assert written[-1]["type"] == f"response.{ending}"
    assert final(written)["status"] == ending
    assert final(written)["incomplete_details"] == details


def test_usage_and_bardos_own_words_stand_in_the_last_frame() -> None:
    usage = Usage(input_tokens=9, output_tokens=8, reasoning_tokens=5, cached_input_tokens=2, raw={"prompt_tokens": 9})
    response = final(told(UsageUpdate(usage), ContentChunk(0, "Hi"), STOP, Extension({"receipt": {"x": 1}})))
    assert response["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 17,
    }
    assert response["bardo"] == {"receipt": {"x": 1}}
    assert final(told(STOP))["usage"] is None


@pytest.mark.parametrize(
    ("output", "counted", "estimate"), [(30, None, 10), (4, None, 4), (None, None, 0), (30, 7, 7), (30, 0, 0)]
)
def test_thinking_that_nobody_counted_is_estimated_and_marked_whole_and_streamed(
    output: int | None, counted: int | None, estimate: int
) -> None:
    usage = Usage(input_tokens=9, output_tokens=output, reasoning_tokens=counted)
    thought: list[Event] = [ThinkStart(0, "plain"), ThinkChunk(0, "x" * 40), ThinkEnd(0)]
    events: list[Event] = [*thought, ContentChunk(1, "Hi"), UsageUpdate(usage), STOP]
    mark = {"tokens_approx": True} if counted is None else {}
    streamed = final(told(*events))["usage"]
    assert streamed["output_tokens_details"] == {"reasoning_tokens": estimate, **mark}
    assert msgspec.json.decode(DIALECT.encode_response(fold(events), REQUEST))["usage"] == streamed


def test_the_request_is_echoed() -> None:
    body = {"model": "m", "input": "x", "temperature": 0.5, "metadata": {"a": "b"}, "store": True}
    request = msgspec.structs.replace(REQUEST, body=body)
    response = final(told(STOP, request=request))
    assert (response["temperature"], response["metadata"], response["store"]) == (0.5, {"a": "b"}, False)
    assert (response["tools"], response["tool_choice"], response["parallel_tool_calls"]) == ([], "auto", True)


def test_a_failure_ends_the_stream_with_both_events() -> None:
    error = UpstreamRefused("No money", status=429, upstream_code="insufficient_quota")
    written = told(ContentChunk(0, "Hi"), Failed(error))
    assert [one["type"] for one in written[-2:]] == ["error", "response.failed"]
    assert written[-2]["code"] == written[-2]["error"]["code"] == "insufficient_quota"
    assert final(written)["error"] == {"code": "insufficient_quota", "message": "No money"}
    assert final(written)["output"][0]["content"][0]["text"] == "Hi"


def test_a_failure_in_forwarded_frames_opens_no_second_response() -> None:
    encoder = DIALECT.open_encoder(REQUEST, ARRIVAL)
    written = payloads(b"".join([*encoder.feed(Failed(BrokenStream("gone"))), *encoder.finish()]))
    assert [one["type"] for one in written] == ["error", "response.failed"]


def test_a_whole_reply_that_failed_says_so() -> None:
    response = Response(blocks=(TextBlock("Hi"),), error=BrokenStream("gone"))
    body = msgspec.json.decode(DIALECT.encode_response(response, REQUEST))
    assert (body["status"], body["error"]) == ("failed", {"code": "broken_stream", "message": "gone"})


def test_ids_are_stable_and_differ_between_replies() -> None:
    def ids(start: ReplyStart) -> list[str]:
        events: list[Event] = [
            start,
            ThinkStart(0),
            ThinkChunk(0, "x"),
            ContentChunk(1, "Hi"),
            ToolCallStart(2, "c", "f"),
            STOP,
        ]
        return [item["id"] for item in final(payloads(write_stream(events)))["output"]]

    assert ids(START) == ids(START)
    assert not {*ids(START)} & {*ids(ReplyStart(id="other"))}
    assert [one.split("_")[0] for one in ids(START)] == ["rs", "msg", "fc"]


PIECES: list[list[Event]] = [
    [ThinkStart(0, "x"), ThinkChunk(0, "a"), ThinkEnd(0)],
    [OpaqueState(0, CLAUDE)],
    [ContentChunk(1, "b"), ContentChunk(1, "c")],
    [ToolCallStart(2, "call_2", "f"), ToolCallChunk(2, "{}"), ToolCallEnd(2)],
    [UsageUpdate(Usage(input_tokens=1, output_tokens=1)), STOP],
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(5))), ids=str)
def test_any_order_of_blocks_gives_every_word_and_every_state(order: tuple[int, ...]) -> None:
    written = payloads(write_stream([START, *(event for place in order for event in PIECES[place])]))
    output = final(written)["output"]
    assert [item["arguments"] for item in output if item["type"] == "function_call"] == ["{}"]
    assert [item["content"][0]["text"] for item in output if item["type"] == "message"] == ["bc"]
    assert any(CLAUDE in (unseal(item.get("encrypted_content", "")) or ()) for item in output)
    assert sum(one["type"] == "response.output_item.done" for one in written) == len(output)


OF_ANOTHER_CHOICE: list[Event] = [
    ThinkStart(4, "x", choice=1),
    ThinkChunk(4, "Other.", choice=1),
    OpaqueState(4, CLAUDE, choice=1),
    ThinkEnd(4, choice=1),
    ContentChunk(1, "Other.", choice=1),
    RefusalChunk(5, "Other.", choice=1),
    BlockFields(1, "openai_responses", {"annotations": [{"url": "u"}]}, choice=1),
    ToolCallStart(6, "c", "f", choice=1),
    ToolCallChunk(6, "{}", choice=1),
    ToolCallEnd(6, choice=1),
    UnknownContent(7, "openai_responses", {"type": "web_search_call"}, choice=1),
]


@pytest.mark.parametrize("event", OF_ANOTHER_CHOICE, ids=lambda event: type(event).__name__)
def test_of_another_choice_nothing_is_written(event: Event) -> None:
    reply: list[Event] = [
        ThinkStart(0, "x"),
        ThinkChunk(0, "a"),
        ThinkEnd(0),
        ContentChunk(1, "b"),
        ContentChunk(1, "c"),
    ]
    alone = told(*reply, STOP)
    for place in range(len(reply) + 1):
        assert told(*reply[:place], event, *reply[place:], STOP) == alone


USAGES: dict[str, tuple[dict[str, Any], tuple[int, int, int, int]]] = {
    "without details (mistral.rs)": ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, (3, 4, 0, 0)),
    "with an impossible count": (
        {"input_tokens": 3, "output_tokens": -9, "total_tokens": -6, "output_tokens_details": {"reasoning_tokens": 4}},
        (3, 0, 4, 0),
    ),
    "with more cached than there was": (
        {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "input_tokens_details": {"cached_tokens": 5}},
        (3, 4, 0, 3),
    ),
}


@pytest.mark.parametrize(("raw", "counts"), USAGES.values(), ids=USAGES)
def test_a_clients_usage_has_all_counts_of_the_official_types(
    raw: dict[str, Any], counts: tuple[int, int, int, int]
) -> None:
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [], "usage": raw}
    usage = msgspec.json.decode(DIALECT.encode_response(read_whole(body), REQUEST))["usage"]
    reasoning, cached = (
        usage["output_tokens_details"]["reasoning_tokens"],
        usage["input_tokens_details"]["cached_tokens"],
    )
    assert (usage["input_tokens"], usage["output_tokens"], reasoning, cached) == counts


def test_a_providers_complete_usage_object_is_given_as_it_came() -> None:
    raw = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1, "image_tokens": 2},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 7,
        "cost_in_usd_ticks": 5,
    }
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [], "usage": raw}
    assert msgspec.json.decode(DIALECT.encode_response(read_whole(body), REQUEST))["usage"] == raw
