"""Sound in a question reaches providers of other dialects that take it, and is refused by name where they do not."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from surfaces.gateway.scripted import scripted
from surfaces.gateway.test_pictures import from_gemini, from_openrouter

DATA = base64.b64encode(b"RIFF sound").decode()
CHAT_PART = {"type": "input_audio", "input_audio": {"data": DATA, "format": "mp3"}}
GEMINI_PART = {"inlineData": {"mimeType": "audio/mpeg", "data": DATA}}


def chat(model: str, *parts: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    content = [{"type": "text", "text": "What is said?"}, *parts]
    return "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": content}]}


def gemini(model: str, *parts: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    content = {"role": "user", "parts": [{"text": "What is said?"}, *parts]}
    return f"/v1beta/models/{model}:generateContent", {"contents": [content]}


def test_sound_of_a_chat_client_reaches_gemini() -> None:
    with scripted(["gemini"]) as played:
        played.replies = [from_gemini(False)]
        headers, _ = played.post(*chat("gemini/gemini-2.5-flash", CHAT_PART))
        assert GEMINI_PART in played.bodies[0]["contents"][0]["parts"]
    assert "audio" not in headers.get("x-bardo-degraded", "")


@pytest.mark.parametrize("media_type", ["audio/mpeg", "audio/mp3"])
def test_sound_of_a_gemini_client_reaches_a_chat_provider(media_type: str) -> None:
    part = {"inlineData": {"mimeType": media_type, "data": DATA}}
    with scripted(["openrouter"]) as played:
        played.replies = [from_openrouter(False)]
        headers, _ = played.post(*gemini("openrouter/google/gemini-2.5-flash", part))
        assert CHAT_PART in played.bodies[0]["messages"][0]["content"]
    assert "inlineData" not in headers.get("x-bardo-degraded", "")


@pytest.mark.parametrize(("ask", "part"), [(chat, CHAT_PART), (gemini, GEMINI_PART)])
def test_sound_to_a_provider_that_takes_none_is_refused(ask: Any, part: dict[str, Any]) -> None:
    with scripted(["anthropic"]) as played, pytest.raises(AssertionError, match=r"audio|inlineData"):
        played.post(*ask("anthropic/claude-sonnet-4-5", part))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        chat("gemini/gemini-2.5-flash", {"type": "file", "file": {"file_id": "file-1"}}),
        gemini("anthropic/claude-sonnet-4-5", {"fileData": {"fileUri": "files/abc", "mimeType": "application/pdf"}}),
    ],
)
def test_a_file_that_another_provider_holds_is_refused(path: str, body: dict[str, Any]) -> None:
    with scripted(["gemini", "anthropic"]) as played, pytest.raises(AssertionError, match="file"):
        played.post(path, body)
