"""Tool calls from the pieces they come in."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import ToolCallChunk, ToolCallEnd, ToolCallStart
from dialects.openai_chat.chat import chunk, events, message, streamed

STOP = chunk({}, "tool_calls")


def piece(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """Return one entry of `tool_calls`; `name` and `arguments` stand under `function`."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    placed = {} if index is None else {"index": index}
    return chunk({"tool_calls": [{**placed, **fields, "function": function}]})


def call(identity: str, name: str, arguments: str) -> ToolCallBlock:
    return ToolCallBlock(id=identity, name=name, arguments=arguments)


A, B = call("a", "f", '{"x":1}'), call("b", "g", '{"y":2}')

STREAMS: dict[str, tuple[list[dict[str, Any]], tuple[ToolCallBlock, ...]]] = {
    "as OpenAI does": (
        [piece(id="a", type="function", name="f", arguments=""), piece(arguments='{"x"'), piece(arguments=":1}")],
        (A,),
    ),
    "two, one after the other": (
        [piece(0, id="a", name="f", arguments='{"x"'), piece(0, arguments=":1}"),
         piece(1, id="b", name="g"), piece(1, arguments='{"y":2}')],
        (A, B),
    ),
    "two, in turns": (
        [piece(0, id="a", name="f"), piece(1, id="b", name="g"), piece(0, arguments='{"x":1}'), piece(1, arguments='{"y":2}')],
        (A, B),
    ),
    "ids null in later pieces": ([piece(id="a", name="f", arguments='{"x"'), piece(id=None, type=None, name=None, arguments=":1}")], (A,)),
    "id and name in every piece": ([piece(id="a", name="f", arguments='{"x"'), piece(id="a", name="f", arguments=":1}")], (A,)),
    "the name in every piece, the id in none": (
        [piece(name="f", arguments='{"x"'), piece(name="f", arguments=":1}")],
        (call("", "f", '{"x":1}'),),
    ),
    "every call with the index 0": (
        [piece(0, id="a", name="f", arguments='{"x":1}'), piece(0, id="b", name="g", arguments='{"y":2}')],
        (A, B),
    ),
    "every call with the index 0, and arguments in pieces": (
        [piece(0, id="a", name="f"), piece(0, arguments='{"x":1}'), piece(0, id="b", name="g"), piece(0, arguments='{"y":2}')],
        (A, B),
    ),
    "every call with the index 0 and no id": (
        [piece(0, name="f", arguments='{"x":1}'), piece(0, name="f", arguments='{"y":2}')],
        (call("", "f", '{"x":1}'), call("", "f", '{"y":2}')),
    ),
    "no index": ([piece(None, id="a", name="f", arguments='{"x":1}'), piece(None, id="b", name="g", arguments='{"y":2}')], (A, B)),
    "an index as text": ([piece("x", id="a", name="f"), piece("x", arguments='{"x":1}')], (A,)),  # type: ignore[arg-type]
    "the id after the name": ([piece(name="f"), piece(id="a", arguments='{"x":1}')], (A,)),
    "the name after the id": ([piece(id="a"), piece(name="f", arguments='{"x":1}')], (A,)),
    "arguments null": ([piece(id="a", name="f", arguments=None)], (call("a", "f", ""),)),
    "arguments as an object": ([piece(id="a", name="f", arguments={"x": 1})], (A,)),
    "an empty shape": ([piece(id="", name="", arguments="")], ()),
    "a name alone": ([piece(name="f")], (call("", "f", ""),)),
    "the older field": (
        [chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": '{"x":1}'}})],
        (call("", "f", '{"x":1}'),),
    ),
    "the older field as an empty shape": ([chunk({"content": None, "function_call": {"name": "", "arguments": ""}})], ()),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "calls"), STREAMS.values(), ids=STREAMS.keys())
def test_calls(chunks: list[dict[str, Any]], calls: tuple[ToolCallBlock, ...]) -> None:
    assert streamed(*chunks, STOP).blocks == calls


@pytest.mark.parametrize("chunks", [chunks for chunks, _ in STREAMS.values()], ids=STREAMS.keys())
def test_each_call_starts_once_and_ends_once(chunks: list[dict[str, Any]]) -> None:
    found = events(*chunks, STOP)
    starts = [event.block for event in found if isinstance(event, ToolCallStart)]
    ends = [event.block for event in found if isinstance(event, ToolCallEnd)]
    assert starts == sorted(set(starts)) == sorted(ends)
    for block in starts:
        own = [event for event in found if getattr(event, "block", None) == block]
        assert isinstance(own[0], ToolCallStart)
        assert isinstance(own[-1], ToolCallEnd)


