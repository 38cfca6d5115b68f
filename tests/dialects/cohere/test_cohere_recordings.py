"""What is true of every recorded Cohere reply."""

from __future__ import annotations

import json
import random
from typing import Any

from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from dialects.cohere.replies import ARRIVAL, DIALECT, REQUEST, ROW, events_of, read, write_stream
from dialects.told import as_told
from recordings import Recording, each_recording, rows

ALL = rows("cohere")
OLDER = [one for one in ALL if one.framing == "ndjson"]
REFUSED = [one for one in ALL if one.meta["http_status"] >= 400]
BROKEN = [one for one in ALL if "stream-error" in one.file]
GOOD = [one for one in ALL if one not in (*OLDER, *REFUSED, *BROKEN)]

each = each_recording(GOOD)
each_read = each_recording([*GOOD, *BROKEN])


@each
def test_what_is_written_reads_back(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    assert read(write_stream(events_of(recording.body, stream=recording.stream)), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@each_read
def test_every_word_stands_where_it_stood(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    message = streamed_message(recording.body) if recording.stream else json.loads(recording.body)["message"]
    thought = [block.text for block in response.blocks if isinstance(block, ReasoningBlock)]
    plans = [message["tool_plan"]] if message.get("tool_plan") else []
    content = message.get("content") or []
    assert thought == [*(item["thinking"] for item in content if item["type"] == "thinking"), *plans]
    said = [block.text for block in response.blocks if isinstance(block, TextBlock)]
    assert said == [item["text"] for item in content if item["type"] == "text"]
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]


def streamed_message(body: bytes) -> dict[str, Any]:
    """Put a stream together without the decoder."""
    content: dict[int, dict[str, str]] = {}
    calls: dict[int, dict[str, Any]] = {}
    plan = ""
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        payload = json.loads(line[6:])
        message, index = payload.get("delta", {}).get("message", {}), payload.get("index", 0)
        match payload["type"]:
            case "content-start":
                content[index] = message["content"]
            case "content-delta":
                for name, piece in message["content"].items():
                    content[index][name] += piece
            case "tool-plan-delta":
                plan += message["tool_plan"]
            case "tool-call-start":
                calls[index] = message["tool_calls"]
            case "tool-call-delta":
                calls[index]["function"]["arguments"] += message["tool_calls"]["function"]["arguments"]
    return {"content": list(content.values()), "tool_plan": plan, "tool_calls": list(calls.values())}


@each
def test_usage_is_told_in_one_algebra(recording: Recording) -> None:
    usage = read(recording.body, stream=recording.stream).usage
    tokens = usage.raw["tokens"]
    assert (usage.input_tokens, usage.output_tokens) == (tokens["input_tokens"], tokens["output_tokens"])
    assert usage.reasoning_tokens == tokens.get("reasoning_tokens")
    assert usage.cached_input_tokens == usage.raw.get("cached_tokens")
    assert (usage.cached_input_tokens or 0) <= tokens["input_tokens"]


@each
def test_the_providers_word_for_the_end_is_kept(recording: Recording) -> None:
    finish = read(recording.body, stream=recording.stream).finish
    assert finish.raw.encode() in recording.body
    expected = {"COMPLETE": "stop", "MAX_TOKENS": "length", "TOOL_CALL": "tool_calls"}
    assert finish.reason == expected[finish.raw]


@each_recording([one for one in GOOD if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    chooser = random.Random(recording.file)
    end = recording.body.rindex(b"event: message-end")
    for cut in (0, end, *(chooser.randrange(end) for _ in range(5))):
        assert isinstance(read(recording.body[:cut], stream=True).error, BrokenStream)


@each_recording(BROKEN)
def test_a_stream_that_ends_with_an_error_keeps_what_came_before(recording: Recording) -> None:
    response = read(recording.body, stream=True)
    error = response.error
    assert isinstance(error, UpstreamRefused)
    assert error.upstream_type == "INVALID_TOOL_GENERATION"
    assert error.message.startswith("your request resulted in an invalid tool generation")
    assert response.finish.raw == "ERROR"
    assert response.reasoning.content is not None
    assert response.reasoning.content.startswith("I will first inspect the tables")


@each_recording(REFUSED)
def test_an_error_is_told_in_the_providers_words(recording: Recording) -> None:
    said = json.loads(recording.body)
    status = recording.meta["http_status"]
    error = DIALECT.decode_error(status, recording.body, {"retry-after": "3"}, "cohere")
    assert (error.status, error.message, error.retry_after) == (status, said["message"], "3")
    assert json.loads(DIALECT.encode_error(error))["message"] == said["message"]
    inside = read(recording.body, stream=False).error
    assert isinstance(inside, UpstreamRefused)
    assert inside.message == said["message"]


@each_recording(OLDER)
def test_the_language_before_this_one_is_not_misread(recording: Recording) -> None:
    first = recording.body.splitlines()[0]
    assert isinstance(read(first, stream=False).error, MalformedReply)


@each_recording([one for one in (*GOOD, *BROKEN) if one.meta.get("request_body")])
def test_what_was_asked_is_written_as_it_was(recording: Recording) -> None:
    asked = recording.meta["request_body"]
    request = DIALECT.decode_request(json.dumps(asked).encode(), ARRIVAL)
    wire = DIALECT.encode_request(as_told(request), ROW)
    assert wire.degraded == ()
    shape = asked.get("response_format") or {}
    if "schema" in shape:  # The older of two names for one field.
        asked = {**asked, "response_format": {"type": shape["type"], "json_schema": shape["schema"]}}
    assert said(json.loads(wire.body)) == said(asked)


def said(value: Any) -> Any:
    """Leave out what says nothing: empty lists and texts, and text that stands alone in a list of parts."""
    if isinstance(value, list):
        alone = len(value) == 1 and isinstance(value[0], dict) and value[0].keys() == {"type", "text"}
        return value[0]["text"] if alone else [said(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: said(one) for name, one in value.items() if one not in (None, "", [], {}, False)}
