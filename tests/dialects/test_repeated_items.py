"""A history that came before is found by its bytes: what is read of a request and what is sent for it is as if none were kept."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.catalog.replay import builtin_replay
from bardo.dialects import dialect
from bardo.dialects.shared import losses as written_histories
from bardo.dialects.shared import repeated_items
from bardo.dialects.shared.bounded_json import MAX_DEPTH
from bardo.dialects.shared.json_values import decode_object
from bardo.dialects.shared.known_items import KnownItems
from bardo.dialects.shared.repeated_items import LONGEST_ITEM, REPEATED_ITEMS, RepeatedItems
from bardo.reasoning.replay import restore, turns_of
from bardo.reasoning.replay.keys import reply_keys
from bardo.values import histories
from bardo.values.blocks import TextBlock, ToolCallBlock
from bardo.values.errors import BardoError, InvalidRequest
from bardo.values.request import Request
from bardo.values.wire import Arrival
from dialects.test_repeated_tools import DIALECTS, PROVIDERS
from dialects.test_same_bytes import BODIES
from recordings import folders, rows

LISTS = ("messages", "input", "contents")
ANSWER = (TextBlock("Done."), ToolCallBlock(id="call_1", name="look", arguments="{}"))


def _bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the dialect, the model and the body of requests with a history, and of the turns before it."""
    for name, body in BODIES.items():
        yield from _turns(name, "m", body)
    for folder in folders():
        for one in [*rows(folder)][::3]:
            asked, path = one.meta.get("request_body"), one.meta.get("api_path", "")
            if isinstance(asked, dict):
                name = next((name for part, name in DIALECTS.items() if part in path), "openai_chat")
                yield from _turns(name, one.meta.get("model") or "m", asked)


