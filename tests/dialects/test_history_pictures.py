"""Pictures of earlier replies reach a target of another dialect: from the model where it takes them so, else from the user."""

from __future__ import annotations

from typing import Any

import pytest

import bardo
from bardo.values.errors import Unsupported

DATA = "iVBORw0KGgpBQUFB"
URL = f"data:image/png;base64,{DATA}"
GEMINI_PART = {"inlineData": {"mimeType": "image/png", "data": DATA}}
CHAT_PART = {"type": "image_url", "image_url": {"url": URL}}
ANTHROPIC_PART = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
MOVED = ("image", "assistant", "user")

HISTORIES: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": "here", "images": [CHAT_PART]},
            {"role": "user", "content": "again"},
        ]
    },
    "openai_responses": {
        "input": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": "here"},
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": DATA},
            {"role": "user", "content": "again"},
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "draw"}]},
            {"role": "model", "parts": [{"text": "here"}, GEMINI_PART]},
            {"role": "user", "parts": [{"text": "again"}]},
        ]
    },
}


def explained(client: str, provider: str, model: str) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    plan = bardo.explain(HISTORIES[client], client, provider, model=model, config=bardo.Settings())
    return dict(plan.body), [(one.what, one.asked, one.sent) for one in plan.degraded]


@pytest.mark.parametrize("client", ["openai_chat", "openai_responses"])
def test_gemini_is_sent_its_pictures_as_the_models(client: str) -> None:
    body, degraded = explained(client, "gemini", "gemini-3-flash-preview")
    assert body["contents"][1] == {"role": "model", "parts": [{"text": "here"}, GEMINI_PART]}
    assert degraded == []


@pytest.mark.parametrize("client", HISTORIES)
def test_anthropic_is_sent_them_by_the_user(client: str) -> None:
    body, degraded = explained(client, "anthropic", "claude-sonnet-4-5")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"] == [ANTHROPIC_PART, {"type": "text", "text": "again"}]
    assert degraded == [MOVED]


@pytest.mark.parametrize("client", ["openai_responses", "gemini"])
def test_a_chat_provider_is_sent_them_by_the_user(client: str) -> None:
    body, degraded = explained(client, "openrouter", "x/y")
    assert body["messages"][1] == {"role": "assistant", "content": "here"}
    assert body["messages"][2] == {"role": "user", "content": [CHAT_PART, {"type": "text", "text": "again"}]}
    assert degraded == [MOVED]


def test_the_same_dialect_keeps_them_where_they_are() -> None:
    body, degraded = explained("openai_chat", "openrouter", "x/y")
    assert body["messages"] == HISTORIES["openai_chat"]["messages"]
    assert degraded == []


def test_a_picture_stands_behind_the_results_of_calls_and_at_the_end_of_a_conversation() -> None:
    call = {"functionCall": {"id": "c1", "name": "look", "args": {}}}
    result = {"functionResponse": {"id": "c1", "name": "look", "response": {"r": "x"}}}
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [GEMINI_PART, call]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [GEMINI_PART]},
    ]
    plan = bardo.explain(
        {"contents": contents}, "gemini", "anthropic", model="claude-sonnet-4-5", config=bardo.Settings()
    )
    kinds = [
        [part["type"] for part in message["content"]] if isinstance(message["content"], list) else message["content"]
        for message in plan.body["messages"]
    ]
    assert kinds == ["go", ["tool_use"], ["tool_result", "image", "image"]]


@pytest.mark.parametrize(
    ("client", "part", "provider", "model"),
    [
        ("openai_responses", {"type": "input_image", "file_id": "file-1", "detail": "auto"}, "anthropic", "claude-sonnet-4-5"),
        ("anthropic_messages", {"type": "image", "source": {"type": "file", "file_id": "f"}}, "openai", "gpt-5.2"),
    ],
)  # fmt: skip
def test_a_picture_that_only_its_provider_keeps_is_refused(
    client: str, part: dict[str, Any], provider: str, model: str
) -> None:
    turn = {"role": "user", "content": [part]}
    request = {"input": [turn]} if client == "openai_responses" else {"messages": [turn], "max_tokens": 9}
    with pytest.raises(Unsupported, match=part["type"]):
        bardo.explain(request, client, provider, model=model, config=bardo.Settings())
