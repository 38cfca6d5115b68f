"""The dialect's errors: `{"error": {"code", "message"}}` with a word for a code, in answers and in streams alike."""

from __future__ import annotations

from bardo.dialects.gemini.errors import OVERFLOW_WORDS, refused
from bardo.dialects.gemini.errors import decode_error as decode_error
from bardo.dialects.gemini_interactions.wire import NAME
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.spellings import message_in, own_refusal
from bardo.values.context_overflow import in_gemini_words
from bardo.values.errors import BardoError, InvalidRequest, Kind, OverBudget, UpstreamRefused

_CODES: dict[Kind, str] = {
    "invalid_request": "invalid_request",
    "authentication": "unauthenticated",
    "permission": "permission_denied",
    "billing": "failed_precondition",
    "not_found": "not_found",
    "method_not_allowed": "unimplemented",
    "too_large": "invalid_request",
    "rate_limit": "resource_exhausted",
    "timeout": "deadline_exceeded",
    "overloaded": "unavailable",
    "server": "internal",
    "upstream": "unavailable",
}
_OWN = (NAME, "gemini")
_STATUSES = {
    "invalid_request": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "resource_exhausted": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "internal": 500,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


def encode_error(error: BardoError) -> bytes:
    """Write an error body; bardo's own code stands under `bardo`, since the dialect's `code` is the kind of error."""
    return encode_json({"error": error_fields(error)})


def error_fields(error: BardoError) -> JsonObject:
    """Return the error object. A code of this dialect comes back as it was."""
    own = own_refusal(error, *_OWN)
    code = None if own is None else own.upstream_code
    param = error.param if isinstance(error, InvalidRequest) else None if own is None else own.param
    return {
        "code": code if code in _STATUSES else _code_of(error),
        "message": message_in(in_gemini_words, error, *_OWN, known=OVERFLOW_WORDS),
        "bardo": {"code": error.code, **({"param": param} if param else {})},
    }


def _code_of(error: BardoError) -> str:
    # Gemini has one word for too many calls and for too much money.
    return "resource_exhausted" if isinstance(error, OverBudget) else _CODES[error.kind]


def refusal_in_reply(error: object, provider: str) -> UpstreamRefused:
    """Return an error object that came in a stream or with status 200: its code tells the status."""
    code = error.get("code") if isinstance(error, dict) else None
    return refused(error, provider=provider, status=_STATUSES.get(code.lower()) if isinstance(code, str) else None)
