"""What clients of Cohere and Ollama put into a tool loop reaches providers of other dialects, and only what is lost is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.talk import request

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Simulator(name) for name in ("anthropic", "cohere", "openai_chat")]) as running:
        yield running


def asked_by_cohere(model: str, part: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [part]},
    ]
    return {"model": model, "messages": messages, "tools": [TOOL]}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"id": "1", "data": {"sky": "grey"}}, b"grey"),
        ({"data": "all is grey"}, b"all is grey"),
        ("only grey", b"only grey"),
    ],
)
def test_a_tools_result_that_is_a_document_reaches_every_provider(town: House, document: Any, text: bytes) -> None:
    for provider in ("anthropic", "openai_chat"):
        body = asked_by_cohere(model_of(provider), {"type": "document", "document": document})
        answer = request(town.address, "POST", "/v2/chat", body)
        assert answer.status == 200
        assert text in town.arrived(provider)[-1].raw
        assert "document" in answer.headers["x-bardo-degraded"]


def test_a_document_goes_back_to_cohere_as_it_was(town: House) -> None:
    part = {"type": "document", "document": {"id": "1", "data": {"sky": "grey"}}}
    body = asked_by_cohere("cohere/command-a-03-2025", part)
    # An instruction of bardo's own makes it read the request, and write it anew.
    assert request(town.address, "POST", "/v2/chat", {**body, "bardo": {"include": ["receipt"]}}).status == 200
    assert town.last("cohere")["messages"][-1]["content"] == [part]


def test_what_ollamas_client_did_not_say_is_not_lost(town: House) -> None:
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
        {"role": "tool", "tool_name": "look", "content": "grey"},
    ]
    body = {"model": model_of("anthropic"), "messages": messages, "tools": [TOOL], "stream": False, "think": False}
    answer = request(town.address, "POST", "/api/chat", body)
    assert answer.status == 200
    assert "x-bardo-degraded" not in answer.headers
