"""Messages requests that are nested deeply, and blocks with a field that is only carried or lost: each place counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.request_in import decode_request
from bardo.dialects.shared.bounded_json import MAX_DEPTH
from bardo.surfaces.library.decoding import provider_row
from bardo.values.blocks import Carried, UnknownBlock
from bardo.values.errors import InvalidRequest
from bardo.values.wire import Arrival

_PICTURE: dict[str, Any] = {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}}


def _turn(block: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [block]}]}


def _result_of(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": [part]}


def _nested(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


_DEEP: dict[str, tuple[int, Callable[[Any], dict[str, Any]]]] = {
    "input": (6, lambda value: _turn({"type": "tool_use", "id": "a", "name": "f", "input": {"x": value}})),
    "caller": (5, lambda value: _turn({"type": "tool_use", "id": "a", "name": "f", "caller": value})),
    "text": (5, lambda value: _turn({"type": "text", "text": "a", "cache_control": value})),
    "result": (5, lambda value: _turn({"type": "tool_result", "tool_use_id": "a", "toolset_name": value})),
    "part": (7, lambda value: _turn(_result_of({"type": "text", "text": "a", "citations": value}))),
    "picture": (7, lambda value: _turn(_result_of({**_PICTURE, "transformations": value}))),
    "found": (
        7,
        lambda value: _turn({"type": "search_result", "source": "s", "content": [{"type": value, "text": "a"}]}),
    ),
    "unknown block": (5, lambda value: _turn({"type": "unheard_of", "x": value})),
    "field of a turn": (3, lambda value: {"messages": [{"role": "user", "content": "a", "x": value}]}),
    "system": (3, lambda value: {"system": [{"type": "text", "text": "a", "cache_control": value}]}),
    "schema": (4, lambda value: {"tools": [{"name": "f", "input_schema": {"x": value}}]}),
    "top": (1, lambda value: {"metadata": value}),
}


@pytest.mark.parametrize("place", _DEEP)
def test_a_body_has_as_many_levels_as_any_wherever_they_stand(place: str) -> None:
    around, write = _DEEP[place]
    # So long that brackets alone, which may stand in texts, do not say it.
    least = {"model": "m", "max_tokens": 1, "messages": [], "stop_sequences": ["[" * 20_000]}
    decode_request(msgspec.json.encode(least | write(_nested(MAX_DEPTH - around))), Arrival())
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        decode_request(msgspec.json.encode(least | write(_nested(MAX_DEPTH - around + 1))), Arrival())


def test_that_a_body_is_nested_too_deeply_is_said_before_anything_else() -> None:
    body = _turn({"type": "text", "text": "a", "cache_control": _nested(MAX_DEPTH)}) | {"max_tokens": -1}
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        decode_request(msgspec.json.encode(body), Arrival())


_FURTHER: list[tuple[dict[str, Any], str]] = [
    (block, name)
    for kind, block in (
        (wire.Text, {"type": "text", "text": "a"}),
        (wire.ToolUse, {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        (wire.ToolResult, {"type": "tool_result", "tool_use_id": "a"}),
        (wire.Image, _PICTURE),
    )
    for name in (*kind.CARRIED, "unheard_of")
]


@pytest.mark.parametrize(("block", "name"), _FURTHER, ids=lambda one: one if isinstance(one, str) else one["type"])
def test_each_field_that_has_no_word_here_is_carried_where_it_stands_alone(block: dict[str, Any], name: str) -> None:
    body = {"model": "m", "max_tokens": 1, **_turn({**block, name: {"x": 1}})}
    (found,) = decode_request(msgspec.json.encode(body), Arrival()).messages[0].blocks
    assert not isinstance(found, UnknownBlock)
    assert found.carried == Carried("anthropic_messages", {name: {"x": 1}})


def test_a_field_of_a_text_in_a_result_is_reported_where_the_target_has_no_such_field() -> None:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = _result_of({"type": "text", "text": "t", "unheard_of": 1})
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [call]}]
    turns.append({"role": "user", "content": [result]})
    request = decode_request(msgspec.json.encode({"model": "m", "max_tokens": 1, "messages": turns}), Arrival())
    written = dialect("openai_chat").encode_request(request, provider_row("deepseek"))
    assert [(one.what, one.asked, one.sent) for one in written.degraded] == [("unheard_of", 1, None)]
