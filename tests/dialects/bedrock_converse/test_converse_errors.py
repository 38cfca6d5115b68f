"""Bedrock's errors, read and written."""

from __future__ import annotations

import json

import pytest

from bardo.values.errors import BardoError, InvalidRequest, MissingKey, Unreachable, UpstreamRefused, UpstreamTimeout
from dialects.bedrock_converse.replies import DIALECT

NAMESPACE = ":http://internal.amazon.com/coral/com.amazon.bedrock/"


@pytest.mark.parametrize(
    ("status", "body", "headers", "message", "kind"),
    [
        (
            400,
            b'{"message":"no"}',
            {"x-amzn-errortype": "ValidationException" + NAMESPACE},
            "no",
            "ValidationException",
        ),
        (400, b'{"Message":"no"}', {"x-amzn-errortype": "com.amazon#AccessDenied"}, "no", "AccessDenied"),
        (400, b'{"__type":"com.amazon.coral#ThrottlingException","message":"no"}', {}, "no", "ThrottlingException"),
        (500, b"<html>oops</html>", {}, "<html>oops</html>", None),
        (503, b"", {}, "the provider answered 503 without a word", None),
        (403, b'{"message":null}', {"x-amzn-errortype": "X"}, "X", "X"),
        (429, b'{"odd":1}', {}, '{"odd":1}', None),
    ],
)
def test_an_error_is_read(status: int, body: bytes, headers: dict[str, str], message: str, kind: str | None) -> None:
    error = DIALECT.decode_error(status, body, headers, "bedrock")
    assert (error.status, error.message, error.upstream_type, error.provider) == (status, message, kind, "bedrock")


def test_a_failure_of_the_model_is_not_the_callers() -> None:
    headers = {"x-amzn-errortype": "ModelErrorException" + NAMESPACE}
    error = DIALECT.decode_error(424, b'{"message":"x","originalStatusCode":500}', headers, "bedrock")
    assert (error.status, error.kind, error.retryable, error.upstream_code) == (424, "server", True, "500")
    assert json.loads(DIALECT.encode_error(error))["__type"] == "ModelErrorException"


def test_a_long_answer_is_shortened() -> None:
    error = DIALECT.decode_error(500, b'{"message":"' + b"x" * 5000 + b'"}', {}, "bedrock")
    assert len(error.message) == 501


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("no", param="messages"), "ValidationException"),
        (MissingKey("no"), "UnrecognizedClientException"),
        (UpstreamRefused("no", status=429), "ThrottlingException"),
        (UpstreamRefused("no", status=404, upstream_type="not_found_error"), "ResourceNotFoundException"),
        (UpstreamRefused("no", status=400, upstream_type="throttlingException"), "ThrottlingException"),
        (UpstreamTimeout("no"), "ModelTimeoutException"),
        (Unreachable("no"), "ModelErrorException"),
        (BardoError("no"), "InternalServerException"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BardoError) else value,
)
def test_an_error_is_written_with_bedrocks_type(error: BardoError, kind: str) -> None:
    said = json.loads(DIALECT.encode_error(error))
    assert (said["__type"], said["code"], said["bardo"]["code"]) == (kind, kind, error.code)
    assert said["message"] == str(error)
    read = DIALECT.decode_error(error.status, DIALECT.encode_error(error), {}, "b")
    assert (read.message, read.upstream_type) == (str(error), kind)


def test_the_field_at_fault_is_named() -> None:
    assert (
        json.loads(DIALECT.encode_error(InvalidRequest("no", param="messages[0]")))["bardo"]["param"] == "messages[0]"
    )
