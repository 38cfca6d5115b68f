"""Gemini's error objects: `{"error": {"code", "message", "status", "details"}}`, read and written."""

from __future__ import annotations

import re
from math import ceil

import msgspec

from bardo.dialects.gemini.wire import NAME
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.spellings import message_in, own_refusal
from bardo.values.context_overflow import in_gemini_words
from bardo.values.errors import BardoError, InvalidRequest, Kind, OverBudget, RateLimited, UpstreamRefused

_TYPE = "type.googleapis.com/google.rpc."
_QUOTED = 500
OVERFLOW_WORDS = re.compile(r"input token count.{0,40}exceeds the maximum number of tokens", re.IGNORECASE)
"""Words of a prompt that is too long by which clients know it."""

_OWN = (NAME, "gemini_interactions")
_STATUSES: dict[Kind, str] = {
    "invalid_request": "INVALID_ARGUMENT",
    "authentication": "UNAUTHENTICATED",
    "permission": "PERMISSION_DENIED",
    "billing": "FAILED_PRECONDITION",
    "not_found": "NOT_FOUND",
    "method_not_allowed": "UNIMPLEMENTED",
    "too_large": "INVALID_ARGUMENT",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "timeout": "DEADLINE_EXCEEDED",
    "overloaded": "UNAVAILABLE",
    "server": "INTERNAL",
    "upstream": "UNAVAILABLE",
}


def encode_error(error: BardoError) -> bytes:
    """Write the error body. `error` is its first key: Google's SDK looks for it there in a stream."""
    upstream = _own_object(error)
    body = {
        "code": 429 if isinstance(error, OverBudget) else error.status,
        "message": message_in(in_gemini_words, error, *_OWN, known=OVERFLOW_WORDS),
        "status": upstream.get("status") or _status_of(error),
        "details": [*_details(error), *upstream.get("details", ())],
    }
    return msgspec.json.encode({"error": body})


def _status_of(error: BardoError) -> str:
    # Gemini has one word for too many calls and for too much money.
    return "RESOURCE_EXHAUSTED" if isinstance(error, OverBudget) else _STATUSES[error.kind]


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read an error answer; a body that is not Gemini's is quoted, shortened."""
    error = error_object(_parsed(body))
    if error is None:
        quoted = body.decode("utf-8", "replace").strip()[:_QUOTED]
        message = quoted or f"the provider answered {status} without a word"
        wait = headers.get("retry-after")
        return UpstreamRefused(message, provider=provider, status=status, retry_after=wait, dialect=NAME)
    return refused(error, provider=provider, status=status, retry_after=headers.get("retry-after"))


def error_object(payload: object) -> object:
    """Return what stands under `error` in a payload, or in a list of one, or None."""
    first = payload[0] if isinstance(payload, list) and payload else payload
    return first.get("error") if isinstance(first, dict) else None


def refused(
    error: object, *, provider: str, status: int | None = None, retry_after: str | None = None
) -> UpstreamRefused:
    """Return the provider's error object as an error. Without a `status`, the object's own code is it."""
    fields = error if isinstance(error, dict) else {"message": str(error)}
    code = fields.get("code")
    if status is None:
        status = code if type(code) is int and 400 <= code <= 599 else 502
    details = _objects(fields.get("details"))
    name = fields.get("status")
    return UpstreamRefused(
        str(fields.get("message") or name or f"the provider answered {status}"),
        provider=provider,
        status=status,
        upstream_code=_reason(details) or (None if code is None else str(code)),
        upstream_type=name if isinstance(name, str) else None,
        param=_violated_field(details),
        retry_after=retry_after or _retry_delay(details),
        detail=error,
        dialect=NAME,
    )


def _details(error: BardoError) -> list[JsonObject]:
    metadata = {"code": error.code}
    if isinstance(error, InvalidRequest) and error.param:
        metadata["param"] = error.param
    info = {"@type": _TYPE + "ErrorInfo", "reason": error.code.upper(), "domain": "bardo", "metadata": metadata}
    delay = error.retry_after if isinstance(error, UpstreamRefused) else None
    if isinstance(error, RateLimited | OverBudget):
        delay = None if error.retry_after is None else str(max(1, ceil(error.retry_after)))
        metadata["limit"] = error.limit
    if delay and delay.isdecimal() and not _retry_delay(_objects(_own_object(error).get("details"))):
        return [info, {"@type": _TYPE + "RetryInfo", "retryDelay": f"{delay}s"}]
    return [info]


def _own_object(error: BardoError) -> JsonObject:
    """Return the upstream's error object where it is Gemini's, else nothing."""
    own = own_refusal(error, *_OWN)
    detail = None if own is None else own.detail
    if not isinstance(detail, dict) or not isinstance(detail.get("status"), str):
        return {}
    return {"status": detail["status"], "details": _objects(detail.get("details"))}


def _reason(details: list[JsonObject]) -> str | None:
    reasons = (detail.get("reason") for detail in details)
    return next((reason for reason in reasons if isinstance(reason, str)), None)


def _violated_field(details: list[JsonObject]) -> str | None:
    violations = (violation for detail in details for violation in _objects(detail.get("fieldViolations")))
    fields = (violation.get("field") for violation in violations)
    return next((field for field in fields if isinstance(field, str)), None)


def _retry_delay(details: list[JsonObject]) -> str | None:
    for detail in details:
        match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)s", str(detail.get("retryDelay", "")))
        if match:
            return match[1]
    return None


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _parsed(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
