"""What providers send, read into structs as far as it fits: nothing is refused, and nothing that does not fit is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.openai_chat.wire import FORM, Detail, Reply, ReplyCall, ReplyMessage, ReplyText, ReplyThinking
from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES
from bardo.dialects.shared.json_values import REPAIRED, WrongShape
from bardo.dialects.shared.reply_structs import held, read_liberally
from bardo.dialects.shared.structs import Unknown
from bardo.values.events import Event
from support.generated_wire import GeneratedValues


def test_what_fits_is_read_and_all_else_stands_beside() -> None:
    found = read_liberally({"content": "a", "reasoning": 5, "x": None, "refusal": None}, ReplyMessage)
    assert (found.content, found.reasoning, found.refusal) == ("a", None, None)
    assert found.others == {"reasoning": 5, "x": None}


def test_a_value_is_held_where_it_stands() -> None:
    call = read_liberally({"id": "c", "type": ["function"]}, ReplyCall)
    assert (held(call, "id"), held(call, "type"), held(call, "x")) == ("c", ["function"], None)
    detail = read_liberally({"index": 1.5, "text": None}, Detail)
    assert (held(detail, "index"), held(detail, "text")) == (1.5, None)
    assert held(Detail(), "type") is msgspec.UNSET


@pytest.mark.parametrize(
    ("type_of_field", "value"),
    [("tool_calls", {}), ("extra_content", []), ("reasoning_encrypted", 1), ("reasoning_content", True)],
)
def test_no_type_is_taken_for_another(type_of_field: str, value: Any) -> None:
    assert read_liberally({type_of_field: value}, ReplyMessage).others == {type_of_field: value}


def test_among_objects_what_is_none_is_null() -> None:
    calls = read_liberally({"tool_calls": [{"id": "a"}, 5, None, []]}, ReplyMessage).tool_calls
    assert calls == [ReplyCall(id="a"), None, None, None]


def test_a_list_that_may_not_hold_null_stands_beside_as_a_whole() -> None:
    part = read_liberally({"content": [{"type": "thinking", "thinking": ["a", 5]}]}, ReplyMessage).content
    assert isinstance(part, list)
    assert isinstance(part[0], ReplyThinking)
    assert (part[0].thinking, part[0].others) == (None, {"thinking": ["a", 5]})


@pytest.mark.parametrize(
    "part", [{"type": "reference", "text": "a"}, {"type": "text"}, {"type": "text", "text": 5}, 5, None]
)
def test_a_block_that_no_struct_reads_is_kept_whole(part: Any) -> None:
    content = read_liberally({"content": [{"type": "text", "text": "a", "y": 1}, part]}, ReplyMessage).content
    assert isinstance(content, list)
    assert isinstance(content[0], ReplyText)
    assert content[0].others == {"y": 1}
    assert isinstance(content[1], Unknown)
    assert content[1].whole.value == part


def test_what_the_structs_allow_is_read_alike_at_once_and_field_by_field() -> None:
    for seed in range(400):
        value = GeneratedValues(("reply", seed), (0.0, 0.02, 0.1)[seed % 3]).of(Reply)
        if not isinstance(value, dict):
            continue
        found, liberal = FORM.decode_strict(msgspec.json.encode(value)), read_liberally(value, Reply)
        assert found is None or _shown(found) == _shown(liberal)
        assert found is not None or seed % 3, value


def test_a_name_that_nobody_knows_changes_nothing_of_what_it_stands_beside() -> None:
    for seed in range(400):
        value = GeneratedValues(("beside", seed), (0.0, 0.02, 0.1)[seed % 3]).of(Reply)
        if not isinstance(value, dict):
            continue
        plain, odd = read_liberally(value, Reply), read_liberally({**value, "odd": [seed]}, Reply)
        assert odd.others == {**(plain.others or {}), "odd": [seed]}
        assert _shown(msgspec.structs.replace(odd, others=plain.others)) == _shown(plain)


def test_a_name_that_nobody_knows_does_not_let_a_block_be_of_a_type_that_only_bardo_gives() -> None:
    block = {"type": "\uffff", "whole": {"value": 1}}
    choice = (read_liberally({"odd": 1, "choices": [{"message": {"content": [block]}}]}, Reply).choices or [])[0]
    assert choice is not None
    assert choice.message is not None
    assert isinstance(choice.message.content, list)
    assert isinstance(choice.message.content[0], Unknown)
    assert choice.message.content[0].whole.value == block


def _shown(value: Any) -> Any:
    """Return a struct as what compares: a block that was kept whole does not."""
    if isinstance(value, Unknown):
        return value.whole.value
    if isinstance(value, msgspec.Struct):
        return [_shown(getattr(value, name)) for name in value.__struct_fields__]
    return [*map(_shown, value)] if isinstance(value, list) else value


def test_a_block_is_never_of_a_type_that_only_bardo_gives() -> None:
    data = b'{"choices":[{"message":{"content":[{"type":"\xef\xbf\xbf","whole":{"value":1}}]}}]}'
    assert FORM.decode_strict(data) is None
    choice = (FORM.decode(data).choices or [])[0]
    assert choice is not None
    assert choice.message is not None
    assert isinstance(choice.message.content, list)
    assert isinstance(choice.message.content[0], Unknown)


DEEP = b'{"usage":{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}}"


@pytest.mark.parametrize(
    ("data", "error"), [(b"{", ValueError), (b"", ValueError), (DEEP, ValueError), (b"[]", WrongShape), (b"null", WrongShape)]
)  # fmt: skip
def test_what_is_no_object_is_refused(data: bytes, error: type[Exception]) -> None:
    assert FORM.decode_strict(data) is None
    with pytest.raises(error):
        FORM.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"id":"a","x":1}', id="a field without a name"),
        pytest.param(b'{"id":"a","created":"5"}', id="a field of another type"),
        pytest.param(b'{"id":"a","citations":[' + b"[]," * MAX_DEPTH + b"[]]}", id="many brackets"),
        pytest.param(b'{"id":"a","provider":"' + b"x" * SLICED_BYTES + b'"}', id="long"),
    ],
)
def test_what_is_not_read_at_once_is_read_all_the_same(data: bytes) -> None:
    report: list[Event] = []
    assert FORM.decode_strict(data) is None
    assert FORM.decode(data, report).id == "a"
    assert report == []


def test_what_had_to_be_mended_is_told() -> None:
    report: list[Event] = []
    assert FORM.decode(b'{"id":"a\xff"}', report).id == "a\ufffd"
    assert report == [REPAIRED]
