"""What is true of every recorded reply of InvokeModel."""

from __future__ import annotations

import json
import random
from typing import Any

from bardo.reasoning.inline import InlineReasoning
from bardo.values.blocks import ToolCallBlock
from bardo.values.errors import BrokenStream, UpstreamRefused
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.wire import Arrival
from dialects.bedrock_invoke.replies import DIALECT, ROW, events_of, payloads, read, write_stream
from recordings import Recording, each_recording, rows

ALL = rows("bedrock-invoke")
ERRORS = [one for one in ALL if one.meta["http_status"] != 200]
GOOD = [one for one in ALL if one not in ERRORS]

each = each_recording(GOOD)


@each
def test_what_is_written_reads_back(recording: Recording) -> None:
    model = recording.meta["model"]
    response = read(recording.body, stream=recording.stream)
    assert response.finish.raw
    written = write_stream(events_of(recording.body, stream=recording.stream), model)
    assert read(written, stream=True) == response
    whole = DIALECT.encode_response(response, Request(model=model, messages=()))
    assert read(whole, stream=False) == response


@each
def test_every_word_stands_where_it_stood(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    values = payloads(recording.body) if recording.stream else [json.loads(recording.body)]
    said = [piece for value in values for piece in _words(value)]
    assert response.text == "".join(text for kind, text in said if kind == "text")
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert "".join(_bare(call.arguments) for call in calls) == _bare("".join(t for kind, t in said if kind == "input"))
    assert len(response.blocks) == len(calls) + (1 if response.text else 0)


@each
def test_what_bedrock_adds_is_carried(recording: Recording) -> None:
    if not recording.stream:
        return
    last = payloads(recording.body)[-1]
    response = read(recording.body, stream=True)
    assert response.carried is not None
    name = "amazon-bedrock-invocationMetrics"
    assert response.carried.fields[name] == last[name]
    assert response.usage.input_tokens == last[name]["inputTokenCount"]
    assert response.usage.output_tokens == last[name]["outputTokenCount"]


@each_recording([one for one in GOOD if "nova" in one.file])
def test_novas_inline_thinking_is_found(recording: Recording) -> None:
    # Each piece of Nova's stream has an index of its own, and they are one text all the same.
    text = read(recording.body, stream=recording.stream).text
    thought, answer = text.removeprefix("<thinking>").split("</thinking>")
    stage = InlineReasoning.of("think")
    events = [out for event in events_of(recording.body, stream=recording.stream) for out in stage.feed(event)]
    response = fold([*events, *stage.finish()])
    assert response.reasoning.content == thought
    assert response.text == answer


@each_recording([one for one in GOOD if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    chooser = random.Random(recording.file)
    size = len(recording.body)
    for cut in (0, 10, size // 2, *(chooser.randrange(size // 2) for _ in range(5))):
        assert isinstance(read(recording.body[:cut], stream=True).error, BrokenStream)


@each_recording(ERRORS)
def test_an_error_is_told_in_the_providers_words(recording: Recording) -> None:
    said = json.loads(recording.body)["message"]
    error = read(recording.body, stream=False).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == said
    answered = DIALECT.decode_error(recording.meta["http_status"], recording.body, {}, "bedrock")
    assert (answered.status, answered.message) == (recording.meta["http_status"], said)


@each_recording(ALL)
def test_a_recorded_request_goes_on_as_it_came(recording: Recording) -> None:
    path = recording.meta["api_path"].removeprefix("/model/")
    model, method = path.rsplit("/", 1)
    sent = recording.meta["request_body"]
    request = DIALECT.decode_request(json.dumps(sent).encode(), Arrival(model=model, stream="stream" in method))
    wire = DIALECT.encode_request(request, ROW)
    assert wire.path == "model/" + model.replace(":", "%3A") + "/" + method
    assert _comparable(json.loads(wire.body)) == _comparable(sent)
    assert not wire.degraded


def _comparable(body: dict[str, Any]) -> dict[str, Any]:
    """Write shorter and longer forms of the same in one form."""
    body = {name: value for name, value in body.items() if value != [] and name != "schemaVersion"}
    config = body.get("inferenceConfig", {})
    if "max_new_tokens" in config:
        config["maxTokens"] = config.pop("max_new_tokens")
    for message in body.get("messages", ()):
        if "anthropic_version" in body and isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    if isinstance(body.get("system"), str):
        body["system"] = [{"type": "text", "text": body["system"]}]
    return body


def _bare(text: str) -> str:
    return "".join(text.split())


def _words(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the words of one payload, in any of the three languages."""
    if "choices" in value:
        found = []
        for choice in value["choices"]:
            delta = choice.get("delta") or choice.get("message") or {}
            found.append(("text", delta.get("content") or ""))
            found += [("input", call["function"]["arguments"]) for call in delta.get("tool_calls", ())]
        return found
    if "type" in value:
        delta = value.get("delta", {})
        pieces = [("text", delta.get("text", "")), ("input", delta.get("partial_json", ""))]
        for block in value.get("content", ()):
            pieces += [("text", block.get("text", ""))]
            pieces += [("input", json.dumps(block["input"]))] if "input" in block else []
        return pieces
    if "output" in value:
        blocks = value["output"]["message"]["content"]
        return [
            ("text", block["text"]) if "text" in block else ("input", json.dumps(block["toolUse"]["input"]))
            for block in blocks
        ]
    delta = value.get("contentBlockDelta", {}).get("delta", {})
    return [("text", delta.get("text", "")), ("input", delta.get("toolUse", {}).get("input", ""))]
