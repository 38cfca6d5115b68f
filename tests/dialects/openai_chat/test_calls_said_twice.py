"""A server that writes a call both in `tool_calls` and in the older `function_call` called one tool, not two."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import msgspec
import pytest

import bardo

ARGUMENTS = '{"city":"Paris","days":3}'
Piece = tuple[str, dict[str, Any]]


def newer(arguments: str, name: str | None = None, *, index: int = 0, **more: Any) -> Piece:
    named: dict[str, Any] = {"name": name} if name else {}
    said: dict[str, Any] = {"index": index, "function": {**named, "arguments": arguments}, **more}
    return "tool_calls", said


def older(arguments: str, name: str | None = None) -> Piece:
    return "function_call", {"name": name, "arguments": arguments} if name else {"arguments": arguments}


def delta(*pieces: Piece) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for field, value in pieces:
        if field == "tool_calls":
            said.setdefault(field, []).append(value)
        else:
            said[field] = value
    return said


def streamed(*deltas: dict[str, Any], finish: str = "tool_calls") -> bytes:
    choices: list[dict[str, Any]] = [{"index": 0, "delta": one, "finish_reason": None} for one in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    frames = [b"data: " + msgspec.json.encode({"id": "c", "model": "m", "choices": [one]}) for one in choices]
    return b"\n\n".join([*frames, b"data: [DONE]", b""])


def calls(body: bytes, *, stream: bool = True) -> list[tuple[str, str]]:
    reply = bardo.decode(body, "openai-compatible", streamed=stream)
    assert reply.error is None
    return [(call.name, call.raw_arguments) for call in reply.tool_calls]


HALVES = (ARGUMENTS[:9], ARGUMENTS[9:])
N0, N1 = newer(HALVES[0], "weather", id="call_1"), newer(HALVES[1])
O0, O1 = older(HALVES[0], "weather"), older(HALVES[1])
BOTH, OLD = newer(ARGUMENTS, "weather", id="call_1"), older(ARGUMENTS, "weather")
STREAMS = {
    "side by side": [delta(N0, O0), delta(N1, O1)],
    "the newer first": [delta(N0), delta(O0), delta(N1), delta(O1)],
    "the older first": [delta(O0), delta(N0), delta(O1), delta(N1)],
    "all of the newer first": [delta(N0), delta(N1), delta(O0), delta(O1)],
    "all of the older first": [delta(O0), delta(O1), delta(N0), delta(N1)],
    "the older whole at the end": [delta(N0), delta(N1), delta(OLD)],
    "the newer whole at the end": [delta(O0), delta(O1), delta(BOTH)],
    "the older whole at once": [delta(OLD), delta(N0), delta(N1)],
    "the older partial": [delta(N0, O0), delta(N1)],
    "the newer partial": [delta(N0, O0), delta(O1)],
    "the older a name only": [delta(older("", "weather")), delta(N0), delta(N1)],
    "the newer a name only": [delta(newer("", "weather", id="call_1")), delta(O0), delta(O1)],
    "no names behind the first": [delta(N0, older(HALVES[0])), delta(N1, O1)],
    "no id": [delta(newer(HALVES[0], "weather"), O0), delta(N1, O1)],
    "other cuts": [
        delta(newer(ARGUMENTS[:3], "weather", id="x"), older(ARGUMENTS[:11], "weather")),
        delta(newer(ARGUMENTS[3:]), older(ARGUMENTS[11:])),
    ],
    "another layout": [delta(BOTH, older('{"city": "Paris", "days": 3}', "weather"))],
    "an empty list beside": [{"tool_calls": [], **delta(O0)}, {"tool_calls": None, **delta(O1)}],
    "an empty object beside": [
        {"function_call": {"name": None, "arguments": ""}, **delta(N0)},
        {"function_call": None, **delta(N1)},
    ],
}


@pytest.mark.parametrize("deltas", STREAMS.values(), ids=STREAMS)
def test_a_call_that_is_streamed_in_both_fields_is_one(deltas: list[dict[str, Any]]) -> None:
    assert calls(streamed(*deltas)) == [("weather", ARGUMENTS)]


def test_a_call_keeps_the_id_that_only_one_field_has() -> None:
    for deltas in ([delta(N0, O0), delta(N1, O1)], [delta(O0), delta(N0), delta(O1), delta(N1)]):
        reply = bardo.decode(streamed(*deltas), "openai-compatible", streamed=True)
        assert [call.id for call in reply.tool_calls] == ["call_1"]


WHOLE_CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
OTHER_CALL = {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": "{}"}}
OLDER_CALL = {"name": "weather", "arguments": ARGUMENTS}
MESSAGES = {
    "both": ({"tool_calls": [WHOLE_CALL], "function_call": OLDER_CALL}, 1),
    "the older first": ({"function_call": OLDER_CALL, "tool_calls": [WHOLE_CALL]}, 1),
    "two and the first of them": ({"tool_calls": [WHOLE_CALL, OTHER_CALL], "function_call": OLDER_CALL}, 2),
    "two and the second of them": ({"tool_calls": [OTHER_CALL, WHOLE_CALL], "function_call": OLDER_CALL}, 2),
    "the older alone": ({"function_call": OLDER_CALL}, 1),
    "an object as arguments": (
        {"tool_calls": [WHOLE_CALL], "function_call": {"name": "weather", "arguments": {"city": "Paris", "days": 3}}},
        1,
    ),
}


@pytest.mark.parametrize(("message", "count"), MESSAGES.values(), ids=MESSAGES)
def test_a_whole_message_with_both_fields_has_each_call_once(message: dict[str, Any], count: int) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "tool_calls"}
    found = calls(msgspec.json.encode({"id": "c", "model": "m", "choices": [choice]}), stream=False)
    assert len(found) == count
    assert ("weather", ARGUMENTS) in found


def test_parallel_calls_of_one_tool_stay_apart() -> None:
    deltas = [
        delta(newer('{"a":1}', "add", id="x"), older('{"a":1}', "add")),
        delta(newer('{"a":2}', "add", index=1, id="y"), older("")),
    ]
    assert calls(streamed(*deltas)) == [("add", '{"a":1}'), ("add", '{"a":2}')]


def test_calls_of_different_names_are_different_calls() -> None:
    deltas = [delta(newer("{}", "first", id="x")), delta(older("{}", "second"))]
    assert [name for name, _ in calls(streamed(*deltas))] == ["first", "second"]


@pytest.mark.parametrize("seed", range(60))
def test_however_two_fields_are_cut_and_mixed_the_call_is_one(seed: int) -> None:
    dice = random.Random(seed)

    def cut(make: Any, **more: Any) -> list[Piece]:
        edges = sorted({0, len(ARGUMENTS), *(dice.randrange(len(ARGUMENTS)) for _ in range(dice.randrange(8)))})
        texts = [ARGUMENTS[begin:end] for begin, end in pairwise(edges)]
        return [
            make(text, *(("weather",) if not place else ()), **(more if not place else {}))
            for place, text in enumerate(texts)
        ]

    queues = [cut(newer, id="call_1"), cut(older)]
    deltas = []
    while any(queues):
        taken = [queue.pop(0) for queue in queues if queue and dice.random() < 0.7]
        deltas += [delta(*taken)] if taken else []
    assert calls(streamed(*deltas)) == [("weather", ARGUMENTS)]
