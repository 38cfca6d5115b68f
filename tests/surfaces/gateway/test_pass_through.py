"""Same dialect on both sides and nothing to change: the provider's own bytes reach the client (GW5)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from support.gateway import House, model_of
from support.talk import Answer, ask, body_for, request
from surfaces.gateway.cells import whole_and_streamed

# The providers whose replies are already what a client of their dialect expects.
PLAIN = {
    "deepseek": "openai_chat",
    "qwen": "openai_chat",
    "openai_chat": "openai_chat",
    "openai_responses": "openai_responses",
    "anthropic": "anthropic_messages",
    "gemini": "gemini",
}
each_plain = pytest.mark.parametrize("provider", PLAIN)
USAGE_IN_STREAMS = {"stream_options": {"include_usage": True}}


def asked_of(town: House, provider: str, *, stream: bool, **asked: Any) -> Answer:
    further = USAGE_IN_STREAMS if stream and PLAIN[provider] == "openai_chat" else {}
    return ask(town.address, PLAIN[provider], model_of(provider), stream=stream, **{**further, **asked})


def as_asked(body: bytes, provider: str) -> bytes:
    """Return what a provider sent with the model's name as the client asked for it."""
    asked = model_of(provider)
    return body.replace(json.dumps(asked.removeprefix(f"{provider}/")).encode(), json.dumps(asked).encode())


@each_plain
@whole_and_streamed
def test_the_providers_bytes_are_forwarded(town: House, provider: str, stream: bool) -> None:
    answer = asked_of(town, provider, stream=stream)
    assert answer.status == 200
    assert answer.body == as_asked(town.sent(provider), provider)


@each_plain
@whole_and_streamed
def test_a_tool_call_is_forwarded(town: House, provider: str, stream: bool) -> None:
    answer = asked_of(town, provider, stream=stream, tools=True, question="What is the weather in Paris?")
    assert "weather" in answer.text
    assert answer.body == as_asked(town.sent(provider), provider)


@each_plain
@whole_and_streamed
def test_usage_is_read_on_the_way(town: House, provider: str, stream: bool) -> None:
    answer = asked_of(town, provider, stream=stream, thinks=True)
    row = town.log.row(answer.headers["x-bardo-request-id"])
    assert row.passed_through
    assert row.outcome == "ok"
    assert row.input_tokens
    assert (row.output_tokens, row.reasoning_tokens) == (31, 30)
    assert row.finish_raw
    if not stream:
        assert answer.headers["x-bardo-reasoning-tokens"] == "30"


@each_plain
@whole_and_streamed
def test_what_the_client_wrote_is_sent_on(town: House, provider: str, stream: bool) -> None:
    further = {"metadata": {"user_id": "u-1"}} if provider == "anthropic" else {}
    asked_of(town, provider, stream=stream, bardo={"reasoning": "include"}, **further)
    body = town.last(provider)
    assert "bardo" not in body
    assert body.get("metadata") == further.get("metadata")
    assert body.get("model", "in the path") in ("in the path", model_of(provider).removeprefix(f"{provider}/"))


@pytest.mark.parametrize("provider", [name for name, dialect in PLAIN.items() if dialect == "openai_chat"])
@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}, {"stream_options": None}])
def test_usage_nobody_asked_for_is_withheld(town: House, provider: str, options: dict[str, Any]) -> None:
    answer = ask(town.address, "openai_chat", model_of(provider), stream=True, **options)
    assert town.last(provider)["stream_options"]["include_usage"] is True
    assert not any(payload != "[DONE]" and not payload["choices"] for payload in answer.payloads)
    assert answer.payloads[-1] == "[DONE]"
    row = town.log.row(answer.headers["x-bardo-request-id"])
    assert row.passed_through
    assert (row.output_tokens, row.reasoning_tokens) == (31, 30)


@each_plain
@whole_and_streamed
@pytest.mark.parametrize(
    "wish",
    [
        {"headers": {"X-Bardo-Reasoning": "omit"}},
        {"headers": {"X-Bardo-Include": "receipt"}},
        {"bardo": {"include": ["reasoning_chain"]}},
    ],
    ids=["omit", "receipt", "chain"],
)
def test_a_wish_of_the_client_ends_forwarding(town: House, provider: str, stream: bool, wish: dict[str, Any]) -> None:
    answer = asked_of(town, provider, stream=stream, **wish)
    assert answer.status == 200
    assert "1161" in answer.text
    assert answer.body != town.sent(provider)
    assert not town.log.row(answer.headers["x-bardo-request-id"]).passed_through


@whole_and_streamed
@pytest.mark.parametrize("provider", ["groq", "mistral", "vllm", "xai", "minimax", "openrouter", "zai"])
def test_replies_in_a_form_of_the_providers_own_are_translated(town: House, provider: str, stream: bool) -> None:
    answer = ask(town.address, "openai_chat", model_of(provider), stream=stream)
    assert not town.log.row(answer.headers["x-bardo-request-id"]).passed_through
    assert "reasoning_content" in answer.text


@pytest.mark.parametrize("provider", ["gemini", "anthropic"])
def test_gemini_without_server_sent_events_is_one_array(town: House, provider: str) -> None:
    path = f"/v1beta/models/{model_of(provider)}:streamGenerateContent"
    answer = request(town.address, "POST", path, body_for("gemini", model_of(provider), thinks=True))
    assert answer.headers["content-type"].startswith("application/json")
    parts = [part for chunk in answer.json for part in chunk["candidates"][0]["content"].get("parts", ())]
    assert "".join(part.get("text", "") for part in parts if not part.get("thought")) == "1161"
    assert not town.log.row(answer.headers["x-bardo-request-id"]).passed_through


@each_plain
def test_another_dialect_is_translated(town: House, provider: str) -> None:
    client = "gemini" if PLAIN[provider] != "gemini" else "openai_chat"
    answer = ask(town.address, client, model_of(provider))
    assert not town.log.row(answer.headers["x-bardo-request-id"]).passed_through
    assert msgspec.json.decode(answer.body) != msgspec.json.decode(town.sent(provider))
