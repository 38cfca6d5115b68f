"""Errors as OpenAI's servers write them, and as everybody writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects.openai_chat import DIALECT
from bardo.values.errors import (
    BardoError,
    InternalError,
    InvalidRequest,
    MissingKey,
    TooLarge,
    UnknownModel,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.response import Response
from dialects.openai_chat.chat import chunk, streamed
from recordings import Recording, each_recording, rows

WRITTEN: list[tuple[BardoError, dict[str, Any]]] = [
    (
        InvalidRequest("n must be at least 1", hint="leave it out", param="n"),
        {"message": "n must be at least 1 (leave it out)", "type": "invalid_request_error", "param": "n", "code": "invalid_request"},
    ),
    (MissingKey("no key"), {"message": "no key", "type": "invalid_request_error", "param": None, "code": "missing_key"}),
    (UnknownModel("no m"), {"message": "no m", "type": "invalid_request_error", "param": None, "code": "unknown_model"}),
    (TooLarge("big"), {"message": "big", "type": "invalid_request_error", "param": None, "code": "too_large"}),
    (UpstreamTimeout("slow"), {"message": "slow", "type": "server_error", "param": None, "code": "upstream_timeout"}),
    (InternalError("oops"), {"message": "oops", "type": "server_error", "param": None, "code": "internal_error"}),
    (UpstreamRefused("no", status=429), {"message": "no", "type": "rate_limit_error", "param": None, "code": "upstream_refused"}),
    (
        UpstreamRefused("no", status=400, upstream_type="invalid_request_error", upstream_code="bad_tool", param="tools"),
        {"message": "no", "type": "invalid_request_error", "param": "tools", "code": "bad_tool"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("error", "written"), WRITTEN, ids=lambda value: type(value).__name__)
def test_what_a_client_reads(error: BardoError, written: dict[str, Any]) -> None:
    assert json.loads(DIALECT.encode_error(error)) == {"error": written}


READ: dict[str, tuple[Any, dict[str, Any]]] = {
    "OpenAI": (
        {"error": {"message": "no", "type": "t", "param": "p", "code": "c"}},
        {"message": "no", "upstream_type": "t", "param": "p", "upstream_code": "c"},
    ),
    "a number as code": ({"error": {"message": "no", "code": 429}}, {"message": "no", "upstream_code": "429"}),
    "a list around it": ([{"error": {"message": "no", "code": 3}}], {"message": "no", "upstream_code": "3"}),
    "text": ({"error": "no"}, {"message": "no"}),
    "xAI": ({"code": "bad", "error": "no"}, {"message": "no", "upstream_code": "bad"}),
    "an error without a shell": ({"message": "no", "type": "t"}, {"message": "no", "upstream_type": "t"}),
    "an empty error": ({"error": None, "message": "no"}, {"message": "no"}),
    "FastAPI": ({"detail": "no"}, {"message": "no"}),
    "FastAPI's list": ({"detail": [{"loc": ["body"], "msg": "no"}]}, {"message": '[{"loc":["body"],"msg":"no"}]'}),
    "a message that is no text": ({"error": {"message": {"a": 1}}}, {"message": '{"a":1}'}),
}


@pytest.mark.parametrize(("body", "fields"), READ.values(), ids=READ.keys())
def test_what_providers_answer(body: Any, fields: dict[str, Any]) -> None:
    error = DIALECT.decode_error(418, json.dumps(body).encode(), {"retry-after": "7"}, "p")
    assert {name: getattr(error, name) for name in fields} == fields
    assert (error.status, error.retry_after, error.provider) == (418, "7", "p")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>\n<h1>Bad gateway</h1>", "<html> <h1>Bad gateway</h1>"),
        (b"", "the provider answered with status 502"),
        (b"[]", "[]"),
        (b"{}", "{}"),
        (b"\xff", "\ufffd"),
        (b"x" * 5000, "x" * 300 + "…"),
    ],
)
def test_an_answer_of_no_dialect_is_quoted(body: bytes, message: str) -> None:
    assert DIALECT.decode_error(502, body, {}, "p").message == message


STATUSES: list[tuple[dict[str, Any], int]] = [
    ({"code": 429}, 429),
    ({"code": "503"}, 503),
    ({"status": 422}, 422),
    ({"status_code": 400, "code": "tool_use_failed"}, 400),
    ({"type": "rate_limit_error"}, 429),
    ({"code": "context_length_exceeded", "type": "server_error"}, 400),
    ({"type": "overloaded_error"}, 503),
    ({"code": 7}, 502),
    ({"code": True}, 502),
    ({}, 502),
]


@pytest.mark.parametrize(("fields", "status"), STATUSES)
def test_an_error_inside_a_stream_has_the_status_it_names(fields: dict[str, Any], status: int) -> None:
    error = streamed(chunk({"content": "a"}), {"error": {"message": "no", **fields}}).error
    assert isinstance(error, UpstreamRefused)
    assert error.status == status


def test_an_error_may_be_nothing_but_text() -> None:
    error = streamed({"error": "busy"}).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == "busy"


FOLDERS = ("azure-foundry", "deepseek", "groq", "huggingface", "openai-chat", "openrouter", "perplexity", "xai-chat")
REFUSALS = [one for folder in FOLDERS for one in rows(folder) if one.meta["http_status"] not in (None, 200)]


def test_there_are_recorded_refusals() -> None:
    assert REFUSALS


@each_recording(REFUSALS)
def test_recorded_refusals_say_something(recording: Recording) -> None:
    body = recording.body
    error = DIALECT.decode_error(recording.meta["http_status"], body, {}, "p")
    assert error.message
    assert error.message in json.loads(body).__repr__() or error.message in body.decode()
    assert Response(error=error).error is error
