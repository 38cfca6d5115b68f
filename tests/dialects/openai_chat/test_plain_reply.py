"""A whole reply of one choice with a text and no call is read at once, and gives just what feeding it gives."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.openai_chat.reply_in import ChatDecoder
from bardo.streams.frames import Frame
from bardo.values.events import Event
from dialects.openai_chat.test_chat_recordings import ALL
from recordings import Recording, each_recording

PLAIN: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 5,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


def plain(data: bytes, excludes: bool | None = None) -> list[Event] | None:
    decoder = ChatDecoder(excludes_reasoning=excludes)
    events = decoder.read_plain(data)
    return None if events is None else [*events, *decoder.finish()]


def fed(data: bytes, excludes: bool | None = None) -> list[Event]:
    decoder = ChatDecoder(excludes_reasoning=excludes)
    return [*decoder.feed(Frame(data, raw=data)), *decoder.finish()]


def check(data: bytes) -> bool:
    """Whether it is read at once; if so, it says the same."""
    found = [plain(data, excludes) for excludes in (None, True, False)]
    for excludes, events in zip((None, True, False), found, strict=True):
        if events is not None:
            assert events == fed(data, excludes)
            msgspec.json.decode(data)
    return found[0] is not None


@each_recording([one for one in ALL if one.framing != "sse"])
def test_every_recording_says_the_same(recording: Recording) -> None:
    check(recording.body)


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "",
        "x",
        0,
        1,
        -1,
        1.5,
        True,
        [],
        [1],
        {},
        {"a": 1},
        ["x", None],
        1 << 60,
        "length",
        "\ud800",
        [{}],
        "tool_calls",
    ]
)
NAMES = st.sampled_from(
    [
        "id", "object", "created", "model", "choices", "usage", "error", "system_fingerprint", "service_tier", "index", "delta",
        "message", "finish_reason", "logprobs", "stop_reason", "token_ids", "content", "role", "refusal", "reasoning", "name",
        "reasoning_content", "reasoning_details", "tool_calls", "function_call", "audio", "annotations", "extra_content",
        "prompt_logprobs", "x_groq", "provider_metadata", "prompt_tokens", "completion_tokens", "total_tokens", "cost",
        "completion_tokens_details", "reasoning_tokens", "content_blocks", "matched_stop", "seed", "native_finish_reason", "provider",
        "content_filter_results", "base_resp", "prompt_filter_results",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["reply", "choice", "message", "usage"]), NAMES, VALUES), max_size=3))
def test_whatever_is_added_or_replaced_says_the_same(changes: list[tuple[str, str, Any]]) -> None:
    body = copy.deepcopy(PLAIN)
    choice = body["choices"][0]
    places = {"reply": body, "choice": choice, "message": choice["message"], "usage": body["usage"]}
    for place, name, value in changes:
        places[place][name] = value
    check(json.dumps(body).encode())


def with_message(**fields: Any) -> dict[str, Any]:
    return {**PLAIN, "choices": [{"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": "stop"}]}


TAKEN = {
    "the plainest": PLAIN,
    "without usage": {name: value for name, value in PLAIN.items() if name != "usage"},
    "with a fingerprint": {**PLAIN, "system_fingerprint": "fp", "service_tier": None},
    "with thinking": with_message(reasoning_content="Hm.", content="Hello."),
    "with thinking in details": with_message(
        content="Hello.", reasoning_details=[{"type": "reasoning.text", "text": "Hm.", "index": 0}]
    ),
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_replies_of_one_choice_without_calls_are_read_at_once(body: dict[str, Any]) -> None:
    assert check(json.dumps(body).encode())


REFUSED = {
    "not JSON": b"{",
    "no UTF-8": json.dumps(PLAIN).encode().replace(b"Hello", b"\xff"),
    "no number": json.dumps(PLAIN).encode().replace(b"5", b"NaN"),
    "nested deeply": json.dumps(PLAIN).encode().replace(b'"completion_tokens"', b'"x": ' + b"[" * 300 + b"]" * 300 + b',"y"'),
    "a call": json.dumps(PLAIN).encode().replace(b'"role"', b'"tool_calls": [{}], "role"'),
    "two choices": json.dumps({**PLAIN, "choices": PLAIN["choices"] * 2}).encode(),
    "no text": json.dumps(with_message(content="", reasoning_content="Hm.")).encode(),
    "text in parts": json.dumps(with_message(content=["Hello."])).encode(),
    "an older call": json.dumps(with_message(content="Hello.", function_call={"name": "f"})).encode(),
    "no choice": json.dumps({**PLAIN, "choices": []}).encode(),
    "choices that are null": json.dumps({**PLAIN, "choices": None}).encode(),
    "a choice that is null": json.dumps({**PLAIN, "choices": [None]}).encode(),
    "no message": json.dumps(PLAIN).encode().replace(b'"message"', b'"delta"'),
    "a delta beside the message": json.dumps(PLAIN).encode().replace(b'"message"', b'"delta": {}, "message"'),
    "no reason to end": json.dumps(PLAIN).encode().replace(b'"stop"', b"null"),
    "an error": json.dumps({**PLAIN, "error": {"message": "busy"}}).encode(),
    "an error of the choice": json.dumps(PLAIN).encode().replace(b'"index"', b'"error": {"message": "busy"}, "index"'),
    "a field without a name": json.dumps({**PLAIN, "unheard_of": 1}).encode(),
}  # fmt: skip


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_other_replies_are_fed(data: bytes) -> None:
    assert plain(data) is None


def test_a_reply_that_was_read_at_once_may_be_fed_all_the_same() -> None:
    data = json.dumps(PLAIN).encode()
    decoder = ChatDecoder()
    assert decoder.read_plain(data) == decoder.read_plain(data) == fed(data)
    assert [*decoder.feed(Frame(data, raw=data)), *decoder.finish()] == fed(data)


def test_what_goes_back_to_the_provider_is_known_of_a_reply_that_was_read_at_once() -> None:
    detail = {"type": "reasoning.text", "text": "Hm.", "format": None, "index": 0}
    decoder = ChatDecoder(returns_details=True)
    assert decoder.read_plain(json.dumps(with_message(content="Hello.", reasoning_details=[detail])).encode())
    assert decoder.fields_to_return() == {0: {"reasoning_details": [detail]}}
