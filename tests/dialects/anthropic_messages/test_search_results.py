"""Results of a caller's own search: read and written as they are by this dialect, and as text by those that have no such block."""

from __future__ import annotations

from typing import Any

import pytest

import bardo
from bardo.adapters.config.settings import parse_settings
from bardo.planning.explanation import Explanation

RESULT: dict[str, Any] = {
    "type": "search_result",
    "source": "https://docs.example/limits",
    "title": "Limits",
    "content": [{"type": "text", "text": "Ten calls a minute."}, {"type": "text", "text": "One for guests."}],
    "citations": {"enabled": True},
}
TEXT = "Limits\nhttps://docs.example/limits\n\nTen calls a minute.\n\nOne for guests."
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
IN_A_RESULT: list[dict[str, Any]] = [
    {"role": "user", "content": "?"},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [RESULT]}]},
]
OF_THE_USER: list[dict[str, Any]] = [{"role": "user", "content": [RESULT, {"type": "text", "text": "How many?"}]}]


def explained(dialect: str, messages: list[dict[str, Any]], **fields: Any) -> Explanation:
    text = f'[[providers]]\nid = "one"\ndialect = "{dialect}"\nbase_url = "http://lab/v1"\n'
    body = {
        "model": "one/claude-opus-5",
        "max_tokens": 99,
        "messages": messages,
        "bardo": {"allow_loss": ["*"]},
        **fields,
    }
    return bardo.explain(body, "anthropic_messages", "", config=parse_settings(text))


def test_a_request_that_is_rebuilt_holds_them_as_they_came() -> None:
    for messages in (OF_THE_USER, IN_A_RESULT):
        found = explained("anthropic_messages", messages, bardo={"profile": None, "reasoning": "low"})
        assert found.body["messages"] == messages


@pytest.mark.parametrize(
    "dialect", ["openai_chat", "openai_responses", "gemini", "ollama", "cohere", "bedrock_converse"]
)
@pytest.mark.parametrize("messages", [OF_THE_USER, IN_A_RESULT], ids=["of the user", "in a tool's result"])
def test_other_dialects_get_their_text_with_title_and_source(dialect: str, messages: list[dict[str, Any]]) -> None:
    found = explained(dialect, messages)
    said = str(found.body)
    assert repr(TEXT)[1:-1] in said
    lost = {one.what: one.sent for one in found.degraded}
    assert lost["document.form"] == "text"
    assert "citations" in lost
    assert "content.search_result" not in lost


def test_a_result_that_holds_more_than_text_stays_as_it_is() -> None:
    strange = {**RESULT, "content": [{"type": "text", "text": "x", "novel": 1}]}
    messages = [{"role": "user", "content": [strange]}]
    assert explained("anthropic_messages", messages).body["messages"] == messages
