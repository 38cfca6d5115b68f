"""State that the provider does not have: the client is told in its own dialect, and nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest

from support.gateway import House, model_of
from support.talk import Answer, body_for, path_for, request
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import refusal

AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
STATE: dict[str, dict[str, Any]] = {
    "openai_responses": {"previous_response_id": "resp_1"},
    "anthropic_messages": {"thread": {"type": "continue", "previous_message_id": "msg_1"}},
    "gemini": {"cachedContent": "cachedContents/1"},
    "openai_chat": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is said?"}, AUDIO]},
        ]
    },
}
NAMES = {
    "openai_responses": "previous_response_id",
    "anthropic_messages": "thread",
    "gemini": "cachedContent",
    "openai_chat": "input_audio",
}
OTHER = {"openai_chat": "anthropic"}


def asked(
    town: House, client: str, *, stream: bool, allow: Any = None, headers: dict[str, str] | None = None
) -> tuple[Answer, str]:
    provider = OTHER.get(client, "deepseek")
    model = model_of(provider)
    body = {**body_for(client, model, stream=stream), **STATE[client]}
    if allow is not None:
        body["bardo"] = {"allow_loss": allow}
    answer = request(town.address, "POST", path_for(client, model, stream=stream), body, headers=headers or {})
    return answer, provider


@pytest.mark.parametrize("client", STATE)
@whole_and_streamed
def test_a_loss_of_meaning_is_refused_before_anything_is_sent(town: House, client: str, stream: bool) -> None:
    before = {name: len(town.arrived(name)) for name in ("deepseek", "anthropic")}
    answer, _ = asked(town, client, stream=stream)
    assert answer.status == 400
    told = refusal(client, answer)
    assert NAMES[client] in told
    assert "allow_loss" in told
    assert answer.headers["x-bardo-error"] == "unsupported"
    assert {name: len(town.arrived(name)) for name in before} == before


def test_a_refused_thread_has_the_code_that_makes_clients_go_on_without_one(town: House) -> None:
    answer, _ = asked(town, "anthropic_messages", stream=False)
    error = answer.json["error"]
    assert error["type"] == "invalid_request_error"
    assert error["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


def test_openais_clients_find_the_field_in_param(town: House) -> None:
    answer, _ = asked(town, "openai_responses", stream=False)
    assert (answer.json["error"]["param"], answer.json["error"]["code"]) == ("previous_response_id", "unsupported")


@pytest.mark.parametrize("client", STATE)
@whole_and_streamed
def test_a_loss_that_is_allowed_is_reported_and_not_echoed(town: House, client: str, stream: bool) -> None:
    answer, _ = asked(town, client, stream=stream, allow=[NAMES[client]])
    assert answer.status == 200
    assert answer.headers["x-bardo-degraded"]
    assert "resp_1" not in answer.text
    assert "msg_1" not in answer.text


def test_a_loss_may_be_allowed_by_a_header(town: House) -> None:
    answer, _ = asked(town, "openai_responses", stream=False, headers={"X-Bardo-Allow-Loss": "x, previous_response_id"})
    assert answer.status == 200
    assert answer.json["previous_response_id"] is None
