"""A provider that takes no forced tool while its model thinks gets the request once more without thinking, and the caller is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from bardo.catalog.field_refusals import builtin_field_refusals
from support.scripted import Scripted

ANTHROPIC = "Thinking may not be enabled when tool_choice forces tool use."
QWEN = "The tool_choice parameter does not support being set to required or object in thinking mode"
USAGE = {"input_tokens": 1, "output_tokens": 1}
ANSWER = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m1",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": USAGE,
}
ASKED: dict[str, Any] = {
    "messages": [{"role": "user", "content": "x"}],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "max_tokens": 5000,
}


def answered(choice: dict[str, str] | None, words: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Give the status of an answer, what it says was changed, and what a provider was asked that refuses thinking with these words."""
    seen: list[dict[str, Any]] = []

    def handler(call: Call) -> FakeReply:
        body = json.loads(call.body)
        seen.append(body)
        json_type = {"content-type": "application/json"}
        if body.get("thinking", {}).get("type") == "enabled":
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
            return FakeReply(status=400, headers=json_type, chunks=[json.dumps(error).encode()])
        return FakeReply(headers=json_type, chunks=[json.dumps(ANSWER).encode()])

    gateway = Scripted("anthropic_messages", handler, preset="anthropic", models=("m1",))
    chosen = {} if choice is None else {"tool_choice": choice}
    answer = gateway.post("/v1/messages", {"model": "p/m1", **ASKED, **chosen})
    return answer.status, answer.headers.get("x-bardo-degraded", ""), seen


@pytest.mark.parametrize("words", [ANTHROPIC, QWEN])
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "f"}])
def test_a_forced_tool_goes_once_more_without_thinking(choice: dict[str, str], words: str) -> None:
    status, told, seen = answered(choice, words)
    assert status == 200
    assert [body["tool_choice"] for body in seen] == [choice, choice]
    assert "reasoning" in told.split(", ")


@pytest.mark.parametrize("choice", [None, {"type": "auto"}])
def test_a_request_that_forces_no_tool_is_not_changed_by_these_words(choice: dict[str, str] | None) -> None:
    status, _, seen = answered(choice, ANTHROPIC)
    assert (status, len(seen)) == (400, 1)


@pytest.mark.parametrize(
    ("words", "is_about_it"),
    [
        (ANTHROPIC, True),
        (QWEN, True),
        ("tool_choice: extra inputs are not permitted", False),
        ("Thinking is not supported by this model. Set tool_choice to auto.", False),
    ],
)
def test_words_about_a_forced_tool_beside_thinking_are_known(words: str, is_about_it: bool) -> None:
    assert builtin_field_refusals().is_about_forced_tool(words) is is_about_it
