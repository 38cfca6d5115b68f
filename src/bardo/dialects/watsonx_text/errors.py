"""The dialect's errors: `{"errors": [{"code", "message"}], "trace", "status_code"}`."""

from __future__ import annotations

from typing import Any

from bardo.dialects.lenient import as_text, decode_leniently, excerpt
from bardo.dialects.wire import encode_json
from bardo.values.errors import BardoError, UpstreamRefused


def encode_error(error: BardoError) -> bytes:
    """Write an error body."""
    return encode_json(error_fields(error))


def error_fields(error: BardoError) -> dict[str, Any]:
    """Return the error object, in the order of the dialect's servers."""
    return {"errors": [{"code": error.code, "message": str(error)}], "status_code": error.status}


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read an error answer; a body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = None
    retry_after = headers.get("retry-after")
    if isinstance(value, dict) and value.get("errors"):
        return refused(value, provider=provider, status=status, retry_after=retry_after)
    message = excerpt(body) or f"the provider answered {status} without a word"
    return UpstreamRefused(message, provider=provider, status=status, retry_after=retry_after)


def refused(
    value: dict[str, Any], *, provider: str, status: int | None = None, retry_after: str | None = None
) -> UpstreamRefused:
    """Return the provider's error object as an error. Without a `status`, the object's own is it."""
    errors = value.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    fields = first if isinstance(first, dict) else {"message": as_text(first)}
    if status is None:
        own = value.get("status_code")
        status = own if type(own) is int and 400 <= own <= 599 else 502
    return UpstreamRefused(
        as_text(fields.get("message")) or f"the provider answered {status}",
        provider=provider,
        status=status,
        upstream_code=as_text(fields.get("code")) or None,
        retry_after=retry_after,
        detail=value,
    )
