"""Pictures and documents in results of tools reach every provider: in the result where it may hold them, else after it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from support.any_model import Simulator
from support.gateway import house, model_of
from support.talk import CLIENTS, path_for, request

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n a small picture").decode()
PDF = base64.b64encode(b"%PDF-1.4\ntrailer<<>>\n%%EOF").decode()
# Chat providers that take text only in results of tools, as OpenAI's own types have it. Mistral takes no message of the user behind a
# result, and its results may hold pictures and documents.
TEXT_ONLY = ("deepseek", "openai_chat", "qwen", "vllm")
PROVIDERS = (*TEXT_ONLY, "anthropic", "bedrock", "gemini", "mistral", "openai_responses", "openrouter")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def asked(client: str, media_type: str, data: str) -> dict[str, Any]:
    """Return a request whose last message is the result of a tool with a picture or a document in it."""
    url, is_picture = f"data:{media_type};base64,{data}", media_type.startswith("image/")
    file = {"filename": "a.pdf", "file_data": url}
    if client == "gemini":
        inline = {"inlineData": {"mimeType": media_type, "data": data}}
        result = {"id": "c1", "name": "f", "response": {"output": "Look:"}, "parts": [inline]}
        parts = [{"text": "Go."}, {"functionCall": {"id": "c1", "name": "f", "args": {}}}, {"functionResponse": result}]
        roles = ("user", "model", "user")
        declared = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}]
        said = [{"role": role, "parts": [part]} for role, part in zip(roles, parts, strict=True)]
        return {"contents": said, "tools": declared}
    if client == "openai_responses":
        part = {"type": "input_image", "image_url": url} if is_picture else {"type": "input_file", **file}
        items = [
            {"role": "user", "content": "Go."},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [{"type": "input_text", "text": "Look:"}, part],
            },
        ]
        return {"input": items, "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]}
    text = {"type": "text", "text": "Look:"}
    if client == "anthropic_messages":
        source = {"type": "base64", "media_type": media_type, "data": data}
        content = [text, {"type": "image" if is_picture else "document", "source": source}]
        turns: list[dict[str, Any]] = [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content}]},
        ]
        return {"max_tokens": 100, "messages": turns, "tools": [{"name": "f", "input_schema": SCHEMA}]}
    picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    media = picture if is_picture else {"type": "file", "file": file}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [text, media]},
    ]
    return {"messages": messages, "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]}


@pytest.mark.parametrize(("media_type", "data"), [("image/png", PICTURE), ("application/pdf", PDF)], ids=["png", "pdf"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_media_in_a_result(client: str, provider: str, media_type: str, data: str) -> None:
    with house([Simulator(provider)]) as running:
        body = {"model": model_of(provider), **asked(client, media_type, data)}
        answer = request(running.address, "POST", path_for(client, model_of(provider)), body)
        assert answer.status == 200, answer.text
        sent = running.last(provider)
    assert data in json.dumps(sent)
    if provider in TEXT_ONLY:
        [result] = [one for one in sent["messages"] if one["role"] == "tool"]
        assert data not in json.dumps(result)
        assert sent["messages"][-1]["role"] == "user"
