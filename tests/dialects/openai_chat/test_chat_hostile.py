"""No bytes make the decoder raise, and whatever it says can be written and folded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.dialects.openai_chat import DIALECT
from bardo.replies.reply_reader import row_reader
from bardo.streams.frames import Frame
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import Failed, Finish, ThinkEnd, ThinkStart, ToolCallEnd, ToolCallStart
from bardo.values.fold import fold
from dialects.openai_chat.chat import REQUEST, ROW, chunk, events_of_frames, written

KEYS = [
    "id", "model", "created", "choices", "index", "delta", "message", "finish_reason", "content", "reasoning", "reasoning_content",
    "reasoning_details", "type", "text", "summary", "data", "signature", "format", "part", "tool_calls", "function", "name",
    "arguments", "custom", "input", "function_call", "refusal", "audio", "transcript", "logprobs", "usage", "completion_tokens",
    "prompt_tokens", "total_tokens", "completion_tokens_details", "reasoning_tokens", "cost", "error", "code", "status", "thinking",
    "extra_content", "google", "thought_signature", "bardo", "opaque", "content_blocks", "block", "x_groq", "p", "message.x",
]  # fmt: skip
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["stop", "text", "thinking", "reasoning.text", "reasoning.summary", "custom", "{}", "a", "\x00"])
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
deltas = st.dictionaries(st.sampled_from(KEYS), values, max_size=5)
bodies = st.one_of(
    values,
    st.builds(
        lambda delta, more: {**chunk(delta), **more}, deltas, st.dictionaries(st.sampled_from(KEYS), values, max_size=2)
    ),
    st.builds(lambda choices: {"choices": choices}, values),
)
frames = st.builds(
    lambda body, event, complete: Frame(body, event, b"", complete),
    bodies.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=30),
    st.sampled_from(["", "", "", "error", "ping"]),
    st.booleans(),
)


@given(st.lists(frames, max_size=5))
@example([Frame(json.dumps({"choices": [{"delta": {}, "message.x": 1, "message": {"x": 2}, "a.b": 1}]}).encode())])
@example([Frame(b'{"choices":[{"delta":{"x":' + b"[" * 900 + b"]" * 900 + b"}}]}")])
@example([Frame(json.dumps(chunk({"content": "a"}, choice_logprobs=5)).encode())])
def test_every_stream_is_read_written_and_folded(given_frames: list[Frame]) -> None:
    found = events_of_frames(DIALECT.open_decoder(ROW), given_frames)
    failures = [place for place, event in enumerate(found) if isinstance(event, Failed)]
    assert failures in ([], [len(found) - 1])
    response = fold(found)
    assert (response.error is not None) is bool(failures)
    DIALECT.encode_response(response, REQUEST)
    assert written(found)


@given(
    st.lists(
        st.builds(lambda delta, finish: chunk(delta, finish), deltas, st.sampled_from([None, None, "stop"])), max_size=6
    )
)
def test_blocks_begin_once_and_end_once(bodies_given: list[dict[str, Any]]) -> None:
    found = events_of_frames(
        DIALECT.open_decoder(ROW), [Frame(json.dumps(body).encode()) for body in bodies_given] + [Frame(b"[DONE]")]
    )
    for begins, ends in ((ThinkStart, ThinkEnd), (ToolCallStart, ToolCallEnd)):
        begun = [event.block for event in found if isinstance(event, begins)]
        assert sorted(set(begun)) == sorted(begun)
        assert sorted(begun) == sorted(event.block for event in found if isinstance(event, ends))
    if bodies_given and not any(isinstance(event, Failed) for event in found):
        assert any(isinstance(event, Finish) for event in found)


@pytest.mark.parametrize("kind", [[], {}, None, 1], ids=repr)
def test_a_reasoning_detail_whose_type_is_no_word_is_one_of_its_own(kind: object) -> None:
    pieces = [{"type": "reasoning.text", "text": "a"}, {"type": kind, "text": "b"}]
    frames = [{"choices": [{"index": 0, "delta": {"reasoning_details": [piece]}}]} for piece in pieces]
    body = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)
    reader = row_reader(provider_row("openrouter"), streamed=True)
    reader.feed(body)
    reader.finish()
    assert reader.fields_to_return() == {0: {"reasoning_details": pieces}}
