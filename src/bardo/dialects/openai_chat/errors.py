"""OpenAI's errors, in both directions."""

from __future__ import annotations

import msgspec

from bardo.dialects.openai_chat.wire import NAME, Choice, Reply
from bardo.dialects.shared.json_values import JsonObject, as_text, decode_leniently, excerpt
from bardo.dialects.shared.reply_structs import held
from bardo.dialects.shared.spellings import message_in, overflow_of, own_refusal
from bardo.values.context_overflow import in_openai_words
from bardo.values.errors import BardoError, Kind, OverBudget, RateLimited, Unauthorized, UpstreamRefused

_TYPES: dict[Kind, str] = {
    "invalid_request": "invalid_request_error",
    "authentication": "invalid_request_error",
    "permission": "invalid_request_error",
    "billing": "insufficient_quota",
    "not_found": "invalid_request_error",
    "method_not_allowed": "invalid_request_error",
    "too_large": "invalid_request_error",
    "rate_limit": "rate_limit_error",
    "timeout": "server_error",
    "overloaded": "server_error",
    "server": "server_error",
    "upstream": "server_error",
}
"""The types that OpenAI's own servers write (2026-11): the status and the code say the rest."""

# What ChatGPT's servers say of a login that is over its limits: Codex tells by it until when (codex-api/src/api_bridge.rs, 2026-11).
_OF_LIMIT = ("plan_type", "resets_at", "resets_in_seconds")
_UNSPECIFIC = 400
_OWN = (NAME, "openai_responses")
_STATUSES: dict[str, int] = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "internal_server_error": 500,
    "overloaded_error": 503,
    "timeout_error": 504,
}


def error_object(error: BardoError) -> JsonObject:
    """Return the object that stands under `error`: type, code and param of a provider that speaks one of OpenAI's dialects are its own."""
    own = own_refusal(error, *_OWN)
    kind, code = (own.upstream_type, own.upstream_code) if own is not None else (None, None)
    if overflow_of(error) is not None:
        code = "context_length_exceeded"
    if isinstance(error, Unauthorized | RateLimited | OverBudget):
        kind, code = _of_key(error)
    foreign = own is None and isinstance(error, UpstreamRefused)
    detail = own.detail if own is not None and isinstance(own.detail, dict) else {}
    return {
        "message": message_in(in_openai_words, error, *_OWN),
        "type": kind or _TYPES[error.kind],
        "param": None if foreign else getattr(error, "param", None),
        "code": code or error.code,
        **{name: value for name in _OF_LIMIT if isinstance(value := detail.get(name), str | int)},
    }


def _of_key(error: Unauthorized | RateLimited | OverBudget) -> tuple[str, str]:
    """Return type and code as OpenAI's own servers write them for the faults of a key (2026-11-23)."""
    if isinstance(error, Unauthorized):
        return "invalid_request_error", "invalid_api_key"
    if isinstance(error, OverBudget):
        return "insufficient_quota", "insufficient_quota"
    return "tokens" if error.limit == "tokens_per_minute" else "requests", "rate_limit_exceeded"


def encode_error(error: BardoError) -> bytes:
    """Write an error body."""
    return msgspec.json.encode({"error": error_object(error)})


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read a provider's error answer."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = None
    value = value[0] if isinstance(value, list) and value else value
    detail = (value.get("error") or _first(value.get("errors")) or value) if isinstance(value, dict) else value
    if isinstance(detail, str) and isinstance(value, dict):
        # xAI says in `code` what happened, and in `error` what about.
        detail = {"message": detail, **{name: field for name, field in value.items() if name != "error"}}
    return _refused(detail, status=status, provider=provider, retry_after=headers.get("retry-after"), body=body)


def _first(errors: object) -> object:
    """Return the first of several errors, as watsonx lists them (2026-11)."""
    return errors[0] if isinstance(errors, list) and errors else None


def error_in_reply(holder: Reply | Choice, provider: str) -> UpstreamRefused | None:
    """Return the error that stands inside a reply of status 200, or inside one choice of it (OpenRouter), if one does."""
    detail = holder.error or _first(held(holder, "errors"))
    if not detail:
        return None
    return _refused(detail, status=_status_of(detail), provider=provider, retry_after=None, body=b"")


def bare_error(body: JsonObject, provider: str) -> UpstreamRefused | None:
    """Return the error that a reply of status 200 is, if it is one: vLLM's older servers and Mistral write it without a field around it."""
    if body.get("object") != "error" or not body.get("message"):
        return None
    return _refused(body, status=_status_of(body), provider=provider, retry_after=None, body=b"")


def _refused(detail: object, *, status: int, provider: str, retry_after: str | None, body: bytes) -> UpstreamRefused:
    fields = detail if isinstance(detail, dict) else {}
    message = (
        fields.get("message")
        or fields.get("detail")
        or fields.get("msg")
        or (detail if isinstance(detail, str) else "")
    )
    code, kind, param = fields.get("code"), fields.get("type"), fields.get("param")
    return UpstreamRefused(
        as_text(message) or excerpt(body) or f"the provider answered with status {status}",
        provider=provider,
        status=status,
        upstream_code=as_text(code) or None,
        upstream_type=as_text(kind) or None,
        param=as_text(param) or None,
        retry_after=retry_after,
        detail=detail,
        hint=_cause(fields.get("metadata")),
        dialect=NAME,
    )


def _cause(metadata: object) -> str:
    """Return what the server behind a router said: OpenRouter's message is "Provider returned error", and `raw` says why (2026-11)."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return ""
    data = raw.encode("utf-8", "replace")
    try:
        value = decode_leniently(data)
    except ValueError:
        value = None
    held = value.get("error", value) if isinstance(value, dict) else None
    message = held.get("message") if isinstance(held, dict) else held
    return message if isinstance(message, str) and message else excerpt(data)


def _status_of(detail: object) -> int:
    """Return the status an error inside a stream would have had as an answer of its own."""
    fields = detail if isinstance(detail, dict) else {}
    for name in ("status", "status_code", "code"):
        value = fields.get(name)
        value = (
            int(value) if isinstance(value, str) and value.isascii() and len(value) == 3 and value.isdigit() else value
        )
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    # DeepSeek's `code` is `invalid_request_error` whatever went wrong, its `type` says what (2026-10).
    words = (fields.get("code"), fields.get("type"))
    statuses = [_STATUSES[word] for word in words if isinstance(word, str) and word in _STATUSES]
    return next((status for status in statuses if status != _UNSPECIFIC), statuses[0] if statuses else 502)
