"""Errors in Anthropic's form."""

from __future__ import annotations

import json

import pytest

from bardo.values.errors import (
    BardoError,
    InternalError,
    InvalidRequest,
    MissingKey,
    TooLarge,
    UnknownModel,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)
from dialects.anthropic_messages.replies import DIALECT


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (InvalidRequest("x"), "invalid_request_error", "invalid_request"),
        (MissingKey("x"), "authentication_error", "missing_key"),
        (UnknownModel("x"), "not_found_error", "unknown_model"),
        (TooLarge("x"), "request_too_large", "too_large"),
        (Unreachable("x"), "api_error", "unreachable"),
        (UpstreamTimeout("x"), "timeout_error", "upstream_timeout"),
        (UpstreamRefused("x", status=429), "rate_limit_error", "upstream_refused"),
        (UpstreamRefused("x", status=529), "overloaded_error", "upstream_refused"),
        (UpstreamRefused("x", status=400, upstream_type="billing_error"), "billing_error", "upstream_refused"),
        (InternalError("x"), "api_error", "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BardoError) else str(value),
)
def test_errors_are_written(error: BardoError, kind: str, code: str) -> None:
    assert json.loads(DIALECT.encode_error(error)) == {
        "type": "error",
        "error": {"type": kind, "message": "x", "code": code},
    }


def test_the_hint_and_the_field_are_told() -> None:
    said = json.loads(DIALECT.encode_error(InvalidRequest("bad", hint="do this", param="a[0].b")))["error"]
    assert (said["message"], said["param"]) == ("bad (do this)", "a[0].b")


@pytest.mark.parametrize(
    ("status", "body", "message", "kind", "code"),
    [
        (
            529,
            b'{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}',
            "Busy",
            "overloaded_error",
            None,
        ),
        (401, b'{"error":{"message":"no key","type":"auth","code":1004}}', "no key", "auth", "1004"),
        (500, b'{"error":"oops"}', "oops", None, None),
        (404, b'{"detail":"Not Found"}', "Not Found", None, None),
        (502, b"<html>\nBad   gateway</html>", "<html> Bad gateway</html>", None, None),
        (503, b"", "the provider answered 503 without a word", None, None),
        (400, b'{"error":{"odd":1}}', '{"odd":1}', None, None),
        (400, b"[1,2]", "[1,2]", None, None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_errors_are_read(status: int, body: bytes, message: str, kind: str | None, code: str | None) -> None:
    error = DIALECT.decode_error(status, body, {"retry-after": "7"}, "p")
    assert (error.status, error.message, error.upstream_type, error.upstream_code) == (status, message, kind, code)
    assert (error.retry_after, error.provider) == ("7", "p")


def test_a_long_body_is_shortened() -> None:
    assert len(DIALECT.decode_error(500, b"x" * 10_000, {}, "p").message) < 600
