"""Writing replies that were thought elsewhere: order, state, calls, errors and bardo's own words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.gemini import DIALECT
from bardo.dialects.shared.states import seal, unseal
from bardo.values.blocks import Opaque, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import UpstreamTimeout
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
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
from bardo.values.response import Response
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from dialects.gemini.support import REQUEST, chunks_of, events_of, streamed, written_parts

CLAUDE = Opaque("signature", "claude-bytes", "anthropic-claude-v1")
OPENAI_ID = Opaque("id", "rs_1", "openai-responses-v1")
CIPHER = Opaque("encrypted", "cipher", "openai-responses-v1")
START = ReplyStart(id="r", model="m")

STREAMS: dict[str, tuple[list[Event], list[dict[str, Any]]]] = {
    "foreign thinking with its signature": (
        [
            ThinkStart(0, "anthropic-claude-v1"),
            ThinkChunk(0, "a"),
            ThinkChunk(0, "b"),
            OpaqueState(0, CLAUDE),
            ThinkEnd(0),
        ],
        [
            {"thought": True, "text": "a"},
            {"thought": True, "text": "b"},
            {"text": "", "thought": True, "thoughtSignature": seal([CLAUDE])},
        ],
    ),
    "unsigned thinking is not signed": (
        [ThinkStart(0), ThinkChunk(0, "a"), ThinkEnd(0), ContentChunk(1, "x")],
        [{"text": "a", "thought": True}, {"text": "x"}],
    ),
    "only opaque state": (
        [ThinkStart(0), OpaqueState(0, OPENAI_ID), OpaqueState(0, CIPHER), ThinkEnd(0)],
        [{"text": "", "thought": True, "thoughtSignature": seal([OPENAI_ID, CIPHER])}],
    ),
    "a later state of a kind replaces the earlier": (
        [
            ThinkStart(0),
            OpaqueState(0, Opaque("encrypted", "first", "f")),
            ThinkChunk(0, "a", 0),
            OpaqueState(0, CIPHER),
        ],
        [{"text": "a", "thought": True}, {"text": "", "thought": True, "thoughtSignature": seal([CIPHER])}],
    ),
    "summary parts are paragraphs": (
        [ThinkStart(0, "openai-responses-v1"), ThinkChunk(0, "a", 0), ThinkChunk(0, "b", 1), ThinkChunk(0, "c", 1)],
        [{"text": "a", "thought": True}, {"text": "\n\nb", "thought": True}, {"thought": True, "text": "c"}],
    ),
    "late state of closed thinking has a place of its own": (
        [
            ThinkStart(0),
            ThinkChunk(0, "a"),
            ThinkEnd(0),
            ContentChunk(1, "x"),
            OpaqueState(0, CLAUDE),
            ContentChunk(1, "y"),
        ],
        [
            {"text": "a", "thought": True},
            {"text": "x"},
            {"text": "", "thought": True, "thoughtSignature": seal([CLAUDE])},
            {"text": "y"},
        ],
    ),
    "state before its block waits for it": (
        [OpaqueState(0, CLAUDE), ThinkStart(0), ThinkChunk(0, "a"), ThinkEnd(0), ContentChunk(1, "x")],
        [
            {"text": "a", "thought": True},
            {"text": "", "thought": True, "thoughtSignature": seal([CLAUDE])},
            {"text": "x"},
        ],
    ),
    "foreign state of a text follows it": (
        [
            ContentChunk(0, ""),
            OpaqueState(0, OPENAI_ID),
            ContentChunk(0, "a"),
            ContentChunk(0, "b"),
            ToolCallStart(1, "c", "f"),
            ToolCallEnd(1),
        ],
        [
            {"text": "a"},
            {"text": "b"},
            {"text": "", "thoughtSignature": seal([OPENAI_ID])},
            {"functionCall": {"id": "c", "name": "f", "args": {}}},
        ],
    ),
    "alternating calls come whole and in order": (
        [
            ToolCallStart(0, "a", "f"),
            ToolCallStart(1, "b", "g"),
            ToolCallChunk(1, '{"y":'),
            ToolCallChunk(0, '{"x":1}'),
            ToolCallChunk(1, "2}"),
            ToolCallEnd(1),
            OpaqueState(1, CLAUDE),
            ToolCallEnd(0),
        ],
        [
            {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}},
            {"functionCall": {"id": "b", "name": "g", "args": {"y": 2}}, "thoughtSignature": seal([CLAUDE])},
        ],
    ),
    "a refusal is text": ([RefusalChunk(0, "I will not")], [{"text": "I will not"}]),
    "another dialect's blocks and fields are left out": (
        [ContentChunk(0, "a"), BlockFields(0, "openai_chat", {"k": 1}), UnknownContent(1, "openai_chat", {})],
        [{"text": "a"}],
    ),
}


@pytest.mark.parametrize(("events", "expected"), STREAMS.values(), ids=STREAMS)
def test_events_become_parts(events: list[Event], expected: list[dict[str, Any]]) -> None:
    assert written_parts(streamed([START, *events, Finish("stop", "end_turn")])) == expected


@pytest.mark.parametrize(
    ("finish", "word"),
    [
        (Finish("stop", "end_turn"), "STOP"),
        (Finish("tool_calls", "tool_use"), "STOP"),
        (Finish("length", "max_tokens"), "MAX_TOKENS"),
        (Finish("refusal", "content_filter"), "SAFETY"),
        (Finish("refusal", "BLOCKLIST"), "BLOCKLIST"),
        (Finish("pause", "pause_turn"), "OTHER"),
        (Finish("unknown", "eos"), "OTHER"),
    ],
)
def test_a_foreign_reason_becomes_the_nearest_word(finish: Finish, word: str) -> None:
    last = chunks_of(streamed([START, ContentChunk(0, "x"), finish]))[-1]
    assert last["candidates"][0]["finishReason"] == word


def test_the_last_chunk_holds_usage_reason_and_bardo_whatever_their_order() -> None:
    counts = UsageUpdate(Usage(input_tokens=3, output_tokens=5, reasoning_tokens=1))
    ends: list[Event] = [Finish("stop"), counts, Extension({"receipt": {"verdict": "honoured"}})]
    for order in (ends, ends[::-1]):
        chunks = chunks_of(streamed([START, ContentChunk(0, "x"), *order]))
        assert [sorted(chunk) for chunk in chunks] == [
            ["candidates", "modelVersion", "responseId"],
            ["bardo", "candidates", "modelVersion", "responseId", "usageMetadata"],
        ]
        assert chunks[-1]["bardo"] == {"receipt": {"verdict": "honoured"}}
        assert chunks[-1]["usageMetadata"]["candidatesTokenCount"] == 4


def test_a_stream_that_was_never_finished_still_ends_well() -> None:
    response = fold(events_of([streamed([START, ContentChunk(0, "x"), ToolCallStart(1, "c", "f")])], sse=True))
    assert (response.text, response.finish.raw, response.error) == ("x", "OTHER", None)
    assert response.tool_calls == []


def test_a_failure_is_the_last_chunk_alone_and_writes_no_call_before_it() -> None:
    call: list[Event] = [
        ToolCallStart(0, "c", "f"),
        ContentChunk(2, "behind"),
        ToolCallStart(3, "d", "g"),
        ToolCallEnd(3),
        UsageUpdate(Usage(input_tokens=1, output_tokens=2)),
    ]
    encoder = DIALECT.open_encoder(REQUEST, Arrival())
    written = b"".join(
        piece for event in (START, *call, Failed(UpstreamTimeout("too slow"))) for piece in encoder.feed(event)
    )
    assert encoder.feed(ContentChunk(1, "never")) == encoder.finish() == ()
    held, error = chunks_of(written)
    assert held["candidates"][0]["content"]["parts"] == [{"text": "behind"}]
    assert "finishReason" not in held["candidates"][0]
    assert held["usageMetadata"]["totalTokenCount"] == 3
    assert list(error) == ["error"]
    assert (error["error"]["code"], error["error"]["status"]) == (504, "DEADLINE_EXCEEDED")


@pytest.mark.parametrize("events", [[], [START, ContentChunk(0, "x"), ContentChunk(0, "y"), Finish("stop")]])
@pytest.mark.parametrize("failure", [[], [Failed(UpstreamTimeout("too slow"))]], ids=["ends", "fails"])
def test_the_array_is_json(events: list[Event], failure: list[Event]) -> None:
    encoder = DIALECT.open_encoder(REQUEST, Arrival(framing="json_array"))
    assert encoder.content_type.startswith("application/json")
    array = msgspec.json.decode(streamed([*events, *failure], "json_array"))
    assert array == chunks_of(streamed([*events, *failure]))
    assert array


def test_arguments_that_are_no_object_are_kept_as_text_and_reported() -> None:
    call = ToolCallBlock(id="c", name="f", arguments='{"x":')
    events: list[Event] = [ToolCallStart(0, "c", "f"), ToolCallChunk(0, '{"x":'), ToolCallEnd(0), Finish("tool_calls")]
    extension = Extension({"degraded": [{"what": "top_k"}]})
    whole = DIALECT.encode_response(Response(blocks=(call,), bardo={"degraded": [{"what": "top_k"}]}), REQUEST)
    for body in (msgspec.json.decode(whole), chunks_of(streamed([START, *events, extension]))[-1]):
        assert [one["what"] for one in body["bardo"]["degraded"]] == ["top_k", "functionCall.args"]
        assert body["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] == {"_raw": '{"x":'}


def test_a_whole_reply_of_others() -> None:
    blocks = (
        ReasoningBlock(summary=("one", "two"), format="openai-responses-v1", opaque=(OPENAI_ID, CIPHER)),
        ReasoningBlock(text="plain", format="reasoning_content"),
        TextBlock("answer"),
        RefusalBlock("no"),
        ToolCallBlock(id="c", name="f"),
        UnknownBlock("openai_responses", {"type": "web_search_call"}),
    )
    body = msgspec.json.decode(DIALECT.encode_response(Response(id="r", model="m", blocks=blocks), REQUEST))
    assert body["candidates"][0]["content"]["parts"] == [
        {"text": "one\n\ntwo", "thought": True, "thoughtSignature": seal([OPENAI_ID, CIPHER])},
        {"text": "plain", "thought": True},
        {"text": "answerno"},
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": seal(())},
    ]
    assert unseal(body["candidates"][0]["content"]["parts"][0]["thoughtSignature"]) == (OPENAI_ID, CIPHER)


OWN = Opaque("signature", "b3du", "google-gemini-v1")


@pytest.mark.parametrize(("state", "signature"), [(CLAUDE, seal(())), (OWN, None)])
def test_calls_behind_thinking_that_bardo_seals_are_signed_too(state: Opaque, signature: str | None) -> None:
    events: list[Event] = [ThinkStart(0, state.format), ThinkChunk(0, "hm"), OpaqueState(0, state)]
    for block in (1, 2):
        events += [ToolCallStart(block, f"c{block}", "f"), ToolCallEnd(block)]
    parts = written_parts(streamed([START, *events, Finish("tool_calls")]))
    assert [part.get("thoughtSignature") for part in parts if "functionCall" in part] == [signature] * 2


def test_a_reply_that_failed_at_once_is_its_error() -> None:
    body = DIALECT.encode_response(Response(error=UpstreamTimeout("too slow")), REQUEST)
    assert body == DIALECT.encode_error(UpstreamTimeout("too slow"))


def test_a_reply_that_failed_later_says_so() -> None:
    response = Response(blocks=(TextBlock("half"),), finish=Finish("error"), error=UpstreamTimeout("too slow"))
    candidate = msgspec.json.decode(DIALECT.encode_response(response, REQUEST))["candidates"][0]
    assert (candidate["finishReason"], candidate["finishMessage"]) == ("OTHER", "too slow")


def test_fields_of_another_dialect_on_the_reply_are_left_out() -> None:
    chunks = chunks_of(streamed([START, ReplyFields("openai_chat", {"system_fingerprint": "x"}), Finish("stop")]))
    assert "system_fingerprint" not in chunks[-1]


def test_a_part_whose_text_is_null_is_written_beside_a_text() -> None:
    blocks = (UnknownBlock("gemini", {"text": None}), TextBlock("a"))
    body = msgspec.json.decode(DIALECT.encode_response(Response(blocks=blocks, finish=Finish("stop", "STOP")), REQUEST))
    assert body["candidates"][0]["content"]["parts"] == [{"text": None}, {"text": "a"}]
