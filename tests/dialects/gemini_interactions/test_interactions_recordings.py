"""What is true of every recorded interaction."""

from __future__ import annotations

import json
import random
from typing import Any

from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import BrokenStream
from dialects.gemini_interactions.replies import ARRIVAL, DIALECT, REQUEST, ROW, events_of, read, write_stream
from dialects.told import as_told
from recordings import Recording, each_recording, rows

ALL = rows("gemini-interactions")

each = each_recording(ALL)


def interaction_of(recording: Recording) -> dict[str, Any]:
    """Put a recorded interaction together without the decoder."""
    if not recording.stream:
        whole: dict[str, Any] = json.loads(recording.body)
        return whole
    steps: dict[int, dict[str, Any]] = {}
    end: dict[str, Any] = {}
    for line in recording.body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        payload = json.loads(line[6:])
        if payload["event_type"] == "step.start":
            steps[payload["index"]] = payload["step"]
        elif payload["event_type"] == "step.delta":
            _grow(steps[payload["index"]], payload["delta"])
        elif payload["event_type"] == "interaction.completed":
            end = payload["interaction"]
    return {**end, "steps": list(steps.values())}


def _grow(step: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta["type"]:
        case "text":
            step.setdefault("content", [{"type": "text", "text": ""}])[0]["text"] += delta["text"]
        case "thought_summary":
            step.setdefault("summary", []).append(delta["content"])
        case "thought_signature":
            step["signature"] = delta["signature"] or step.get("signature", "")
        case "arguments_delta":
            step["arguments"] = json.loads(delta["arguments"])


@each
def test_what_is_written_reads_back(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    assert read(write_stream(events_of(recording.body, stream=recording.stream)), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@each
def test_every_word_stands_where_it_stood(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    steps = interaction_of(recording)["steps"]
    thoughts = [block for block in response.blocks if isinstance(block, ReasoningBlock)]
    assert [(list(block.summary), [state.data for state in block.opaque]) for block in thoughts] == [
        ([item["text"] for item in step.get("summary", ())], [step["signature"]])
        for step in steps
        if step["type"] == "thought"
    ]
    assert [block.text for block in response.blocks if isinstance(block, TextBlock)] == [
        content["text"] for step in steps if step["type"] == "model_output" for content in step["content"]
    ]
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [
        (step["id"], step["name"], step["arguments"]) for step in steps if step["type"] == "function_call"
    ]
    assert [block.value for block in response.blocks if isinstance(block, UnknownBlock)] == [
        step for step in steps if step["type"] not in ("thought", "model_output", "function_call")
    ]


@each
def test_usage_is_told_in_one_algebra(recording: Recording) -> None:
    usage = read(recording.body, stream=recording.stream).usage
    raw = interaction_of(recording)["usage"]
    assert usage.raw == raw
    assert usage.reasoning_tokens == raw["total_thought_tokens"]
    assert usage.output_tokens == raw["total_output_tokens"] + raw["total_thought_tokens"]
    assert usage.total_tokens == raw["total_tokens"]


@each
def test_the_providers_word_for_the_end_is_kept(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    assert response.finish.raw == interaction_of(recording)["status"]
    expected = {"completed": "stop", "incomplete": "length", "requires_action": "tool_calls"}
    assert response.finish.reason == expected[response.finish.raw]
    assert any(isinstance(block, ToolCallBlock) for block in response.blocks) is (
        response.finish.reason == "tool_calls"
    )


@each_recording([one for one in ALL if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    chooser = random.Random(recording.file)
    end = recording.body.rindex(b"interaction.completed")
    end = recording.body.rindex(b"\n\n", 0, end)
    for cut in (0, end, *(chooser.randrange(end) for _ in range(5))):
        assert isinstance(read(recording.body[:cut], stream=True).error, BrokenStream)


@each_recording([one for one in ALL if one.meta.get("request_body")])
def test_what_was_asked_is_written_as_it_was(recording: Recording) -> None:
    asked = recording.meta["request_body"]
    request = DIALECT.decode_request(json.dumps(asked).encode(), ARRIVAL)
    wire = DIALECT.encode_request(as_told(request), ROW)
    assert wire.path == "interactions"
    assert wire.degraded == ()
    assert in_one_form(json.loads(wire.body)) == in_one_form(asked)


def in_one_form(body: dict[str, Any]) -> dict[str, Any]:
    """Bring the forms that `input` may have to one: a list of steps, without the user's step around results."""
    given = body["input"]
    contents: list[dict[str, Any]] = [{"type": "text", "text": given}] if isinstance(given, str) else given
    if all(item["type"] in ("text", "image") for item in contents):
        contents = [{"type": "user_input", "content": contents}]
    steps: list[Any] = []
    for step in contents:
        inside: list[dict[str, Any]] = step.get("content", [])
        results = [item for item in inside if item["type"] == "function_result"]
        steps += results if results and step["type"] == "user_input" else [step]
    return {**{name: value for name, value in body.items() if value is not False}, "input": steps}
