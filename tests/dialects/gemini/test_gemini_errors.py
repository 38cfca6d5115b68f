"""Errors, in both directions."""

from __future__ import annotations

import msgspec
import pytest

from bardo.dialects.gemini import DIALECT
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


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (InvalidRequest("bad", param="contents"), 400, "INVALID_ARGUMENT"),
        (MissingKey("who"), 401, "UNAUTHENTICATED"),
        (UpstreamRefused("no", status=403), 403, "PERMISSION_DENIED"),
        (UnknownModel("none"), 404, "NOT_FOUND"),
        (TooLarge("big"), 413, "INVALID_ARGUMENT"),
        (UpstreamRefused("slow down", status=429), 429, "RESOURCE_EXHAUSTED"),
        (UpstreamRefused("pay", status=402), 402, "FAILED_PRECONDITION"),
        (UpstreamRefused("busy", status=529), 529, "UNAVAILABLE"),
        (UpstreamTimeout("late"), 504, "DEADLINE_EXCEEDED"),
        (Unreachable("gone"), 502, "UNAVAILABLE"),
        (InternalError("ours"), 500, "INTERNAL"),
    ],
)
def test_an_error_is_written_as_google_does(error: BardoError, code: int, status: str) -> None:
    body = msgspec.json.decode(DIALECT.encode_error(error))
    assert list(body) == ["error"]
    assert (body["error"]["code"], body["error"]["status"], body["error"]["message"]) == (code, status, str(error))
    assert body["error"]["details"][0]["metadata"]["code"] == error.code


def test_hint_param_and_retry_time_reach_the_client() -> None:
    invalid = msgspec.json.decode(DIALECT.encode_error(InvalidRequest("bad", hint="do this", param="contents[0]")))
    assert invalid["error"]["message"] == "bad (do this)"
    assert invalid["error"]["details"][0]["metadata"]["param"] == "contents[0]"
    limited = msgspec.json.decode(DIALECT.encode_error(UpstreamRefused("slow", status=429, retry_after="30")))
    assert limited["error"]["details"][1]["retryDelay"] == "30s"


GOOGLE = {
    "error": {
        "code": 429,
        "message": "quota",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"},
            {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "contents"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"},
        ],
    }
}


@pytest.mark.parametrize("body", [GOOGLE, [GOOGLE]], ids=["object", "array"])
def test_googles_error_is_kept_whole(body: object) -> None:
    error = DIALECT.decode_error(429, msgspec.json.encode(body), {}, "google")
    assert (error.status, error.message, error.provider) == (429, "quota", "google")
    assert (error.upstream_type, error.upstream_code) == ("RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED")
    assert (error.param, error.retry_after, error.detail) == ("contents", "17.5", GOOGLE["error"])
    written = msgspec.json.decode(DIALECT.encode_error(error))["error"]
    assert written["details"][1:] == GOOGLE["error"]["details"]
    assert written["status"] == "RESOURCE_EXHAUSTED"


def test_the_header_says_when_to_come_back() -> None:
    error = DIALECT.decode_error(429, msgspec.json.encode(GOOGLE), {"retry-after": "60"}, "google")
    assert error.retry_after == "60"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b"", "the provider answered 502 without a word"),
        (b"x" * 9000, "x" * 500),
        (b'{"error": "plain words"}', "plain words"),
        (b'{"error": {"message": 5}}', "5"),
        (b"[" * 100_000, "[" * 500),
    ],
    ids=["html", "empty", "long", "a string", "a number", "deep"],
)
def test_a_body_that_is_not_googles_is_quoted(body: bytes, message: str) -> None:
    error = DIALECT.decode_error(502, body, {}, "google")
    assert (error.status, error.message) == (502, message)
