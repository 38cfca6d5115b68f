"""Errors of the Responses dialect: bodies, and the two events that end a stream."""

from __future__ import annotations

from bardo.dialects.openai_chat.errors import encode_error as encode_error
from bardo.dialects.openai_chat.errors import error_object as error_object
from bardo.dialects.openai_responses.wire import NAME
from bardo.dialects.shared.json_values import JsonValue, decode_leniently, excerpt
from bardo.values.errors import UpstreamRefused

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


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read a provider's error answer; a body that is not of this dialect is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = None
    error = value.get("error", value) if isinstance(value, dict) else value
    return _refused(
        error,
        status=status,
        provider=provider,
        retry_after=headers.get("retry-after"),
        otherwise=excerpt(body) or f"status {status}",
    )


def refusal_in_reply(found: JsonValue) -> UpstreamRefused:
    """Read the error object of a reply that began well."""
    fields = found if isinstance(found, dict) else {}
    words = [word for word in (fields.get("code"), fields.get("type")) if isinstance(word, str)]
    status = next((_STATUSES[word] for word in words if word in _STATUSES), 502)
    return _refused(found, status=status, otherwise="the provider reported a failure without saying which")


def _refused(
    error: JsonValue, *, status: int, otherwise: str, provider: str = "", retry_after: str | None = None
) -> UpstreamRefused:
    fields = error if isinstance(error, dict) else {}
    # ChatGPT's own endpoint says `detail`, some gateways a bare string.
    message = error if isinstance(error, str) else fields.get("message") or fields.get("detail")
    return UpstreamRefused(
        message if isinstance(message, str) and message else otherwise,
        provider=provider,
        status=status,
        upstream_code=_code_text(fields.get("code")),
        upstream_type=_code_text(fields.get("type")),
        param=_code_text(fields.get("param")),
        retry_after=retry_after,
        detail=error,
        dialect=NAME,
    )


def _code_text(value: JsonValue) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)
