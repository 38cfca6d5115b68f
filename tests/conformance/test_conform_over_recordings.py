"""The laws of `bardo conform` hold for what the makers of the dialects really sent.

What they find there is a law that is wrong, or a known row.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.operators.conform.checked_server import Frame, ReceivedReply
from bardo.operators.conform.checks import WIRES, typed_faults, usage_faults
from bardo.operators.conform.laws import Reading
from recordings import Recording, each_recording, rows

MAKERS = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic_messages",
    "gemini": "gemini",
}
KNOWN = {
    # Not whole as they were recorded: the beginning, events between, or the end of an item is missing.
    "openai-responses/gpt-4-0613-stream-tool-28487fa6.sse",
    "openai-responses/gpt-4.1-stream-servertool-98e47b5e.sse",
    "openai-responses/gpt-5.3-codex-stream-d2300149.sse",
    # The answer to a request in the background, which the laws do not make.
    "openai-responses/gpt-4o-04d5b13a.json",
}
REPLIES = [
    one
    for folder in MAKERS
    for one in rows(folder)
    if (one.meta.get("http_status") or 200) == 200 and one.framing == ("sse" if one.stream else "json")
]


def reading_of(recording: Recording) -> Reading:
    wire = WIRES[MAKERS[recording.file.partition("/")[0]]]()
    reply = ReceivedReply(status=200, content_type="", body=recording.body)
    return wire.read_stream(reply.frames) if recording.stream else wire.read_whole(reply.json)


@each_recording([one for one in REPLIES if one.file not in KNOWN], by_day=0.3)
def test_no_law_is_broken_by_what_a_maker_sent(recording: Recording) -> None:
    reading = reading_of(recording)
    assert reading.faults == []
    if reading.input_tokens and reading.output_tokens:
        assert usage_faults(reading) == []


def schema_of(recording: Recording) -> Any:
    """Return the schema that a recorded request asked its answer in; None where it asked for none."""
    body = recording.meta.get("request_body")
    body = body if isinstance(body, dict) else {}
    chat, responses = body.get("response_format"), (body.get("text") or {}).get("format")
    messages = (body.get("output_config") or {}).get("format")
    if isinstance(chat, dict) and chat.get("type") == "json_schema":
        return chat["json_schema"].get("schema")
    for one in (responses, messages):
        if isinstance(one, dict) and one.get("type") == "json_schema":
            return one.get("schema")
    return (body.get("generationConfig") or {}).get("responseJsonSchema")


TYPED = [one for one in REPLIES if one.file not in KNOWN and schema_of(one) is not None]


@pytest.mark.skipif(not TYPED, reason="no recorded request has a schema")
@each_recording(TYPED)
def test_the_law_of_typed_answers_holds_for_recorded_ones(recording: Recording) -> None:
    reading = reading_of(recording)
    wire = WIRES[MAKERS[recording.file.partition("/")[0]]]()
    if reading.text and not reading.refused and reading.finish not in wire.limits:
        assert typed_faults(reading, schema_of(recording)) == []


@each_recording([one for one in REPLIES if one.file in KNOWN])
def test_what_is_known_to_break_a_law_still_does(recording: Recording) -> None:
    reading = reading_of(recording)
    assert reading.faults or usage_faults(reading)


def of_messages(kind: str, delta: dict[str, Any]) -> list[str]:
    events: list[dict[str, Any]] = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": kind, "id": "t", "name": "n", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
    ]
    frames = [Frame(one["type"], json.dumps(one)) for one in events]
    return [fault for fault in WIRES["anthropic_messages"]().read_stream(frames).faults if " in a block of " in fault]


def test_arguments_come_in_the_blocks_of_calls_and_of_the_providers_own_ones() -> None:
    pieces = {"type": "input_json_delta", "partial_json": "{}"}
    for kind, is_kept in (("tool_use", True), ("server_tool_use", True), ("mcp_tool_use", True), ("text", False)):
        assert (of_messages(kind, pieces) == []) is is_kept, kind
    assert of_messages("server_tool_use", {"type": "text_delta", "text": "x"}) != []
