"""Errors as Ollama writes them, in both directions: `{"error": "what happened"}`, in a body or as a line of a stream."""

from __future__ import annotations

from bardo.dialects.ollama.wire import NAME
from bardo.dialects.shared.json_values import JsonObject, as_text, decode_leniently, encode_json, excerpt
from bardo.dialects.shared.spellings import message_in, own_refusal
from bardo.values.context_overflow import in_ollama_words
from bardo.values.errors import BardoError, UpstreamRefused

_QUOTED = 500


def error_object(error: BardoError) -> JsonObject:
    """Return the object that stands in a body or a line. Ollama has words only; the code stands beside them."""
    own = own_refusal(error, NAME)
    code = None if own is None else own.upstream_code
    return {"error": message_in(in_ollama_words, error, NAME), "code": code or error.code}


def encode_error(error: BardoError) -> bytes:
    """Write an error body."""
    return encode_json(error_object(error))


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read an error answer. A body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = excerpt(body)
    return refusal(value, provider=provider, status=status, retry_after=headers.get("retry-after"))


def refusal(value: object, *, provider: str, status: int = 500, retry_after: str | None = None) -> UpstreamRefused:
    """Return the error that `value` tells of. A line tells no status; the server's own default is 500."""
    fields: JsonObject = value if isinstance(value, dict) else {}
    detail = fields.get("error", value)
    # Proxies put OpenAI's object there.
    named = detail.get("message") if isinstance(detail, dict) else None
    text = as_text(named or detail).strip()
    code = fields.get("code")
    return UpstreamRefused(
        (text[:_QUOTED] + "…" if len(text) > _QUOTED else text) or f"the provider answered {status} without a word",
        provider=provider,
        status=status,
        upstream_code=code if isinstance(code, str) else None,
        retry_after=retry_after,
        detail=fields or None,
        dialect=NAME,
    )