def _turns(name: str, model: str, body: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for field in LISTS:
        items = body.get(field)
        if isinstance(items, list) and len(items) > 1:
            for length in {1, len(items) // 2, len(items) - 1, len(items)}:
                yield name, model, {**body, field: items[:length]}


def _decoded(name: str, model: str, raw: bytes) -> Request | str:
    try:
        return dialect(name).decode_request(raw, Arrival(model=model))
    except InvalidRequest as problem:
        return problem.message


def _sent(request: Request, provider: str) -> Any:
    """Return the history that a provider gets, what is sent, and what was lost."""
    row = builtin().provider(provider)
    assert row is not None
    restored = restore(request, builtin_replay().reader(provider, row, request.model))
    asked = restored.request
    plain = asked if asked.dialect == row.dialect else dialect(asked.dialect).as_functions(asked)
    try:
        written: Any = dialect(row.dialect).encode_request(plain, row)
    except BardoError as problem:
        written = problem.message
    return restored.altered, restored.degraded, asked.messages, written


def _outcome(name: str, model: str, raw: bytes) -> Any:
    request = _decoded(name, model, raw)
    if isinstance(request, str):
        return request
    sent = [_sent(request, provider) for provider in PROVIDERS]
    return request, turns_of(request), reply_keys(request, ANSWER), sent


def _least(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(repeated_items, "LEAST_BYTES", size)
    monkeypatch.setattr(repeated_items, "_LEAST_SCHEMA", size)
    monkeypatch.setattr(repeated_items, "LEAST_ITEMS", size)
    for module in (histories, written_histories):
        monkeypatch.setattr(module, "LEAST_MESSAGES", size)


def test_what_is_read_and_sent_is_as_if_no_history_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [*_bodies()]
    raw = [msgspec.json.encode(body) for _, _, body in bodies]
    _least(monkeypatch, 1 << 40)
    anew = [_outcome(name, model, one) for (name, model, _), one in zip(bodies, raw, strict=True)]
    _least(monkeypatch, 1)
    shared = 0
    for seed in range(3):
        for place in random.Random(seed).sample(range(len(bodies)), len(bodies)):
            name, model, _ = bodies[place]
            assert _outcome(name, model, raw[place]) == anew[place], (name, model)
            again = _decoded(name, model, raw[place])
            same = _decoded(name, model, raw[place])
            if (
                isinstance(again, Request)
                and isinstance(same, Request)
                and name in ("openai_chat", "anthropic_messages")
            ):
                shared += again.messages[-1] is same.messages[-1]
    assert shared
    kept = {**REPEATED_ITEMS._older, **REPEATED_ITEMS._newer}
    assert kept
    assert all(msgspec.json.decode(one) == item.value for one, item in kept.items())


PROPERTIES = {f"p{number}": {"type": "string", "description": "d" * 20} for number in range(40)}
OBJECT = {"type": "object", "properties": PROPERTIES, "required": [*PROPERTIES], "additionalProperties": False}
MESSAGES = [{"role": "user", "content": "Answer."}]
CHAT_FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": OBJECT, "strict": True}}
MESSAGES_FORM = {"type": "json_schema", "schema": OBJECT}
TYPED: dict[str, tuple[str, dict[str, Any]]] = {
    "Chat": ("openai_chat", {"messages": MESSAGES, "response_format": CHAT_FORM}),
    "Chat in Messages' words": ("openai_chat", {"messages": MESSAGES, "output_config": {"format": MESSAGES_FORM}}),
    "Responses": (
        "openai_responses",
        {"input": "Answer.", "text": {"format": {**MESSAGES_FORM, "name": "answer"}, "verbosity": "low"}},
    ),
    "Messages": (
        "anthropic_messages",
        {"messages": MESSAGES, "max_tokens": 99, "output_config": {"format": MESSAGES_FORM, "effort": "low"}},
    ),
    "Messages, older": (
        "anthropic_messages",
        {"messages": MESSAGES, "max_tokens": 99, "output_format": MESSAGES_FORM, "output_config": {"effort": "low"}},
    ),
}


@pytest.mark.parametrize("case", TYPED.values(), ids=TYPED)
def test_a_schema_that_came_before_is_read_once(
    case: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, fields = case
    raw = msgspec.json.encode({"model": "m", **fields})
    _least(monkeypatch, 1 << 40)
    expected = _outcome(name, "m", raw)
    monkeypatch.undo()
    asked = [_decoded(name, "m", raw) for _ in range(3)]
    assert [_outcome(name, "m", raw) for _ in range(2)] == [expected, expected]
    assert [*msgspec.json.decode(raw)] == [*(asked[0].body if isinstance(asked[0], Request) and asked[0].body else ())]
    forms = [one.output_format for one in asked if isinstance(one, Request)]
    assert forms[0] is not None
    assert forms[0].schema == OBJECT
    if "response_format" in fields or name != "openai_chat":
        assert forms[0] is forms[1] is forms[2]
    other = json.loads(raw.replace(b'"p7"', b'"q7"'))
    changed = _decoded(name, "m", msgspec.json.encode(other))
    assert isinstance(changed, Request)
    assert changed.output_format is not None
    assert "q7" in changed.output_format.schema["properties"]


def test_each_call_reports_what_it_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    _least(monkeypatch, 1)
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    body = {"model": "m", "messages": [{"role": "user", "content": [sound, {"type": "text", "text": "Listen."}]}]}
    first, second = (_outcome("openai_chat", "m", msgspec.json.encode(body)) for _ in range(2))
    lost = [[written.degraded for *_, written in one[3] if not isinstance(written, str)] for one in (first, second)]
    assert lost[0] == lost[1]
    assert any(lost[0])


def test_a_word_put_into_one_call_is_not_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    _least(monkeypatch, 1)
    row = builtin().provider("openrouter")
    assert row is not None
    assert row.quirks.signed_calls
    call = {"id": "call_7", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_7", "content": "Nothing."},
    ]
    signed, plain = "google/gemini-3-pro-preview", "mistralai/mistral-large"

    def sent(model: str) -> bytes:
        body = {"model": model, "messages": messages, "user": "somebody"}
        request = _decoded("openai_chat", model, msgspec.json.encode(body))
        assert isinstance(request, Request)
        return dialect("openai_chat").encode_request(request, row).body

    before = sent(plain)
    assert b"reasoning_details" in sent(signed)
    assert sent(plain) == before
    assert b"reasoning_details" not in before


@given(st.binary(max_size=60), st.sampled_from(["messages", "input", "contents", "prompt"]))
def test_any_bytes_give_what_they_gave_before(tail: bytes, name: str) -> None:
    items = RepeatedItems()
    padding = json.dumps([{"role": "user", "content": "word " * 400}] * 4).encode()
    body = b'{"model":"m","%s":%s,"x":%s}' % (name.encode(), padding, tail)

    def outcome(decode: Any) -> Any:
        try:
            return decode()
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            return str(problem)

    expected = outcome(lambda: msgspec.json.decode(body))
    for _ in range(2):
        assert outcome(lambda: items.decode(body, msgspec.json.decode)) == expected


@pytest.mark.parametrize("depth", [MAX_DEPTH - 3, MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH, 5000])
@pytest.mark.parametrize("name", LISTS)
def test_an_item_may_nest_as_deeply_as_without_a_history(
    depth: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = b"[" * depth + b"]" * depth
    body = b'{"%s":[%s,{"role":"user"},%s],"model":"m"}' % (name.encode(), b'{"a":"%s"}' % (b"x" * 3000), deep)

    def outcome() -> Any:
        try:
            return decode_object(body)
        except InvalidRequest as problem:
            return problem.message

    monkeypatch.setattr(repeated_items, "LEAST_BYTES", 1 << 40)
    expected = outcome()
    monkeypatch.setattr(repeated_items, "LEAST_BYTES", 1)
    assert [outcome(), outcome()] == [expected, expected]
    assert isinstance(expected, str) == (depth > MAX_DEPTH - 2)


def _body(*texts: str) -> bytes:
    return msgspec.json.encode({"messages": [{"role": "user", "content": text} for text in texts]})


def test_what_is_kept_is_bounded_and_what_is_asked_for_stays() -> None:
    items = RepeatedItems(most_bytes=200_000)
    steady = "s" * 3000
    first = items.decode(_body(steady, "b", "c"), msgspec.json.decode)["messages"]
    for place in range(300):
        texts = [f"{place} {number}" + "x" * 2000 for number in range(3)]
        found = items.decode(_body(steady, *texts), msgspec.json.decode)["messages"]
        assert type(found) is KnownItems
        assert found[0] is first[0]
    held = [*items._newer, *items._older]
    assert sum(map(len, held)) < 300_000
    assert len(items) < 200


def test_a_very_long_item_is_read_anew() -> None:
    items = RepeatedItems()
    body = _body("x" * LONGEST_ITEM, "b", "c")
    one, other = (items.decode(body, msgspec.json.decode)["messages"] for _ in range(2))
    assert one == other
    assert one[0] is not other[0]
    assert one[1] is other[1]


def test_spaces_and_the_order_of_keys_are_those_of_the_client() -> None:
    items = RepeatedItems()
    for written in ('{"role":"user","content":"hi"}', '{ "content" : "hi", "role" : "user" }'):
        body = ('{"messages": [' + ",".join([written] * 200) + "]}").encode()
        found = items.decode(body, msgspec.json.decode)["messages"]
        assert [*found[0]] == [*json.loads(written)]
