"""Errors as Anthropic's servers write them, in both directions: `{"type": "error", "error": {"type", "message"}}`."""

from __future__ import annotations

import re

from bardo.dialects.anthropic_messages.wire import NAME
from bardo.dialects.shared.json_values import JsonObject, JsonValue, as_text, decode_leniently, encode_json, excerpt
from bardo.dialects.shared.spellings import message_in, own_refusal
from bardo.values.context_overflow import in_anthropic_words
from bardo.values.errors import BardoError, InvalidRequest, Kind, Unsupported, UpstreamRefused

_QUOTED = 500
_KNOWN = re.compile(r"prompt is too long|exceed context limit", re.IGNORECASE)
"""Words of a prompt that is too long by which Claude Code and others shorten it (2026-11)."""

_TYPES: dict[Kind, str] = {
    "invalid_request": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "billing": "billing_error",
    "not_found": "not_found_error",
    "method_not_allowed": "invalid_request_error",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_error",
    "timeout": "timeout_error",
    "overloaded": "overloaded_error",
    "server": "api_error",
    "upstream": "api_error",
}

_STATUSES: dict[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of an error inside a reply that began with 200."""


def encode_error(error: BardoError) -> bytes:
    """Write an error body."""
    return encode_json(error_object(error))


def error_object(error: BardoError) -> JsonObject:
    """Return the error as the object that stands in a body or in an `error` event."""
    own = own_refusal(error, NAME)
    detail: JsonObject = {
        "type": own.upstream_type if own is not None and own.upstream_type in _STATUSES else _TYPES[error.kind],
        "message": message_in(in_anthropic_words, error, NAME, known=_KNOWN),
        "code": error.code,
    }
    if isinstance(error, InvalidRequest | Unsupported) and error.param:
        detail["param"] = error.param
    if isinstance(error, Unsupported) and error.details:
        detail["details"] = error.details
    if own is not None and isinstance(own.detail, dict) and own.detail.get("details") is not None:
        detail["details"] = own.detail["details"]
    request_id = (own.upstream_id if own is not None else "") or error.request_id
    return {"type": "error", "error": detail, **({"request_id": request_id} if request_id else {})}


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read an error answer. A body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = excerpt(body)
    error = refusal(value, provider=provider, status=status, retry_after=headers.get("retry-after"))
    error.upstream_id = error.upstream_id or headers.get("request-id", "")
    return error


def refusal(
    value: JsonValue, *, provider: str, status: int | None = None, retry_after: str | None = None
) -> UpstreamRefused:
    """Return the error that `value` tells of; `status` is found from its type where none came with it."""
    content = value.get("error", value) if isinstance(value, dict) else value
    fields: JsonObject = content if isinstance(content, dict) else {}
    kind = _text(fields.get("type"))
    named = (content.get("message") or content.get("detail")) if isinstance(content, dict) else None
    text = (as_text(named or content) if content else "").strip()
    if len(text) > _QUOTED:
        text = text[:_QUOTED] + "…"
    return UpstreamRefused(
        text or (f"the provider answered {status} without a word" if status else "the provider reported an error"),
        provider=provider,
        status=status if status is not None else _STATUSES.get(kind or "", 502),
        upstream_code=_text(fields.get("code")),
        upstream_type=kind,
        param=_text(fields.get("param")),
        retry_after=retry_after,
        detail=content if fields else None,
        dialect=NAME,
        upstream_id=(_text(value.get("request_id")) or "") if isinstance(value, dict) else "",
    )


def _text(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
