"""Calls in a stream that is forwarded are judged in time that grows with them, however often their arguments are told to be all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.replies.reply_stages import CallArguments
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import Finish, ToolCallChunk, ToolCallEnd, ToolCallStart
from support.growth import check_growth

FEW, MANY, BELOW = 200, 2_000, 30
LONG = "x" * 200


def frame(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def begun(number: int, arguments: str) -> bytes:
    item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": "f", "arguments": ""}
    return frame("response.output_item.added", output_index=number, item=item) + delta(number, arguments)


def delta(number: int, arguments: str) -> bytes:
    return frame("response.function_call_arguments.delta", item_id=f"f{number}", output_index=number, delta=arguments)


def all_told(number: int, arguments: str) -> bytes:
    fields = {"item_id": f"f{number}", "output_index": number, "arguments": arguments}
    return frame("response.function_call_arguments.done", **fields)


def ended(number: int) -> bytes:
    item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": "f", "arguments": "{"}
    return frame("response.output_item.done", output_index=number, item=item)


def is_torn(calls: CallArguments) -> bool:
    return calls.torn


STREAMS: dict[str, Callable[[int], Sequence[bytes]]] = {
    "a torn call that grows": lambda n: [begun(0, '{"a":"'), all_told(0, '{"a":"'), *[delta(0, LONG)] * n],
    "a torn call that grows and ends again and again": lambda n: [begun(0, '{"a":"'), *[delta(0, LONG) + ended(0)] * n],
    "one call that is told often": lambda n: [begun(0, '{"a":"' + LONG * n + '"}'), *[all_told(0, "{}")] * n],
    "many calls that do not end": lambda n: [
        *(begun(number, '{"a":1}') for number in range(n)),
        *(all_told(number, '{"a":1}') for number in range(n)),
    ],
}


@pytest.mark.parametrize("stream", STREAMS)
def test_a_forwarded_stream_of_calls_takes_time_in_proportion(stream: str) -> None:
    def read(frames: Sequence[bytes]) -> None:
        reader = row_reader(
            provider_row("responses-compatible"), streamed=True, model="m", handling=ReplyHandling(forward=True)
        )
        for one in frames:
            reader.feed(one)
        reader.finish()

    check_growth(read, STREAMS[stream](FEW), STREAMS[stream](MANY), below=BELOW)


def test_a_torn_call_that_grows_is_judged_again_and_a_new_one_in_its_place_is_not_torn() -> None:
    calls = CallArguments()
    calls.feed([ToolCallStart(0, "c", "f"), ToolCallChunk(0, '{"a":"')])
    assert is_torn(calls)
    calls.feed([ToolCallChunk(0, f'{LONG}"}}')])
    assert not is_torn(calls)
    calls.feed([ToolCallStart(1, "d", "f"), ToolCallChunk(1, '{"a":"')])
    assert is_torn(calls)
    calls.feed([ToolCallStart(1, "e", "f")])
    assert not is_torn(calls)


def test_a_torn_call_is_judged_again_when_it_ends_however_little_it_grew() -> None:
    calls = CallArguments()
    calls.feed([ToolCallStart(0, "c", "f"), ToolCallChunk(0, '{"a":"')])
    assert is_torn(calls)
    calls.feed([ToolCallChunk(0, '"}')])
    assert [type(one) for one in calls.feed([ToolCallEnd(0), ToolCallEnd(0)])] == [ToolCallEnd, ToolCallEnd]
    assert not is_torn(calls)


def test_a_torn_call_that_ended_twice_is_broken_off_once() -> None:
    calls = CallArguments()
    calls.feed([ToolCallStart(0, "c", "f"), ToolCallChunk(0, '{"a":"'), ToolCallEnd(0), ToolCallEnd(0)])
    assert calls.waits
    assert is_torn(calls)
    assert not [one for one in calls.feed([Finish("length")]) if type(one) is ToolCallEnd]
    assert calls.broke_off(ToolCallEnd(0))