def test_a_call_is_over_when_the_next_begins_and_nothing_can_follow() -> None:
    chunks = [piece(0, id="a", name="f", arguments='{"x":1}'), piece(1, id="b", name="g", arguments="{}")]
    kinds = [(type(event), event.block) for event in events(*chunks, STOP) if hasattr(event, "block")]
    assert kinds.index((ToolCallEnd, 0)) < kinds.index((ToolCallStart, 1))


def test_a_call_whose_arguments_are_not_whole_is_not_over() -> None:
    chunks = [
        piece(0, id="a", name="f", arguments='{"x"'),
        piece(1, id="b", name="g", arguments="{}"),
        piece(0, arguments=":1}"),
    ]
    kinds = [(type(event), event.block) for event in events(*chunks, STOP) if hasattr(event, "block")]
    assert kinds.index((ToolCallEnd, 0)) > kinds.index((ToolCallStart, 1))
    assert kinds.index((ToolCallEnd, 0)) > max(place for place, kind in enumerate(kinds) if kind == (ToolCallChunk, 0))


def test_text_after_a_call_that_waits_for_its_id_comes_after_it() -> None:
    assert streamed(piece(name="f"), chunk({"content": "a"}), STOP).blocks == (call("", "f", ""), TextBlock("a"))


def test_thinking_before_and_after_a_call() -> None:
    response = streamed(chunk({"reasoning": "x"}), piece(id="a", name="f"), chunk({"reasoning": "y"}), STOP)
    assert [type(block) for block in response.blocks] == [ReasoningBlock, ToolCallBlock, ReasoningBlock]
    assert response.reasoning.interleaved


def test_calls_of_a_message_keep_their_order() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "abc"]
    assert [one.name for one in message("tool_calls", tool_calls=calls).tool_calls] == ["a", "b", "c"]


GEMINI = Opaque("signature", "sig", "google-gemini-v1")
OTHER = Opaque("encrypted", "abc", "x-v1")

EXTRAS: dict[str, tuple[dict[str, Any], tuple[Opaque, ...], Carried | None]] = {
    "Gemini's signature": ({"google": {"thought_signature": "sig"}}, (GEMINI,), None),
    "bardo's own": ({"bardo": {"opaque": {"encrypted": {"data": "abc", "format": "x-v1"}}}}, (OTHER,), None),
    "both": (
        {"google": {"thought_signature": "sig"}, "bardo": {"opaque": {"encrypted": {"data": "abc", "format": "x-v1"}}}},
        (GEMINI, OTHER),
        None,
    ),
    "something beside it": (
        {"google": {"thought_signature": "sig", "thought": True}},
        (GEMINI,),
        Carried("openai_chat", {"extra_content": {"google": {"thought": True}}}),
    ),
    "something else": ({"vendor": [1]}, (), Carried("openai_chat", {"extra_content": {"vendor": [1]}})),
    "a seal that is none": (
        {"bardo": {"opaque": {"magic": {"data": "abc"}}}},
        (),
        Carried("openai_chat", {"extra_content": {"bardo": {"opaque": {"magic": {"data": "abc"}}}}}),
    ),
}


@pytest.mark.parametrize(("extra", "states", "carried"), EXTRAS.values(), ids=EXTRAS.keys())
def test_opaque_state_of_a_call(extra: dict[str, Any], states: tuple[Opaque, ...], carried: Carried | None) -> None:
    said = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    expected = ToolCallBlock(id="a", name="f", arguments="{}", opaque=states, carried=carried)
    assert message("tool_calls", tool_calls=[said]).blocks == (expected,)
    assert streamed(chunk({"tool_calls": [said]}), STOP).blocks == (expected,)


def test_opaque_state_of_a_text() -> None:
    response = message(content="a", extra_content={"google": {"thought_signature": "sig"}})
    assert response.blocks == (TextBlock("a", (GEMINI,)),)


def test_a_custom_tool_takes_text() -> None:
    said = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    expected = ToolCallBlock(
        id="a", name="sql", arguments="select 1", carried=Carried("openai_chat", {"type": "custom"})
    )
    assert message("tool_calls", tool_calls=[said]).blocks == (expected,)


def test_the_empty_half_of_a_call_is_no_field() -> None:
    said = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "custom": {"name": "", "input": ""},
    }
    assert message("tool_calls", tool_calls=[said]).blocks == (call("a", "f", "{}"),)
