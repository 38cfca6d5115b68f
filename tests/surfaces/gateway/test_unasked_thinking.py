"""Anthropic's SDK asks a provider whose model thinks unasked; Chat clients ask for thinking between tags."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx
import pytest

from support.gateway import Remembering, house

ASKED: dict[str, Any] = {
    "model": "deepseek/m",
    "max_tokens": 2000,
    "messages": [{"role": "user", "content": "What is 27 times 43?"}],
}


def asked_by_sdk(address: str, **more: Any) -> Any:
    with anthropic.Anthropic(api_key="k", base_url=address, max_retries=0) as client:
        return client.messages.create(**ASKED, **more)


@pytest.mark.parametrize("settings", [{}, {"unasked_thinking": True}], ids=["default", "switched"])
def test_a_client_that_asked_for_no_thinking_gets_none(settings: dict[str, Any]) -> None:
    with house([Remembering("deepseek")], gateway=settings) as running:
        message = asked_by_sdk(running.address)
        kinds = [block.type for block in message.content]
        assert kinds == (["thinking", "text"] if settings else ["text"])
        asked = asked_by_sdk(running.address, thinking={"type": "enabled", "budget_tokens": 1024})
        assert asked.content[0].type == "thinking"
        shown = asked_by_sdk(running.address, extra_headers={"X-Bardo-Reasoning": "include"})
        assert shown.content[0].type == "thinking"


def test_what_was_left_out_is_reported() -> None:
    with house([Remembering("deepseek")]) as running:
        reply = httpx.post(f"{running.address}/v1/messages", json=ASKED)
        assert "thinking" in reply.headers["x-bardo-degraded"]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_between_tags_for_clients_that_show_only_text(stream: bool) -> None:
    body = {"model": "deepseek/m", "messages": ASKED["messages"], "stream": stream}
    headers = {"X-Bardo-Reasoning": "tags"}
    with house([Remembering("deepseek")]) as running:
        text = httpx.post(f"{running.address}/v1/chat/completions", json=body, headers=headers).text
        assert "<think>" in text
        assert "</think>" in text
        assert "reasoning_content" not in text
        said = asked_by_sdk(running.address, extra_headers=headers).content
        assert {block.type for block in said} == {"text"}
        assert said[0].text.startswith("<think>\n")
