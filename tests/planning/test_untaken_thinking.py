"""Chat providers without a field for earlier thinking get none of it, whatever a client sends back, and the client is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.wire import Arrival

THOUGHT = "I look it up first."
FIELDS: list[dict[str, Any]] = [
    {"reasoning_content": THOUGHT},
    {"reasoning": THOUGHT},
    {"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "signature": "c2ln", "format": "unknown"}]},
    {"thinking_blocks": [{"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}]},
]


def put(preset: str, model: str, said: dict[str, Any]) -> Attempt:
    row = builtin().provider(preset)
    assert row is not None
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": model,
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": None, "tool_calls": [call], **said},
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        ],
    }
    request = dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival(model=model))
    return plan(request, Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model))


@pytest.mark.parametrize(
    ("preset", "model"), [("openai-chat", "gpt-5.4"), ("xai", "grok-4.3"), ("writer", "palmyra-x5")]
)
@pytest.mark.parametrize("said", FIELDS, ids=lambda said: next(iter(said)))
def test_earlier_thinking_is_left_out_and_reported(preset: str, model: str, said: dict[str, Any]) -> None:
    sent = put(preset, model, said)
    assert THOUGHT.encode() not in sent.wire.body
    assert b"c2ln" not in sent.wire.body
    assert b'"tool_calls"' in sent.wire.body
    assert [one.sent for one in sent.degraded if one.what == "reasoning"] == [None]


def test_a_history_without_thinking_goes_on_as_it_came() -> None:
    sent = put("openai-chat", "gpt-5.4", {})
    assert sent.forward
    assert not sent.degraded


def test_thinking_that_a_provider_takes_goes_on_as_it_came() -> None:
    sent = put("deepseek", "deepseek-v4-pro", {"reasoning_content": THOUGHT})
    assert sent.forward
    assert THOUGHT.encode() in sent.wire.body


@pytest.mark.parametrize("said", FIELDS, ids=lambda said: next(iter(said)))
@pytest.mark.parametrize("model", ["deepseek-v4-flash", "kimi-k2.6", "some-model"])
def test_a_server_of_which_only_the_dialect_is_known_gets_what_its_client_gives_it(
    model: str, said: dict[str, Any]
) -> None:
    sent = put("openai-compatible", model, said)
    message = msgspec.json.decode(sent.wire.body)["messages"][1]
    assert message["tool_calls"]
    for name, value in said.items():
        assert THOUGHT in str(message[name])
        assert message[name] == value or "c2ln" not in str(value) or "c2ln" in str(message[name])
    assert not [one for one in sent.degraded if one.what == "reasoning"]


def given_back(preset: str, model: str, *items: dict[str, Any]) -> Attempt:
    row = builtin().provider(preset)
    assert row is not None
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
    body = {"model": model, "store": False, "input": [{"role": "user", "content": "Hello."}, *items, call, result]}
    request = dialect("openai_responses").decode_request(msgspec.json.encode(body), Arrival(model=model))
    return plan(request, Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model))


def test_an_item_with_another_models_thinking_is_not_for_openai() -> None:
    content = [{"type": "reasoning_text", "text": THOUGHT}]
    made = {"type": "reasoning", "id": "rs_bardo_0123_0", "summary": [], "content": content}
    sent = given_back("openai", "gpt-5-mini", made)
    assert THOUGHT.encode() not in sent.wire.body
    assert b"rs_bardo_" not in sent.wire.body
    assert [one.what for one in sent.degraded] == ["reasoning"]


OWN = {"type": "reasoning", "id": "rs_68a1", "summary": [], "encrypted_content": "gAAAAAB" + "x" * 40}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]}


@pytest.mark.parametrize(
    ("items", "leads"),
    [
        ([OWN, SAID], True),
        ([OWN, OWN, SAID], True),
        ([{**OWN, "encrypted_content": None}], True),
        ([OWN], False),
        ([OWN, OWN], False),
        ([OWN, SAID, OWN], False),
    ],
    ids=["an answer", "an answer behind two", "no state", "nothing", "nothing behind two", "nothing behind an answer"],
)
def test_reasoning_that_leads_to_nothing_is_left_out_however_it_is_sent(items: list[Any], leads: bool) -> None:
    body = {
        "model": "gpt-5-mini",
        "store": False,
        "input": [*items, {"type": "message", "role": "user", "content": "Go on."}],
    }
    row = builtin().provider("openai")
    assert row is not None
    request = dialect("openai_responses").decode_request(msgspec.json.encode(body), Arrival(model="gpt-5-mini"))
    target = Target(provider=Provider(id="openai", row=row, base_url="http://host/v1"), model="gpt-5-mini")
    sent, written = plan(request, target), plan(request, target, may_forward=False)
    assert (sent.written is None) is leads
    lost = [(one.what, one.asked, one.sent) for one in sent.degraded]
    assert lost == [(one.what, one.asked, one.sent) for one in written.degraded]
    assert bool(lost) is not leads
    kinds = [one.get("type") for one in msgspec.json.decode(sent.wire.body)["input"]]
    assert kinds == [one.get("type") for one in msgspec.json.decode(written.wire.body)["input"]]


def test_openais_own_items_go_on_as_they_came() -> None:
    own = {"type": "reasoning", "id": "rs_68a1", "summary": [], "encrypted_content": "gAAAAAB" + "x" * 40}
    sent = given_back("openai", "gpt-5-mini", own)
    assert sent.forward
    assert b'"rs_68a1"' in sent.wire.body
    assert not sent.degraded
