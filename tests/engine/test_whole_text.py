"""A reply of one text, read at once, says the same as one that passes the stages of a reply."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.engine.attempt import Attempt
from bardo.engine.reply_reader import ReplyReader
from bardo.engine.route import Provider, Target
from bardo.engine.text_formats import PLAIN as PLAIN_TEXT
from bardo.engine.thinking_display import thinking_stage
from bardo.engine.translation_stages import stages_of_translation
from bardo.engine.whole_text import Reader, read_text
from bardo.values.degradation import Degradation, distinct
from bardo.values.events import Degraded, Extension, ReplyStart
from bardo.values.request import BardoOptions, Request
from bardo.values.response import Response
from bardo.values.secrets import NO_SECRETS, Secrets, secrets_of
from bardo.values.wire import WireRequest
from dialects.anthropic_messages.test_plain_message import NAMES as MESSAGE_NAMES
from dialects.openai_chat.test_chat_recordings import ALL, row_of
from dialects.openai_chat.test_plain_reply import NAMES, PLAIN, VALUES
from recordings import Recording, each_recording, rows

STAMP = ReplyStart(id="req_1", model="asked", created=1)
LOST = distinct([Degradation("top_k", asked=3, why="x"), Degradation("seed", asked=1, why="y")])
KEY = "sk-ant-0123456789abcdef"
CLIENTS = ("", "openai_chat", "anthropic_messages", "openai_responses", "gemini", "ollama")
CHAT, MESSAGES = builtin().provider("openai-chat"), builtin().provider("anthropic")
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


def check(
    body: bytes,
    row: ProviderRow,
    client: str,
    *,
    lost: tuple[Degradation, ...] = (),
    options: BardoOptions | None = None,
    secrets: Secrets = NO_SECRETS,
) -> bool:
    """Whether it is read at once; if so, it says the same."""
    request = Request(model="asked", messages=(), dialect=client, options=options or BardoOptions())
    target = Target(provider=Provider(id="mine", row=row, base_url="http://x"), model="m1")
    attempt = Attempt(target=target, wire=WireRequest(path="", body=b""))
    forward = client == row.dialect
    stages = [stages_of_translation(attempt, request, forward=forward) for _ in range(2)]
    text = read_text(body, target, stamp=STAMP, degraded=lost, stages=stages[0], secrets=secrets)
    if text is None:
        return False
    reader = ReplyReader(
        row,
        streamed=False,
        provider="mine",
        model="m1",
        formats=PLAIN_TEXT,
        thinking=thinking_stage(request, row.dialect),
        stamp=STAMP,
        stages=stages[1],
        secrets=secrets,
        forward=forward,
    )
    for one in lost:
        reader.fold.feed(Degraded(one))
    events, raw = reader.read_whole(body)
    assert raw == body
    assert list(text.events) == list(events)
    assert reader.failure is None
    same(text, reader)
    for read in (text, reader):
        read.settle([Degraded(Degradation("late"))])
        read.fold.feed(Extension({"a": 1}))
    same(text, reader)
    return True


def same(one: Reader, other: Reader) -> None:
    for name in Response.__struct_fields__:
        assert getattr(one.response(), name) == getattr(other.response(), name), name
    assert one.usage == other.usage
    assert one.response_with_reasoning() == other.response_with_reasoning()
    assert one.unfiltered_response() == other.unfiltered_response()
    assert one.fields_to_return() == other.fields_to_return()
    states = ("lacks_ids", "switches", "reframed", "thinking_place", "holds_all")
    assert [getattr(one, name) for name in states] == [getattr(other, name) for name in states]


@pytest.mark.parametrize("client", CLIENTS, ids=[one or "library" for one in CLIENTS])
@each_recording([one for one in ALL if one.framing != "sse"])
def test_every_chat_recording_says_the_same(recording: Recording, client: str) -> None:
    check(recording.body, row_of(recording), client, lost=LOST)


@pytest.mark.parametrize("client", CLIENTS, ids=[one or "library" for one in CLIENTS])
@each_recording([one for one in rows("anthropic-messages") if one.framing != "sse"])
def test_every_recorded_message_says_the_same(recording: Recording, client: str) -> None:
    assert MESSAGES is not None
    check(recording.body, MESSAGES, client)


@pytest.mark.parametrize("omit", [False, True], ids=["with thinking", "without thinking"])
@pytest.mark.parametrize("client", CLIENTS, ids=[one or "library" for one in CLIENTS])
def test_a_text_is_read_at_once(client: str, omit: bool) -> None:
    assert CHAT is not None
    assert MESSAGES is not None
    options = BardoOptions(omit_reasoning=omit)
    assert check(json.dumps(PLAIN).encode(), CHAT, client, lost=LOST, options=options)
    assert check(json.dumps(MESSAGE).encode(), MESSAGES, client, options=options)
    assert check(json.dumps({**PLAIN, "id": "", "service_tier": "flex"}).encode(), CHAT, client)


def test_a_text_that_quotes_a_secret_is_not() -> None:
    assert CHAT is not None
    quoting = json.dumps({**PLAIN, "system_fingerprint": KEY}).encode()
    assert not check(quoting, CHAT, "openai_chat", secrets=secrets_of((KEY,)))
    assert check(json.dumps(PLAIN).encode(), CHAT, "openai_chat", secrets=secrets_of((KEY,)))


CHAT_PLACES = st.sampled_from(["reply", "choice", "message", "usage"])


@given(st.sampled_from(CLIENTS), st.lists(st.tuples(CHAT_PLACES, NAMES, VALUES), max_size=3))
def test_whatever_is_added_or_replaced_says_the_same(client: str, changes: list[tuple[str, str, Any]]) -> None:
    assert CHAT is not None
    body = copy.deepcopy(PLAIN)
    choice = body["choices"][0]
    places = {"reply": body, "choice": choice, "message": choice["message"], "usage": body["usage"]}
    for place, name, value in changes:
        places[place][name] = value
    check(json.dumps(body).encode(), CHAT, client)


@given(
    st.sampled_from(CLIENTS),
    st.lists(st.tuples(st.sampled_from(["message", "usage"]), MESSAGE_NAMES, VALUES), max_size=3),
)
def test_whatever_is_added_to_a_message_says_the_same(client: str, changes: list[tuple[str, str, Any]]) -> None:
    assert MESSAGES is not None
    body = copy.deepcopy(MESSAGE)
    places = {"message": body, "usage": body["usage"]}
    for place, name, value in changes:
        places[place][name] = value
    check(json.dumps(body).encode(), MESSAGES, client)
