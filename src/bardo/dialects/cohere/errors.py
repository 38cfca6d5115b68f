"""Errors as Cohere writes them, in both directions: `{"id", "message"}` in a body, `error` in the last event of a stream."""

from __future__ import annotations

from bardo.dialects.cohere.wire import NAME
from bardo.dialects.shared.json_values import JsonObject, as_text, decode_leniently, encode_json, excerpt
from bardo.dialects.shared.spellings import message_in, own_refusal
from bardo.values.context_overflow import in_cohere_words
from bardo.values.errors import BardoError, InvalidRequest, UpstreamRefused

_QUOTED = 500


def encode_error(error: BardoError) -> bytes:
    """Write an error body. Cohere has words only; the code stands beside them."""
    body: JsonObject = {"message": message_in(in_cohere_words, error, NAME), "code": _code(error)}
    if isinstance(error, InvalidRequest) and error.param:
        body["param"] = error.param
    return encode_json(body)


def ending(error: BardoError) -> JsonObject:
    """Return what the last event of a stream says of an error."""
    own = own_refusal(error, NAME)
    kind = None if own is None else own.upstream_type
    return {
        "finish_reason": "ERROR",
        "error": message_in(in_cohere_words, error, NAME),
        "error_type": kind or error.code.upper(),
        "code": _code(error),
    }


def _code(error: BardoError) -> str:
    own = own_refusal(error, NAME)
    return (None if own is None else own.upstream_code) or error.code


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read an error answer. A body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = excerpt(body)
    return refusal(value, provider=provider, status=status, retry_after=headers.get("retry-after"))


def refusal(value: object, *, provider: str, status: int = 502, retry_after: str | None = None) -> UpstreamRefused:
    """Return the error that `value` tells of, whether it is an error body or the end of a stream."""
    fields: JsonObject = value if isinstance(value, dict) else {}
    error_field = next(
        (fields[name] for name in ("error", "message", "detail") if fields.get(name)), None if fields else value
    )
    # Proxies put OpenAI's object there.
    inner: JsonObject = error_field if isinstance(error_field, dict) else fields
    text = as_text(inner.get("message") if isinstance(error_field, dict) else error_field).strip()
    return UpstreamRefused(
        (text[:_QUOTED] + "…" if len(text) > _QUOTED else text) or f"the provider answered {status} without a word",
        provider=provider,
        status=status,
        upstream_code=_text_or_none(inner.get("code")),
        upstream_type=_text_or_none(inner.get("error_type") or inner.get("type")),
        param=_text_or_none(inner.get("param")),
        retry_after=retry_after,
        detail=fields or None,
        dialect=NAME,
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
