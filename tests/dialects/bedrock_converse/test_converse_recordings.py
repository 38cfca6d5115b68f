"""What is true of every recorded Converse reply."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock, fields_for
from bardo.values.errors import BrokenStream, UpstreamRefused
from bardo.values.request import Control
from bardo.values.wire import Arrival
from dialects.bedrock_converse.replies import DIALECT, REQUEST, ROW, events_of, payloads, read, write_stream
from recordings import Recording, each_recording, rows

ALL = rows("bedrock-converse")
ERRORS = [one for one in ALL if one.meta["http_status"] != 200]
GOOD = [one for one in ALL if one not in ERRORS]

each = each_recording(GOOD)


@each
def test_what_is_written_reads_back(recording: Recording) -> None:
    events = events_of(recording.body, stream=recording.stream)
    response = read(recording.body, stream=recording.stream)
    assert response.finish.raw
    assert read(write_stream(events), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@each
def test_every_word_stands_where_it_stood(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    said = _stream_content(recording.body) if recording.stream else _whole_content(recording.body)
    assert [_said(block) for block in response.blocks] == said


@each
def test_nothing_of_the_reply_vanishes(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    written = json.loads(DIALECT.encode_response(response, REQUEST))
    if recording.stream:
        events = dict(payloads(recording.body))
        for name, value in {**events["messageStop"], **events["metadata"]}.items():
            assert name == "p" or written[name] == value
    else:
        assert written == json.loads(recording.body)


@each
def test_usage_is_told_in_one_algebra(recording: Recording) -> None:
    usage = read(recording.body, stream=recording.stream).usage
    assert usage.input_tokens is not None
    assert usage.output_tokens is not None
    assert usage.input_tokens + usage.output_tokens == usage.raw["totalTokens"]
    assert usage.reasoning_tokens is None
    assert usage.cached_input_tokens == usage.raw.get("cacheReadInputTokens")


@each_recording([one for one in GOOD if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    chooser = random.Random(recording.file)
    end = recording.body.rindex(b"messageStop")
    for cut in (0, end, *(chooser.randrange(end) for _ in range(5))):
        assert isinstance(read(recording.body[:cut], stream=True).error, BrokenStream)


@each_recording(ERRORS)
def test_an_error_is_told_in_the_providers_words(recording: Recording) -> None:
    said = json.loads(recording.body)["message"]
    error = read(recording.body, stream=False).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == said
    status = recording.meta["http_status"]
    answered = DIALECT.decode_error(status, recording.body, {"retry-after": "3"}, "bedrock")
    assert (answered.status, answered.message, answered.retry_after) == (status, said, "3")
    assert json.loads(DIALECT.encode_error(answered))["message"] == said


@each_recording(ALL)
def test_a_recorded_request_goes_on_as_it_came(recording: Recording) -> None:
    """Where a picture or a document was left out of the recording, its place still holds a word."""
    path = recording.meta["api_path"].removeprefix("/model/")
    model, method = path.rsplit("/", 1)
    sent = recording.meta["request_body"]
    arrival = Arrival(model=model, stream=method.endswith("-stream"))
    request = DIALECT.decode_request(json.dumps(sent).encode(), arrival)
    control = Control(fields=request.reasoning.raw_fields if request.reasoning is not None else {})
    wire = DIALECT.encode_request(msgspec.structs.replace(request, control=control), ROW)
    assert wire.path == "model/" + model.replace(":", "%3A") + "/" + method
    assert _bare(json.loads(wire.body)) == _bare(sent)
    assert not [one for one in wire.degraded if one.what != "text"]


def _bare(value: Any) -> Any:
    """Leave out what says nothing: empty objects at the top, and a schema's text, which may be spaced otherwise."""
    body = {name: item for name, item in value.items() if item not in ({}, [])}
    for tool in body.get("toolConfig", {}).get("tools", ()):
        tool.get("toolSpec", {}).pop("type", None)
    schema = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema")
    if schema:
        schema["schema"] = json.loads(schema["schema"])
    if body.get("inferenceConfig", {}).get("stopSequences") == []:
        del body["inferenceConfig"]["stopSequences"]
    return body


def _said(block: Any) -> tuple[str, Any]:
    """What a decoded block says to a person or a program."""
    if isinstance(block, TextBlock):
        return ("text", (block.text, fields_for("bedrock_converse", block.carried).get("citations")))
    if isinstance(block, ReasoningBlock):
        return ("reasoningContent", (block.text, [state.data for state in block.opaque]))
    if isinstance(block, ToolCallBlock):
        return ("toolUse", (block.id, block.name, json.loads(block.arguments)))
    assert isinstance(block, UnknownBlock)
    return ("unknown", block.value)


def _whole_content(body: bytes) -> list[tuple[str, Any]]:
    return [_wire_said(block) for block in json.loads(body)["output"]["message"]["content"]]


def _wire_said(block: dict[str, Any]) -> tuple[str, Any]:
    if "text" in block:
        return ("text", (block["text"], None))
    if "citationsContent" in block:
        inner = block["citationsContent"]
        return ("text", ("".join(part["text"] for part in inner["content"]), inner["citations"]))
    if "reasoningContent" in block:
        thought = block["reasoningContent"]
        if "redactedContent" in thought:
            return ("reasoningContent", ("", [thought["redactedContent"]]))
        spoken = thought["reasoningText"]
        return ("reasoningContent", (spoken["text"], [spoken["signature"]] if "signature" in spoken else []))
    if "toolUse" in block and block["toolUse"].get("type") != "server_tool_use":
        use = block["toolUse"]
        return ("toolUse", (use["toolUseId"], use["name"], use["input"]))
    return ("unknown", block)


def _stream_content(body: bytes) -> list[tuple[str, Any]]:
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for name, payload in payloads(body):
        index = payload.get("contentBlockIndex")
        if name == "contentBlockStart":
            blocks[index] = payload["start"]
        elif name == "contentBlockDelta":
            delta = payload["delta"]
            block = blocks.setdefault(index, {})
            if "text" in delta:
                block["text"] = block.get("text", "") + delta["text"]
            elif "reasoningContent" in delta:
                thought = block.setdefault("reasoningContent", {})
                for key, value in delta["reasoningContent"].items():
                    inner = thought if key == "redactedContent" else thought.setdefault("reasoningText", {"text": ""})
                    inner[key] = inner.get(key, "") + value
            elif "toolUse" in delta:
                inputs[index] = inputs.get(index, "") + delta["toolUse"]["input"]
            elif "toolResult" in delta:
                block["toolResult"]["content"] = delta["toolResult"]
    for index, text in inputs.items():
        blocks[index]["toolUse"]["input"] = json.loads(text)
    return [_wire_said(block) for _, block in sorted(blocks.items()) if block != {"text": ""}]
