"""Errors of the Responses dialect: bodies, and the two events that end a stream."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.lenient import decode_leniently, excerpt
from bardo.values.errors import BardoError, InvalidRequest, Kind, Unsupported, UpstreamRefused

_TYPES: dict[Kind, str] = {
    "invalid_request": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "billing": "insufficient_quota",
    "not_found": "not_found_error",
    "method_not_allowed": "invalid_request_error",
    "too_large": "invalid_request_error",
    "rate_limit": "rate_limit_error",
    "timeout": "timeout_error",
    "overloaded": "overloaded_error",
    "server": "server_error",
    "upstream": "upstream_error",
}

# A failure inside a stream has no status of its own; its code says which it would have been.
_STATUSES = {
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "server_error": 500,
    "server_is_overloaded": 503,
    "overloaded_error": 503,
    "slow_down": 503,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "invalid_image": 400,
    "model_not_found": 404,
    "invalid_api_key": 401,
}


def error_object(error: BardoError) -> dict[str, Any]:
    """Return the error as this dialect's servers write it; a provider's own code and type stay."""
    kind, code, param = _TYPES[error.kind], error.code, None
    if isinstance(error, UpstreamRefused):
        kind, code, param = error.upstream_type or kind, error.upstream_code or code, error.param
    elif isinstance(error, InvalidRequest | Unsupported):
        param = error.param
    return {"message": str(error), "type": kind, "param": param, "code": code}


def encode_error(error: BardoError) -> bytes:
    """Write an error body."""
    return msgspec.json.encode({"error": error_object(error)})


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read a provider's error answer; a body that is not of this dialect is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = None
    found = value.get("error", value) if isinstance(value, dict) else value
    return _refused(
        found,
        status=status,
        provider=provider,
        retry_after=headers.get("retry-after"),
        otherwise=excerpt(body) or f"status {status}",
    )


def refusal_in_reply(found: Any) -> UpstreamRefused:
    """Read the error object of a reply that began well."""
    fields = found if isinstance(found, dict) else {}
    words = [word for word in (fields.get("code"), fields.get("type")) if isinstance(word, str)]
    status = next((_STATUSES[word] for word in words if word in _STATUSES), 502)
    return _refused(found, status=status, otherwise="the provider reported a failure without saying which")


def _refused(
    found: Any, *, status: int, otherwise: str, provider: str = "", retry_after: str | None = None
) -> UpstreamRefused:
    fields = found if isinstance(found, dict) else {}
    # ChatGPT's own endpoint says `detail`, some gateways a bare string.
    message = found if isinstance(found, str) else fields.get("message") or fields.get("detail")
    return UpstreamRefused(
        message if isinstance(message, str) and message else otherwise,
        provider=provider,
        status=status,
        upstream_code=_word(fields.get("code")),
        upstream_type=_word(fields.get("type")),
        param=_word(fields.get("param")),
        retry_after=retry_after,
        detail=found,
    )


def _word(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)
