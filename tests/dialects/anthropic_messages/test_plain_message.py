"""A whole message of text and thinking is read in one go, and gives just what reading it field by field gives."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects.anthropic_messages.reply_in import Decoder
from bardo.streams.frames import Frame
from bardo.values.events import Event
from dialects.openai_chat.test_plain_reply import VALUES
from recordings import Recording, each_recording, rows

ROW = ProviderRow(id="p", name="P", dialect="anthropic_messages")
ROWS = (ROW, msgspec.structs.replace(ROW, quirks=Quirks(output_excludes_reasoning=True)))
PLAIN: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


def plain(data: bytes, row: ProviderRow = ROW) -> list[Event] | None:
    decoder = Decoder(row)
    events = decoder.read_plain(data)
    return None if events is None else [*events, *decoder.finish()]


def check(data: bytes) -> bool:
    """Whether it is read in one go; if so, it says the same."""
    for row in ROWS:
        events, decoder = plain(data, row), Decoder(row)
        if events is not None:
            assert events == [*decoder.feed(Frame(data, raw=data)), *decoder.finish()]
            msgspec.json.decode(data)
    return plain(data) is not None


@each_recording([one for one in rows("anthropic-messages") if one.framing != "sse"])
def test_every_recording_says_the_same(recording: Recording) -> None:
    check(recording.body)


NAMES = st.sampled_from(
    [
        "id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "stop_details", "container", "error",
        "context_management", "text", "thinking", "signature", "citations", "input_tokens", "output_tokens", "cache_control",
        "cache_read_input_tokens", "output_tokens_details", "data", "index", "delta",
    ]
)  # fmt: skip
WORDS = st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "message", "max_tokens", "pause_turn"])
PLACES = st.sampled_from(["message", "thinking", "text", "usage"])


@given(st.lists(st.tuples(PLACES, NAMES, VALUES | WORDS), max_size=3))
def test_whatever_is_added_or_replaced_says_the_same(changes: list[tuple[str, str, Any]]) -> None:
    body = copy.deepcopy(PLAIN)
    thinking, text = body["content"]
    places = {"message": body, "thinking": thinking, "text": text, "usage": body["usage"]}
    for place, name, value in changes:
        places[place][name] = value
    check(json.dumps(body).encode())


TAKEN = {
    "text and thinking": PLAIN,
    "text alone": {**PLAIN, "content": PLAIN["content"][1:]},
    "an empty text": {**PLAIN, "content": [{"type": "text", "text": ""}]},
    "without a signature": {**PLAIN, "content": [{"type": "thinking", "thinking": ""}]},
    "with fields of its own": {**PLAIN, "stop_details": None, "container": {"id": "c"}},
    "a stop sequence": {**PLAIN, "stop_reason": "stop_sequence", "stop_sequence": "END"},
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_plain_messages_are_read_in_one_go(body: dict[str, Any]) -> None:
    assert check(json.dumps(body).encode())


REFUSED = {
    "not JSON": b"{",
    "no UTF-8": json.dumps(PLAIN).encode().replace(b"Hello", b"\xff"),
    "no number": json.dumps(PLAIN).encode().replace(b": 3", b": NaN"),
    "nested deeply": json.dumps(PLAIN).encode().replace(b'"output_tokens"', b'"x": ' + b"[" * 300 + b"]" * 300 + b',"y"'),
    "a call": json.dumps({**PLAIN, "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}).encode(),
    "citations": json.dumps({**PLAIN, "content": [{"type": "text", "text": "a", "citations": []}]}).encode(),
    "a new stop reason": json.dumps({**PLAIN, "stop_reason": "tired"}).encode(),
    "nothing": json.dumps({**PLAIN, "content": []}).encode(),
}  # fmt: skip


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_is_more_than_text_is_read_field_by_field(data: bytes) -> None:
    assert plain(data) is None
