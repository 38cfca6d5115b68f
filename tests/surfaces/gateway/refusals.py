"""Errors as each dialect's clients find them: in a body, or at the end of a stream."""

from __future__ import annotations

import json
from typing import Any

from bardo.streams.eventstream import EventStreamDecoder
from support.gateway import SECRET
from support.talk import FURTHER_CLIENTS, Answer


def refusal(client: str, answer: Answer) -> str:
    """Return the message of an error answer, once it has the form of the client's dialect."""
    assert SECRET not in answer.text
    body = answer.json
    _check(client, body, answer.status)
    assert answer.headers["x-bardo-error"]
    assert answer.headers["content-type"] == "application/json"
    return message_of(client, body)


def message_of(client: str, body: Any) -> str:
    """Return the message of an error body."""
    if client in ("bedrock_converse", "bedrock_invoke", "cohere"):
        return str(body["message"])
    return str(body["error"] if client.startswith("ollama") else body["error"]["message"])


def broken(client: str, answer: Answer) -> str:
    """Return the message of the error that ends a stream; nothing comes after it."""
    assert answer.status == 200
    assert SECRET.encode() not in answer.body
    if client in FURTHER_CLIENTS:
        return _further_broken(client, answer)
    name, last = answer.events[-1]
    if client == "openai_responses":
        assert name == "error" or last["type"] == "response.failed"
        error = last.get("error") or last["response"]["error"] if name != "error" else last
        return str(error["message"])
    if client == "anthropic_messages":
        assert name == "error"
    _check(client, last, None)
    return str(last["error"]["message"])


def _further_broken(client: str, answer: Answer) -> str:
    match client:
        case "ollama" | "ollama_generate":
            last = json.loads(answer.body.splitlines()[-1])
            _check(client, last, None)
            return str(last["error"])
        case "bedrock_converse" | "bedrock_invoke":
            frame = EventStreamDecoder().feed(answer.body)[-1]
            assert frame.event.endswith("Exception")
            return str(json.loads(frame.data or b"")["message"])
        case "cohere":
            *_, (name, last), (_, done) = answer.events
            assert (name, done, last["delta"]["finish_reason"]) == ("message-end", "[DONE]", "ERROR")
            return str(last["delta"]["error"])
    *_, (name, last), (_, done) = answer.events
    assert (name, done) == ("error", "[DONE]")
    _check(client, last, None)
    return str(last["error"]["message"])


def _check(client: str, body: Any, status: int | None) -> None:
    error = body.get("error")
    match client:
        case "ollama" | "ollama_generate":
            assert isinstance(error, str)
        case "cohere":
            assert body["message"]
        case "bedrock_converse" | "bedrock_invoke":
            assert body["__type"].endswith("Exception")
        case "gemini_interactions":
            assert error["code"].islower()
        case "anthropic_messages":
            assert body["type"] == "error"
            assert error["type"].endswith("_error") or error["type"] == "request_too_large"
        case "gemini":
            assert error["status"].isupper()
            assert status in (None, error["code"])
        case _:
            assert {"message", "type", "param", "code"} <= set(error)
