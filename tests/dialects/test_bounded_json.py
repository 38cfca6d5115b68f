"""JSON that is decoded a slice at a time says the same as JSON that is decoded at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.anthropic_messages.reply_in import Decoder
from bardo.dialects.openai_chat.wire import FORM
from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES, decode_bounded
from bardo.values.errors import InvalidRequest
from bardo.values.wire import Arrival

DIALECTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
)
few_bytes = st.integers(1, 40)


def _at_once(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ValueError


def _in_slices(data: bytes, slice_bytes: int, levels: int = MAX_DEPTH) -> Any:
    try:
        return decode_bounded(data, levels, slice_bytes=slice_bytes)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ValueError


def _nested(value: Any, levels: int) -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"a": 1, "b": value}
    return value


@given(values, few_bytes, st.integers(0, 12), st.booleans(), st.sampled_from([None, 1]))
def test_any_slices_give_the_same_value(
    value: Any, slice_bytes: int, levels: int, as_ascii: bool, indent: int | None
) -> None:
    data = json.dumps(_nested(value, levels), ensure_ascii=as_ascii, indent=indent).encode()
    assert _in_slices(data, slice_bytes) == msgspec.json.decode(data)
    assert [*map(repr, _in_slices(b"[" + data + b"]", slice_bytes))] == [repr(msgspec.json.decode(data))]


@given(st.text('{}[]",:\\ 1a', max_size=14), few_bytes)
@example("[,1]", 1)
@example("[1,]", 1)
@example("[1,,1]", 1)
@example("{,}", 1)
@example('{"a":1,}', 1)
@example("[1}", 1)
@example("[[1]1]", 1)
@example("[[],]", 1)
@example('{"a" 1}', 1)
@example("[1] 1", 1)
@example('["a', 1)
@example("[\v1]", 1)
@example("[", 1)
@example('{"a":}', 1)
@example('{"a":[],"a":1}', 1)
def test_any_slices_refuse_the_same(text: str, slice_bytes: int) -> None:
    data = text.encode()
    assert _in_slices(data, slice_bytes) == _at_once(data)


@given(values, few_bytes, st.data())
def test_what_was_cut_or_changed_in_one_byte_is_judged_alike(value: Any, slice_bytes: int, data: st.DataObject) -> None:
    body = json.dumps([value, [value]]).encode()
    place = data.draw(st.integers(0, len(body) - 1))
    for changed in (body[:place], body[:place] + body[place + 1 :], body[:place] + b"," + body[place + 1 :]):
        assert _in_slices(changed, slice_bytes) == _at_once(changed)


@pytest.mark.parametrize("levels", [1, 2, 7, 8, 9, 10, 20, MAX_DEPTH])
def test_as_many_levels_are_read_as_are_allowed(levels: int) -> None:
    for slice_bytes in (1, 1000):
        for deep in (b"[" * levels + b"1" + b"]" * levels, b'{"a":' * levels + b"1" + b"}" * levels):
            assert _in_slices(deep, slice_bytes, levels) == msgspec.json.decode(deep)
            with pytest.raises(RecursionError):
                decode_bounded(b"[" + deep + b"]", levels, slice_bytes=slice_bytes)


@pytest.mark.parametrize("begin", [b"[", b'{"a":', b'[1,{"a":'])
def test_a_million_levels_are_refused(begin: bytes) -> None:
    with pytest.raises(RecursionError):
        decode_bounded(begin * 1_000_000)


TEXTS = {
    "characters of three bytes": "語" * 1_000_000,
    "escapes": '"\\\n' * 1_000_000,
    "pairs of surrogates": "😀" * 700_000,
    "one and then pairs": "é😀" * 500_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("as_ascii", [True, False])
def test_a_long_text_is_read_in_parts(text: str, as_ascii: bool) -> None:
    data = json.dumps({"a": text, "b": 1}, ensure_ascii=as_ascii).encode()
    seen: list[int] = []

    def decode(part: bytes) -> Any:
        seen.append(len(part))
        return msgspec.json.decode(part)

    assert decode_bounded(data, decode=decode) == {"a": text, "b": 1}
    assert len(data) > 2_500_000 > max(seen)


@pytest.mark.parametrize("wrong", [rb"\ud800", rb"\x", b"\xff", b"\n"])
def test_a_long_text_that_is_wrong_somewhere_is_refused(wrong: bytes) -> None:
    assert _in_slices(b'["' + b"x" * 3_000_000 + wrong + b'"]', 96 * 1024) is ValueError


WIDE = {
    "fields": b'{"m":{' + b",".join(b'"key%d":"value"' % place for place in range(120_000)) + b"}}",
    "numbers": b'{"m":[' + b"1," * 600_000 + b"1]}",
    "objects": b"[" + b'{"a":[{"b":[{}]}]},' * 60_000 + b"{}]",
}


@pytest.mark.parametrize("data", WIDE.values(), ids=WIDE.keys())
def test_no_call_of_the_library_reads_much_at_a_time(data: bytes) -> None:
    seen: list[int] = []

    def decode(part: bytes) -> Any:
        seen.append(len(part))
        return msgspec.json.decode(part)

    assert len(data) > SLICED_BYTES
    assert decode_bounded(data, decode=decode) == msgspec.json.decode(data)
    assert max(seen) < 128 * 1024


QUICK = {
    "a turn of an agent": json.dumps([{"role": "tool", "content": "word, " * 150}] * 600).encode(),
    "as many objects as are quick": b"[" + b",".join([b'{"a":1234567890}'] * 49_990) + b"]",
    "as many values as are quick": b"[" + b",".join([b"1234"] * 100_000) + b"]",
}


@pytest.mark.parametrize("data", QUICK.values(), ids=QUICK.keys())
@pytest.mark.parametrize("more", [b"", b",[]", b",1,1"])
def test_long_json_of_few_values_is_read_in_one_call(data: bytes, more: bytes) -> None:
    seen: list[int] = []

    def decode(part: bytes) -> Any:
        seen.append(len(part))
        return msgspec.json.decode(part)

    many = data[:-1] + more * 20_000 + b"]"
    assert SLICED_BYTES < len(data) < 2 * 1024 * 1024
    assert decode_bounded(many, decode=decode) == msgspec.json.decode(many)
    quick = many.count(b"[") + many.count(b"{") <= 50_000 and many.count(b",") <= 100_000
    assert (seen == [len(many)]) is quick
    assert quick or max(seen) < 128 * 1024


def test_an_error_names_the_byte_of_the_whole() -> None:
    data = b'{"m":[' + b"1," * 600_000 + b"x]}"
    with pytest.raises(msgspec.DecodeError, match=rf"\(byte {len(data) - 3}\)"):
        decode_bounded(data)


LONG = "x" * SLICED_BYTES
ROW = ProviderRow(id="p", name="P", dialect="anthropic_messages")
DIRECT = {
    "a whole chat": lambda: FORM.decode_strict(_chat(LONG)),
    "a whole message": lambda: Decoder(ROW).read_plain(_message(LONG)),
    "a frame of a chat": lambda: FORM.decode_strict(_chunk(LONG)),
}


@pytest.mark.parametrize("read", DIRECT.values(), ids=DIRECT.keys())
def test_what_is_long_is_not_read_in_one_call(read: Callable[[], object]) -> None:
    assert read() is None


def test_what_is_short_may_be_read_in_one_call() -> None:
    assert FORM.decode_strict(_chat("x"))
    assert Decoder(ROW).read_plain(_message("x"))
    assert FORM.decode_strict(_chunk("x"))


def _chat(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return msgspec.json.encode(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )


def _chunk(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}}
    return msgspec.json.encode(
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    )


def _message(text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    return msgspec.json.encode(
        {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "end_turn"}
    )


HALF = (rb"\ud800", rb"a\ud83d", rb"\ud800b", rb"\\\ud800bcd")


@pytest.mark.parametrize("half", HALF, ids=repr)
@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("fields", [0, 150_000], ids=["short", "long"])
def test_half_a_character_at_the_end_is_not_called_a_cut_text(name: str, half: bytes, fields: int) -> None:
    begin = b'{"contents":[],"messages":[],"model":"m","x":[%b0],"user":"' % (b"0," * fields)
    for end in (b'"}', b'"}\n'):
        with pytest.raises(InvalidRequest, match="surrogate"):
            dialect(name).decode_request(begin + half + end, Arrival(model="m"))
    for cut in (begin + half, begin + b"abc", begin + b'abc"', begin + rb"\ud8"):
        with pytest.raises(InvalidRequest, match="Input data was truncated"):
            dialect(name).decode_request(cut, Arrival(model="m"))
