"""Errors of the Responses dialect, both ways."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.openai_responses import DIALECT
from bardo.values.errors import BardoError, InvalidRequest, MissingKey, UpstreamRefused

WRITTEN: dict[str, tuple[BardoError, dict[str, Any]]] = {
    "the caller's": (
        InvalidRequest("input is required", param="input", hint="give one"),
        {
            "message": "input is required (give one)",
            "type": "invalid_request_error",
            "param": "input",
            "code": "invalid_request",
        },
    ),
    "the operator's": (
        MissingKey("no key for OpenAI"),
        {"message": "no key for OpenAI", "type": "invalid_request_error", "param": None, "code": "missing_key"},
    ),
    "the provider's own words": (
        UpstreamRefused("slow", status=429, upstream_code="rate_limit_exceeded", upstream_type="tokens", param="x"),
        {"message": "slow", "type": "tokens", "param": "x", "code": "rate_limit_exceeded"},
    ),
    "a provider without words": (
        UpstreamRefused("busy", status=503),
        {"message": "busy", "type": "server_error", "param": None, "code": "upstream_refused"},
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_error_is_written(name: str) -> None:
    error, expected = WRITTEN[name]
    assert msgspec.json.decode(DIALECT.encode_error(error)) == {"error": expected}


READ: dict[str, tuple[bytes, tuple[str, str | None, str | None, str | None]]] = {
    "an object": (
        b'{"error":{"message":"No","type":"t","code":"c","param":"p"}}',
        ("No", "t", "c", "p"),
    ),
    "a numeric code": (b'{"error":{"message":"No","code":429}}', ("No", None, "429", None)),
    "a string": (b'{"error":"No"}', ("No", None, None, None)),
    "a detail": (b'{"detail":"No"}', ("No", None, None, None)),
    "a page": (b"<html>\n  No\n</html>", ("<html> No </html>", None, None, None)),
    "an array": (b"[1]", ("[1]", None, None, None)),
    "nothing": (b"", ("status 502", None, None, None)),
    "wrong types": (
        b'{"error":{"message":3,"type":[],"code":true}}',
        ('{"error":{"message":3,"type":[],"code":true}}', None, None, None),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_error_is_read(name: str) -> None:
    body, expected = READ[name]
    error = DIALECT.decode_error(502, body, {"retry-after": "7"}, "openai")
    assert (error.message, error.upstream_type, error.upstream_code, error.param) == expected
    assert (error.status, error.provider, error.retry_after, error.retryable) == (502, "openai", "7", True)


def test_an_error_reads_back() -> None:
    error = UpstreamRefused("slow", status=429, upstream_code="rate_limit_exceeded", upstream_type="tokens", param="x")
    again = DIALECT.decode_error(429, DIALECT.encode_error(error), {}, "")
    assert (again.message, again.upstream_code, again.upstream_type, again.param) == (
        "slow",
        "rate_limit_exceeded",
        "tokens",
        "x",
    )


def test_a_login_over_its_limits_is_told_until_when() -> None:
    limit = {"plan_type": "plus", "resets_at": 1800000000, "resets_in_seconds": 77}
    said = {"message": "The usage limit has been reached", "type": "usage_limit_reached", **limit}
    body = msgspec.json.encode({"error": {**said, "other": "word"}})
    error = DIALECT.decode_error(429, body, {}, "openai")
    error.dialect = "openai_responses"
    written = msgspec.json.decode(DIALECT.encode_error(error))["error"]
    assert written == {**said, "param": None, "code": "upstream_refused"}
    strange = DIALECT.decode_error(429, b'{"error":{"message":"No","resets_at":[],"plan_type":{}}}', {}, "openai")
    assert "resets_at" not in msgspec.json.decode(DIALECT.encode_error(strange))["error"]
