"""What is true of every recorded Ollama reply."""

from __future__ import annotations

import json
import random
from typing import Any

from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream
from dialects.ollama.replies import ARRIVAL, DIALECT, REQUEST, ROW, events_of, read, write_stream
from dialects.told import as_told
from recordings import Recording, each_recording, rows

ALL = rows("ollama")

each = each_recording(ALL)


@each
def test_what_is_written_reads_back(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    assert read(write_stream(events_of(recording.body, stream=recording.stream)), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@each
def test_every_word_stands_where_it_stood(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    messages = [json.loads(line)["message"] for line in recording.body.splitlines()]
    calls = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    thoughts = [block.text for block in response.blocks if isinstance(block, ReasoningBlock)]
    content = "".join(message["content"] for message in messages)
    assert "".join(thoughts) == "".join(message.get("thinking", "") for message in messages)
    assert "".join(block.text for block in response.blocks if isinstance(block, TextBlock)) == content
    assert [_called(block) for block in response.blocks if isinstance(block, ToolCallBlock)] == [
        (call["name"], call["arguments"]) for call in calls
    ]
    # `think: false` leaves an orphan tag in the text, which is for the splitter to see.
    assert response.text.count("</think>") == content.count("</think>")


def _called(block: ToolCallBlock) -> tuple[str, Any]:
    return block.name, json.loads(block.arguments)


@each
def test_usage_and_end_are_those_of_the_last_line(recording: Recording) -> None:
    response = read(recording.body, stream=recording.stream)
    line = json.loads(recording.body.splitlines()[-1])
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens) == (line["prompt_eval_count"], line["eval_count"])
    assert usage.reasoning_tokens is None
    assert usage.raw["total_duration"] == line["total_duration"]
    assert (response.finish.raw, response.model) == (line["done_reason"], recording.meta["model"])
    expected = {"stop": "tool_calls" if response.tool_calls else "stop", "length": "length"}
    assert response.finish.reason == expected[line["done_reason"]]


@each_recording([one for one in ALL if one.stream])
def test_a_stream_that_is_cut_off_says_so(recording: Recording) -> None:
    chooser = random.Random(recording.file)
    body = recording.body.rstrip()
    for cut in (0, body.rindex(b"\n"), len(body) - 1, *(chooser.randrange(len(body)) for _ in range(5))):
        assert isinstance(read(body[:cut], stream=True).error, BrokenStream)


@each_recording([one for one in ALL if one.meta.get("request_body")])
def test_what_was_asked_is_written_as_it_was(recording: Recording) -> None:
    asked = recording.meta["request_body"]
    request = DIALECT.decode_request(json.dumps(asked).encode(), ARRIVAL)
    wire = DIALECT.encode_request(as_told(request), ROW)
    assert wire.degraded == ()
    assert said(json.loads(wire.body)) == said(asked)


def said(value: Any) -> Any:
    """Leave out what says nothing: empty lists and texts, and text that stands alone in a list of parts."""
    if isinstance(value, list):
        alone = len(value) == 1 and isinstance(value[0], dict) and value[0].keys() == {"type", "text"}
        return value[0]["text"] if alone else [said(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: said(one) for name, one in value.items() if one not in (None, "", [], {}, False)}
