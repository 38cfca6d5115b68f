"""Reading replies: blocks, signatures, reasons, usage, and everything that is not as it should be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.gemini import DIALECT
from bardo.streams.frames import Frame
from bardo.streams.sse import SseDecoder
from bardo.values.blocks import (
    Carried,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import BlockFields, Finish, FinishReason, ReplyFields, ThinkEnd
from bardo.values.fold import fold
from bardo.values.usage import Usage
from dialects.gemini.support import REQUEST, ROW, chunks_of, events_of, parts, read, read_whole, row_with, sse, streamed
from recordings import Recording, each_recording, rows

SIGNATURE = "c2lnbmVk"
SIGNED = (Opaque("signature", SIGNATURE, "google-gemini-v1"),)


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"text": value, **more}


def thought(value: str, **more: Any) -> dict[str, Any]:
    return {"text": value, "thought": True, **more}


def thinking(*summary: str) -> ReasoningBlock:
    return ReasoningBlock(summary=summary, format="google-gemini-v1")


BLOCKS = {
    "text pieces are one block": ([[text("Hel")], [text("lo")]], (TextBlock("Hello"),)),
    "thoughts of later chunks continue": ([[thought("a")], [thought("b")]], (thinking("ab"),)),
    "thoughts of one chunk are parts": ([[thought("a"), thought("b")], [thought("c")]], (thinking("a", "bc"),)),
    "thinking resumes": (
        [[thought("a")], [text("x")], [thought("b")]],
        (thinking("a"), TextBlock("x"), thinking("b")),
    ),
    "a signed text stands alone": (
        [[text("a")], [text("b", thoughtSignature=SIGNATURE)], [text("c")]],
        (TextBlock("a"), TextBlock("b", SIGNED), TextBlock("c")),
    ),
    "an empty signed text is kept": (
        [[text("a")], [text("", thoughtSignature=SIGNATURE)]],
        (TextBlock("a"), TextBlock("", SIGNED)),
    ),
    "an empty text is nothing": ([[thought("a")], [text("")]], (thinking("a"),)),
    "a field beside the text stays with it": (
        [[text("a")], [text("b", partMetadata={"k": 1})]],
        (TextBlock("a"), TextBlock("b", (), Carried("gemini", {"partMetadata": {"k": 1}}))),
    ),
    "a signed thought ends its thinking": (
        [[thought("a")], [thought("", thoughtSignature=SIGNATURE)], [thought("b")]],
        (ReasoningBlock(summary=("a",), format="google-gemini-v1", opaque=SIGNED), thinking("b")),
    ),
    "a call with an id of Gemini's": (
        [[{"functionCall": {"id": "own", "name": "f", "args": {"x": 1.0}}, "thoughtSignature": SIGNATURE}]],
        (ToolCallBlock(id="own", name="f", arguments='{"x":1.0}', opaque=SIGNED),),
    ),
    "calls without an id": (
        [[{"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "f"}}]],
        (ToolCallBlock(id="", name="f", arguments="{}", carried=Carried("gemini", {"functionCall": {"id": None}})),)
        * 2,
    ),
    "what bardo has no word for": (
        [[text("a")], [{"executableCode": {"code": "1"}, "thoughtSignature": SIGNATURE}], [text("b")]],
        (
            TextBlock("a"),
            UnknownBlock("gemini", {"executableCode": {"code": "1"}, "thoughtSignature": SIGNATURE}),
            TextBlock("b"),
        ),
    ),
    "a thought that is a picture": (
        [[{"inlineData": {"mimeType": "image/png", "data": ""}, "thought": True}]],
        (UnknownBlock("gemini", {"inlineData": {"mimeType": "image/png", "data": ""}, "thought": True}),),
    ),
}


@pytest.mark.parametrize(("chunks", "blocks"), BLOCKS.values(), ids=BLOCKS)
def test_parts_become_blocks_and_parts_again(chunks: list[list[dict[str, Any]]], blocks: tuple[Any, ...]) -> None:
    payloads = [*(parts(*chunk) for chunk in chunks), parts(finish="STOP")]
    events = events_of([sse(*payloads)], sse=True)
    response = fold(events)
    assert response.blocks == blocks
    assert fold(events_of([streamed(events)], sse=True)) == response
    body = DIALECT.encode_response(response, REQUEST)
    assert fold(events_of([body], sse=False)) == response


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("SPII", "refusal"),
        ("IMAGE_SAFETY", "refusal"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("OTHER", "unknown"),
        ("A_WORD_OF_NEXT_YEAR", "unknown"),
    ],
)
def test_the_reason_is_ours_and_the_word_theirs(word: str, reason: FinishReason) -> None:
    payload = parts(text("x"), finish=word)
    assert read(payload).finish == Finish(reason, word)
    assert msgspec.json.decode(DIALECT.encode_response(read(payload), REQUEST))["candidates"] == payload["candidates"]


def test_raw_text_in_place_of_arguments_is_taken_out_again() -> None:
    call = {"functionCall": {"id": "a", "name": "f", "args": {"_raw": '{"x":'}}}
    assert read(parts(call, finish="STOP")).blocks == (ToolCallBlock(id="a", name="f", arguments='{"x":'),)


def test_stop_after_a_call_is_tool_calls() -> None:
    assert read(parts({"functionCall": {"name": "f"}}, finish="STOP")).finish == Finish("tool_calls", "STOP")


def test_a_stop_in_mid_stream_does_not_end_the_reply() -> None:
    response = read(parts(text("a"), finish="STOP"), parts(text("b")), parts(text("c"), finish="MAX_TOKENS"))
    assert (response.text, response.finish.reason) == ("abc", "length")


@pytest.mark.parametrize("last", [text("b"), text("c", thoughtSignature=SIGNATURE)], ids=["usual", "signed"])
def test_a_reply_that_goes_on_after_a_stop_must_end_again(last: dict[str, Any]) -> None:
    broken = read(parts(text("a")), parts(text("b"), finish="STOP"), parts(last))
    assert isinstance(broken.error, BrokenStream)
    whole = read(parts(text("a"), finish="STOP"), parts(text("")))
    assert (whole.finish.reason, whole.error) == ("stop", None)


def test_an_array_that_breaks_off_keeps_its_whole_chunks() -> None:
    array = msgspec.json.encode([parts(text("a, ")), parts(text("b]")), parts(text("c"), finish="STOP")])
    for end in range(1, len(array)):
        response = fold(events_of([array[:end]], sse=False))
        assert isinstance(response.error, BrokenStream)
        assert response.text in ("", "a, ", "a, b]", "a, b]c")
    assert response.text == "a, b]c"


def test_a_blocked_prompt_is_a_refusal_and_writes_back() -> None:
    payload = {"promptFeedback": {"blockReason": "JAILBREAK"}, "modelVersion": "m", "responseId": "r"}
    events = events_of([sse(payload)], sse=True)
    response = fold(events)
    assert (response.finish, response.error) == (Finish("refusal", "JAILBREAK"), None)
    assert msgspec.json.decode(DIALECT.encode_response(response, REQUEST)) == payload
    assert chunks_of(streamed(events)) == [payload]


def test_candidates_are_alternatives() -> None:
    first, second = ({"content": {"parts": [text(word)]}, "index": n} for n, word in enumerate("ab"))
    last = [{"finishReason": "STOP", "index": n} for n in (0, 1)]
    events = events_of([sse({"candidates": [first]}, {"candidates": [second]}, {"candidates": last})], sse=True)
    response = fold(events)
    assert [response.text, *(other.text for other in response.alternatives)] == ["a", "b"]
    assert fold(events_of([streamed(events)], sse=True)) == response
    assert fold(events_of([DIALECT.encode_response(response, REQUEST)], sse=False)) == response


def test_what_decorates_a_candidate_is_gathered() -> None:
    first = parts(text("a"), groundingMetadata={"webSearchQueries": ["q"]}, logprobsResult={"chosenCandidates": [1]})
    middle = parts(text("b"), groundingMetadata={}, logprobsResult={"chosenCandidates": [2]})
    last = parts(text("c"), groundingMetadata={"groundingChunks": [3]}, safetyRatings=[4], finish="STOP")
    response = read(first, middle, last)
    assert fields_for("gemini", response.choice_carried) == {
        "groundingMetadata": {"webSearchQueries": ["q"], "groundingChunks": [3]},
        "logprobsResult": {"chosenCandidates": [1, 2]},
        "safetyRatings": [4],
    }


def test_the_reply_says_when_it_was_made() -> None:
    response = read({**parts(text("a"), finish="STOP"), "createTime": "2025-11-18T02:36:19.445896Z"})
    assert response.created == 1763433379
    assert response.carried == Carried("gemini", {"createTime": "2025-11-18T02:36:19.445896Z"})


USAGE = {
    "thoughts beside": (
        {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4, "totalTokenCount": 12},
        None,
        (5, 7, 4),
    ),
    "thoughts inside, by the total": (
        {"promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 4, "totalTokenCount": 12},
        None,
        (5, 7, 4),
    ),
    "thoughts inside, by the row": (
        {"promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 4},
        False,
        (5, 7, 4),
    ),
    "thoughts beside, by the row": (
        {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
        True,
        (5, 7, 4),
    ),
    "only thoughts": ({"promptTokenCount": 5, "thoughtsTokenCount": 4, "totalTokenCount": 9}, None, (5, 4, 4)),
    "tools beside the prompt": (
        {"promptTokenCount": 5, "toolUsePromptTokenCount": 6, "candidatesTokenCount": 1, "totalTokenCount": 12},
        None,
        (11, 1, None),
    ),
    "nothing": ({"trafficType": "ON_DEMAND"}, None, (None, None, None)),
}


@pytest.mark.parametrize(("raw", "excludes_reasoning", "counts"), USAGE.values(), ids=USAGE)
def test_usage_in_our_algebra(
    raw: dict[str, Any], excludes_reasoning: bool | None, counts: tuple[int | None, ...]
) -> None:
    response = read(
        {**parts(text("x"), finish="STOP"), "usageMetadata": raw}, row=row_with(excludes_reasoning=excludes_reasoning)
    )
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == counts
    assert usage.raw == raw


@pytest.mark.parametrize(
    ("raw", "what", "input_tokens", "reasoning_tokens"),
    [
        ({"promptTokenCount": 1, "candidatesTokenCount": 3, "thoughtsTokenCount": 9}, "usage.reasoning_tokens", 1, 3),
        ({"promptTokenCount": -1, "thoughtsTokenCount": 2}, "usage.promptTokenCount", None, 2),
    ],
)
def test_counts_that_cannot_be_are_reported(
    raw: dict[str, Any], what: str, input_tokens: int | None, reasoning_tokens: int
) -> None:
    response = read({**parts(text("x"), finish="STOP"), "usageMetadata": raw}, row=row_with(excludes_reasoning=False))
    assert [one.what for one in response.degraded] == [what]
    assert (response.usage.input_tokens, response.usage.reasoning_tokens) == (input_tokens, reasoning_tokens)


def test_a_field_that_google_adds_does_not_make_a_chat_usage_object_geminis() -> None:
    # ZenMux passes `trafficType` on in OpenAI's object, whose details Google's SDK would take for its own.
    raw = {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {}, "trafficType": "ON_DEMAND"}
    usage = Usage(input_tokens=3, output_tokens=4, raw=raw)
    response = msgspec.structs.replace(read(parts(text("x"), finish="STOP")), usage=usage)
    written = msgspec.json.decode(DIALECT.encode_response(response, REQUEST))["usageMetadata"]
    modalities = [{"modality": "TEXT", "tokenCount": 3}]
    assert written == {
        "promptTokenCount": 3,
        "candidatesTokenCount": 4,
        "totalTokenCount": 7,
        "promptTokensDetails": modalities,
    }


def test_usage_of_another_provider_is_written_in_geminis_words() -> None:
    usage = Usage(
        input_tokens=10, output_tokens=7, reasoning_tokens=4, cached_input_tokens=2, raw={"prompt_tokens": 10}
    )
    response = msgspec.structs.replace(read(parts(text("x"), finish="STOP")), usage=usage)
    written = msgspec.json.decode(DIALECT.encode_response(response, REQUEST))["usageMetadata"]
    assert written == {
        "promptTokenCount": 10,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4,
        "cachedContentTokenCount": 2,
        "totalTokenCount": 17,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
    }


def test_usage_that_was_changed_keeps_geminis_other_fields() -> None:
    raw = {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8, "serviceTier": "flex"}
    response = read({**parts(text("x"), finish="STOP"), "usageMetadata": raw})
    changed = msgspec.structs.replace(response, usage=msgspec.structs.replace(response.usage, input_tokens=9))
    written = msgspec.json.decode(DIALECT.encode_response(changed, REQUEST))["usageMetadata"]
    assert written.pop("promptTokensDetails") == [{"modality": "TEXT", "tokenCount": 9}]
    assert written == {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12, "serviceTier": "flex"}


def test_a_stream_without_a_finish_reason_is_broken_and_keeps_what_came() -> None:
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    response = read(parts(thought("a")), {**parts(text("b")), "usageMetadata": usage})
    assert isinstance(response.error, BrokenStream)
    assert response.error.provider == "google"
    assert (response.text, response.usage.total_tokens) == ("b", 3)


@pytest.mark.parametrize("body", [b"", b"[]", b"data: {}\r\n\r\n"], ids=["empty", "no chunk", "empty chunk"])
def test_a_reply_that_says_nothing_is_broken(body: bytes) -> None:
    response = fold(events_of([body], sse=body != b"[]"))
    assert isinstance(response.error, BrokenStream)


def test_half_a_chunk_at_the_end_is_a_broken_stream_and_a_whole_one_is_used() -> None:
    body = sse(parts(text("a")), parts(text("b"), finish="STOP"))
    assert isinstance(fold(events_of([body[:-20]], sse=True)).error, BrokenStream)
    whole = fold(events_of([body[:-4]], sse=True))
    assert (whole.text, whole.error) == ("ab", None)


@pytest.mark.parametrize(
    "payload",
    [
        1,
        "x",
        [1],
        {"candidates": 1},
        {"candidates": [1]},
        {"candidates": [{"content": []}]},
        {"candidates": [{"content": {"parts": {}}}]},
        {"candidates": [{"content": {"parts": ["x"]}}]},
        {"candidates": [{"content": {"parts": [{"text": 1}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "", "thought": "yes"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": 1}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": []}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"args": {}}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": []}}]}}]},
        {"candidates": [{"finishReason": 1}]},
        {"candidates": [], "usageMetadata": 1},
        {"candidates": [], "modelVersion": 1},
    ],
)
def test_a_wrong_shape_is_a_malformed_reply_once(payload: Any) -> None:
    decoder = DIALECT.open_decoder(ROW)
    body = msgspec.json.encode(payload)
    decoder.feed(Frame(msgspec.json.encode(parts(text("a")))))
    events = [*decoder.feed(Frame(body)), *decoder.feed(Frame(body)), *decoder.finish()]
    failures = [event for event in events if isinstance(getattr(event, "error", None), MalformedReply)]
    assert failures == events[-1:]


def test_wrong_usage_in_a_usual_chunk_is_found_at_the_end() -> None:
    response = read(parts(text("a")), {**parts(text("b")), "usageMetadata": [1]}, parts(finish="STOP"))
    assert isinstance(response.error, MalformedReply)
    assert response.text == "ab"


def test_an_error_in_mid_stream_is_the_providers_after_what_came_before() -> None:
    error = {"code": 503, "message": "busy", "status": "UNAVAILABLE"}
    events = events_of([sse(parts(thought("a")), {"error": error}, parts(text("never")))], sse=True)
    response = fold(events)
    assert isinstance(response.error, UpstreamRefused)
    assert (response.error.status, response.error.upstream_type, response.error.retryable) == (503, "UNAVAILABLE", True)
    assert response.blocks == (thinking("a"),)
    assert any(isinstance(event, ThinkEnd) for event in events)


def test_an_error_in_a_chunk_that_goes_on_with_a_text_is_an_error() -> None:
    error = {"code": 503, "message": "busy", "status": "UNAVAILABLE"}
    response = read(parts(text("a")), {**parts(text("b")), "error": error}, parts(text("never"), finish="STOP"))
    assert isinstance(response.error, UpstreamRefused)
    assert response.text == "a"


def test_whole_streamed_and_array_say_the_same() -> None:
    payloads = [parts(thought("a"), text("b", thoughtSignature=SIGNATURE), finish="STOP")]
    array = fold(events_of([msgspec.json.encode(payloads)], sse=False))
    assert read(*payloads) == read_whole(payloads[0]) == array


@pytest.mark.parametrize("empty", [b"null", b"{}"])
def test_an_empty_report_of_usage_leaves_the_one_before(empty: bytes) -> None:
    counted = {**parts(text("a")), "usageMetadata": {"promptTokenCount": 3}}
    later = msgspec.json.encode({**parts(text("b")), "usageMetadata": msgspec.Raw(empty)})
    stream = sse(counted) + b"data: " + later + b"\r\n\r\n" + sse(parts(finish="STOP"))
    assert fold(events_of([stream], sse=True)).usage.input_tokens == 3


def test_what_stands_before_a_fault_in_its_chunk_is_read() -> None:
    response = read_whole(parts(text("a"), {"functionCall": {"name": "f"}}, {"text": 1}, text("never"), finish="STOP"))
    assert isinstance(response.error, MalformedReply)
    assert response.error.message == "`text` is not what the Gemini API says it is"
    assert [type(block) for block in response.blocks] == [TextBlock, ToolCallBlock]


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ({"candidates": [{"content": {"parts": [{"functionCall": {"name": 1}}]}}]}, "functionCall.name"),
        ({"candidates": [{"content": {"parts": [{"text": "", "thought": 1}]}}]}, "thought"),
        ({"candidates": [{"finishReason": []}]}, "finishReason"),
        ({"candidates": [5]}, "candidates[]"),
        ({"responseId": 5}, "responseId"),
    ],
)
def test_the_field_that_is_wrong_is_named(fault: Any, name: str) -> None:
    error = read_whole(fault).error
    assert error is not None
    assert error.message == f"`{name}` is not what the Gemini API says it is"


def test_fields_that_are_null_are_carried_as_such() -> None:
    found = events_of([sse({**parts(text("a")), "promptFeedback": None, "createTime": None})], sse=True)
    assert ReplyFields("gemini", {"createTime": None, "promptFeedback": None}) in found
    (call,) = [
        one
        for one in events_of([sse(parts({"functionCall": {"name": "f"}, "text": None}))], sse=True)
        if isinstance(one, BlockFields)
    ]
    assert call.fields == {"text": None, "functionCall": {"id": None}}


def test_a_piece_of_a_call_is_no_call() -> None:
    piece = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$.a"}]}, "thought": "no matter"}
    assert read_whole(parts(piece, finish="STOP")).blocks == (UnknownBlock("gemini", piece),)


def test_a_carried_field_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    assert isinstance(read_whole({**parts(text("a"), finish="STOP"), "promptFeedback": deep}).error, MalformedReply)


@each_recording([one for one in rows("gemini") if one.framing == "sse"])
def test_a_chunk_alone_says_what_it_says_in_an_array(recording: Recording) -> None:
    framing, alone, listed = SseDecoder(), DIALECT.open_decoder(ROW), DIALECT.open_decoder(ROW)
    for frame in [*framing.feed(recording.body), *framing.finish()]:
        data = None if frame.data is None else b"[" + frame.data + b"]"
        assert [*alone.feed(frame)] == [*listed.feed(Frame(data, complete=frame.complete))]
    assert alone.finish() == listed.finish()


def _with(chunk: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**chunk, **more}


FOLLOWING = {
    "text": parts(text("b")),
    "thought": parts(thought("b")),
    "no thought, as is said": parts(text("b", thought=False)),
    "an empty text": parts(text("")),
    "two texts": parts(text("b"), text("c")),
    "a signature": parts(text("b", thoughtSignature=SIGNATURE)),
    "a field beside the text": parts(text("b", videoMetadata={"fps": 1})),
    "a call": parts({"functionCall": {"name": "f", "args": {}}}),
    "an end": parts(text("b"), finish="STOP"),
    "another candidate": parts(text("b"), index=1),
    "a candidate whose number is none": parts(text("b"), index=1.0),
    "two candidates": _with(parts(text("b")), candidates=parts(text("b"))["candidates"] * 2),
    "ratings": parts(text("b"), safetyRatings=[{"category": "C"}]),
    "another model": _with(parts(text("b")), modelVersion="gemini-other"),
    "a time": _with(parts(text("b")), createTime="2026-11-30T12:00:00Z"),
    "usage": _with(parts(text("b")), usageMetadata={"promptTokenCount": 3, "totalTokenCount": 3}),
    "feedback": _with(parts(text("b")), promptFeedback={"blockReason": "SAFETY"}),
    "an unknown field": _with(parts(text("b")), new={"a": 1}),
}


@pytest.mark.parametrize("before", [text("a"), thought("a")], ids=["text", "thought"])
@pytest.mark.parametrize("chunk", FOLLOWING.values(), ids=FOLLOWING)
def test_a_chunk_that_goes_on_with_a_block_says_what_it_says_in_an_array(
    before: dict[str, Any], chunk: dict[str, Any]
) -> None:
    alone, listed = DIALECT.open_decoder(ROW), DIALECT.open_decoder(ROW)
    for payload in (parts(before), chunk, parts(text("z"), finish="STOP"), chunk):
        data = msgspec.json.encode(payload)
        assert [*alone.feed(Frame(data))] == [*listed.feed(Frame(b"[" + data + b"]"))]
    assert alone.finish() == listed.finish()
