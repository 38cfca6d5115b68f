"""A request that holds only what most do is read as one whose other fields are all silent."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects import dialect
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request
from bardo.values.wire import Arrival

_ANY: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats(0, 2) | st.text(max_size=4) | st.just([]) | st.just({})
)
_CONTENT = st.text(max_size=9) | st.none() | st.lists(st.just({"type": "text", "text": "a"}), max_size=2) | _ANY
_ROLE = st.sampled_from(["user", "assistant", "system", "developer", "tool", "nobody"]) | _ANY
_MESSAGE = st.fixed_dictionaries(
    {"role": _ROLE},
    optional={"content": _CONTENT, "name": _ANY, "tool_call_id": _ANY},
)
_FIELDS = st.fixed_dictionaries(
    {"model": st.just("m") | _ANY, "messages": st.lists(_MESSAGE, max_size=3) | _ANY},
    optional={
        "max_tokens": st.integers(0, 9) | _ANY,
        "max_completion_tokens": _ANY,
        "stream": st.booleans() | _ANY,
        "stream_options": st.fixed_dictionaries({}, optional={"include_usage": _ANY, "other": _ANY}) | _ANY,
        "temperature": st.floats(0, 2) | _ANY,
        "seed": _ANY,
        "stop": st.lists(st.text(max_size=2), max_size=2) | _ANY,
        "system": st.text(max_size=3) | _ANY,
    },
)


def _read(name: str, fields: dict[str, Any]) -> Request | str:
    try:
        request = dialect(name).decode_request(msgspec.json.encode(fields), Arrival())
    except InvalidRequest as problem:
        return problem.message
    return msgspec.structs.replace(request, body=None, body_bytes=b"")


@given(_FIELDS)
def test_a_chat_request_of_common_fields_is_read_as_one_with_silent_others(fields: dict[str, Any]) -> None:
    fields.pop("system", None)
    assert _read("openai_chat", fields) == _read("openai_chat", {**fields, "tools": None})


@given(_FIELDS)
def test_a_messages_request_of_common_fields_is_read_as_one_with_silent_others(fields: dict[str, Any]) -> None:
    for name in ("max_completion_tokens", "stream_options", "seed", "stop"):
        fields.pop(name, None)
    assert _read("anthropic_messages", fields) == _read("anthropic_messages", {**fields, "tools": None})


@given(st.fixed_dictionaries({"role": _ROLE, "content": _CONTENT}))
def test_a_message_of_two_fields_is_read_as_one_with_a_silent_third(message: dict[str, Any]) -> None:
    plain = {"model": "m", "max_tokens": 9, "messages": [message]}
    third = {**plain, "messages": [{**message, "name": None}]}
    assert _read("openai_chat", plain) == _read("openai_chat", third)
    assert _read("anthropic_messages", plain) == _read("anthropic_messages", third)
