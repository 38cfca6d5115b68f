"""Errors of the gateway in the form of each dialect, and the codes that `X-Bardo-Error` may hold."""

from __future__ import annotations

from collections.abc import Iterator

from bardo.surfaces.gateway.openapi.json_schema import INTEGER, OBJECT, STRING, Schema, array, fields, just, or_null
from bardo.values import errors
from bardo.values.errors import BardoError

_OPENAI = fields(
    "error",
    error=fields(
        *("message", "type", "param", "code"),
        message=STRING,
        type=STRING,
        param=or_null(STRING),
        code=or_null(STRING),
    ),
    bardo=OBJECT,
)
_ANTHROPIC = fields(
    *("type", "error"),
    type=just("error"),
    error=fields("type", "message", type=STRING, message=STRING, code=STRING, param=STRING, details=OBJECT),
    request_id=STRING,
    bardo=OBJECT,
)
_GEMINI = fields(
    "error",
    error=fields("code", "message", "status", code=INTEGER, message=STRING, status=STRING, details=array(OBJECT)),
    bardo=OBJECT,
)
_INTERACTIONS = fields("error", error=fields("code", "message", code=STRING, message=STRING), bardo=OBJECT)
_OLLAMA = fields("error", error=STRING, code=STRING, bardo=OBJECT)
_COHERE = fields("message", message=STRING, code=STRING, param=STRING, bardo=OBJECT)
_BEDROCK = fields("message", "__type", message=STRING, __type=STRING, code=STRING, bardo=OBJECT)

ERROR_BODIES: dict[str, Schema] = {
    "openai_chat": _OPENAI,
    "openai_responses": _OPENAI,
    "anthropic_messages": _ANTHROPIC,
    "gemini": _GEMINI,
    "gemini_interactions": _INTERACTIONS,
    "ollama": _OLLAMA,
    "ollama_generate": _OLLAMA,
    "cohere": _COHERE,
    "bedrock_converse": _BEDROCK,
    "bedrock_invoke": _BEDROCK,
}
"""The body of an error by the dialect of the route."""


def error_classes() -> list[type[BardoError]]:
    """Return the errors that a client may get, in the order of their statuses."""
    found = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, BardoError)}
    return sorted(_leaves(found), key=lambda one: (one.status, one.__name__))


def _leaves(found: set[type[BardoError]]) -> Iterator[type[BardoError]]:
    for one in found:
        if one not in (errors.BardoError, errors.CallerError, errors.OperatorError, errors.ProviderError):
            yield one


def code_of(kind: type[BardoError]) -> str:
    """Return what `X-Bardo-Error` says of an error of a class."""
    return kind.__new__(kind).code


def statuses_text() -> str:
    """Return the statuses with the codes of their errors, as a table in Markdown."""
    by_status: dict[int, list[str]] = {}
    for one in error_classes():
        by_status.setdefault(one.status, []).append(f"`{code_of(one)}`")
    rows = [f"| {status} | {', '.join(codes)} |" for status, codes in by_status.items()]
    return "\n".join(("| status | `X-Bardo-Error` |", "|---|---|", *rows))
