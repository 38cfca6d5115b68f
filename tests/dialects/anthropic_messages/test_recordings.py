"""What is true of every recorded Anthropic reply."""

from __future__ import annotations

import json
import random
from typing import Any

from bardo.streams.frames import Frame, WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import BrokenStream, UpstreamRefused
from dialects.anthropic_messages.replies import DIALECT, REQUEST, ROW, events_of, read, write_stream
from recordings import Recording, each_recording, rows

ALL = rows("anthropic-messages")
ERRORS = [one for one in ALL if "-error-" in one.file]
GOOD = [one for one in ALL if one not in ERRORS]

each = each_recording(GOOD)


@each
def test_what_is_written_reads_back(recording: Recording) -> None:
    events = events_of(recording.body, stream=recording.stream)
    response = read(recording.body, stream=recording.stream)
    assert read(write_stream(events), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@each
def test_every_word_stands_where_it_stood(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    assert [_said(block) for block in response.blocks] == (
        _stream_content(recording.body) if recording.stream else _whole_content(recording.body)
    )


@each
def test_usage_is_told_in_one_algebra(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    usage, raw = response.usage, response.usage.raw
    cache = (raw.get("cache_read_input_tokens") or 0) + (raw.get("cache_creation_input_tokens") or 0)
    assert usage.input_tokens == raw["input_tokens"] + cache
    assert usage.output_tokens == raw["output_tokens"]
    assert usage.reasoning_tokens == (raw.get("output_tokens_details") or {}).get("thinking_tokens")
    assert recording.meta.get("reasoning_tokens") in (None, usage.reasoning_tokens)


@each
def test_a_frame_that_is_read_part_by_part_says_what_it_says_otherwise(recording: Recording) -> None:
    framing = SseDecoder() if recording.stream else WholeBody()
    plain, odd = DIALECT.open_decoder(ROW), DIALECT.open_decoder(ROW)
    for frame in (*framing.feed(recording.body), *framing.finish()):
        data = (frame.data or b"").lstrip().replace(b"{", b'{"unheard_of":null,', 1)
        assert odd.feed(Frame(data, frame.event, complete=frame.complete)) == plain.feed(frame)
    assert odd.finish() == plain.finish()


@each_recording([one for one in GOOD if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    chooser = random.Random(recording.file)
    end = recording.body.rindex(b"event: message_stop")
    for cut in (0, end, *(chooser.randrange(end) for _ in range(5))):
        assert isinstance(read(recording.body[:cut], stream=True).error, BrokenStream)


@each_recording(ERRORS)
def test_an_error_is_told_in_the_providers_words(recording: Recording) -> None:
    said = json.loads(recording.body)["error"]
    error = read(recording.body, stream=False).error
    assert isinstance(error, UpstreamRefused)
    assert (error.message, error.upstream_type) == (said["message"], said["type"])
    status = recording.meta["http_status"]
    answered = DIALECT.decode_error(status, recording.body, {"retry-after": "3"}, "anthropic")
    assert (answered.status, answered.message, answered.retry_after) == (status, said["message"], "3")
    written = json.loads(DIALECT.encode_error(answered))["error"]
    assert {"message": written["message"], "type": written["type"]} == said


def _said(block: Any) -> tuple[str, Any]:
    """What a decoded block says to a person or a program."""
    if isinstance(block, TextBlock):
        return ("text", block.text)
    if isinstance(block, ReasoningBlock):
        return ("thinking", (block.text, [state.data for state in block.opaque]))
    if isinstance(block, ToolCallBlock):
        return ("tool_use", json.loads(block.arguments))
    assert isinstance(block, UnknownBlock)
    return (block.value["type"], block.value.get("input", block.value.get("content")))


def _whole_content(body: bytes) -> list[tuple[str, Any]]:
    return [_wire_said(block) for block in json.loads(body)["content"]]


def _wire_said(block: dict[str, Any]) -> tuple[str, Any]:
    kind = block["type"]
    if kind == "text":
        return (kind, block["text"])
    if kind == "thinking":
        return (kind, (block["thinking"], [block["signature"]]))
    if kind == "redacted_thinking":
        return ("thinking", ("", [block["data"]]))
    return (kind, block.get("input", block.get("content")))


def _stream_content(body: bytes) -> list[tuple[str, Any]]:
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for line in body.decode().splitlines():
        if not line.startswith("data:"):
            continue
        payload = json.loads(line[5:])
        if payload["type"] == "content_block_start":
            blocks[payload["index"]] = payload["content_block"]
        elif payload["type"] == "content_block_delta":
            index, delta = payload["index"], payload["delta"]
            for name in ("text", "thinking", "signature"):
                blocks[index][name] = blocks[index].get(name, "") + delta.get(name, "")
            inputs[index] = inputs.get(index, "") + delta.get("partial_json", "")
    for index, text in inputs.items():
        if text:
            blocks[index]["input"] = json.loads(text)
    return [_wire_said(blocks[index]) for index in sorted(blocks)]
