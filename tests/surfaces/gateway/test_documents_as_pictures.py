"""Documents that clients send in the place of pictures go out as documents, to providers of the client's own dialect too."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from support.any_model import Simulator
from support.gateway import house, model_of
from support.talk import CLIENTS, path_for, request

PDF = base64.b64encode(b"%PDF-1.4\ntrailer<<>>\n%%EOF").decode()
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n a small picture").decode()
PROVIDERS = ("anthropic", "bedrock", "deepseek", "gemini", "mistral", "openai_chat", "openai_responses", "openrouter")


def asked(client: str, media_type: str, data: str) -> dict[str, Any]:
    """Return a request with a picture of this type."""
    url = f"data:{media_type};base64,{data}"
    if client == "gemini":
        parts = [{"text": "Read it."}, {"inlineData": {"mimeType": media_type, "data": data}}]
        return {"contents": [{"role": "user", "parts": parts}]}
    if client == "openai_responses":
        content = [{"type": "input_text", "text": "Read it."}, {"type": "input_image", "image_url": url}]
        return {"input": [{"role": "user", "content": content}]}
    picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    if client == "anthropic_messages":
        picture = {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
    text = {"type": "text", "text": "Read it."}
    return {"max_tokens": 100, "messages": [{"role": "user", "content": [text, picture]}]}


def sent(client: str, provider: str, media_type: str, data: str) -> str:
    """Return the body that reaches the provider."""
    with house([Simulator(provider)]) as running:
        body = {"model": model_of(provider), **asked(client, media_type, data)}
        answer = request(running.address, "POST", path_for(client, model_of(provider)), body)
        assert answer.status == 200, answer.text
        return json.dumps(running.last(provider))


@pytest.mark.parametrize("media_type", ["application/pdf", "image/png"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_pdf_in_the_place_of_a_picture_is_a_document(client: str, provider: str, media_type: str) -> None:
    body = sent(client, provider, media_type, PDF)
    assert PDF in body
    assert not [name for name in ('"image', '"input_image"') if name in body]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_picture_stays_one(client: str, provider: str) -> None:
    body = sent(client, provider, "image/png", PICTURE)
    assert PICTURE in body
    assert "image" in body


def test_a_text_that_shows_a_data_url_is_sent_as_it_came() -> None:
    text = f'{{"image_url": "data:application/pdf;base64,{PDF}"}}'
    with house([Simulator("deepseek")]) as running:
        body = {"model": "deepseek/m1", "messages": [{"role": "user", "content": text}], "x_own": [1, 2.0]}
        assert request(running.address, "POST", "/v1/chat/completions", body).status == 200
        assert running.last("deepseek")["messages"] == body["messages"]
