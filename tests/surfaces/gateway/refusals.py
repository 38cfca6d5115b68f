"""Errors as each dialect's clients find them: in a body, or at the end of a stream."""

from __future__ import annotations

from typing import Any

from support.gateway import SECRET
from support.talk import Answer


def refusal(client: str, answer: Answer) -> str:
    """Return the message of an error answer, once it has the form of the client's dialect."""
    assert SECRET not in answer.text
    body = answer.json
    _check(client, body, answer.status)
    assert answer.headers["x-bardo-error"]
    assert answer.headers["content-type"] == "application/json"
    return str(body["error"]["message"])


def broken(client: str, answer: Answer) -> str:
    """Return the message of the error that ends a stream; nothing comes after it."""
    assert answer.status == 200
    assert SECRET not in answer.text
    name, last = answer.events[-1]
    if client == "openai_responses":
        assert name == "error" or last["type"] == "response.failed"
        error = last.get("error") or last["response"]["error"] if name != "error" else last
        return str(error["message"])
    if client == "anthropic_messages":
        assert name == "error"
    _check(client, last, None)
    return str(last["error"]["message"])


def _check(client: str, body: Any, status: int | None) -> None:
    error = body["error"]
    match client:
        case "anthropic_messages":
            assert body["type"] == "error"
            assert error["type"].endswith("_error") or error["type"] == "request_too_large"
        case "gemini":
            assert error["status"].isupper()
            assert status in (None, error["code"])
        case _:
            assert {"message", "type", "param", "code"} <= set(error)
