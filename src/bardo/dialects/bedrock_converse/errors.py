"""Errors as Bedrock's servers write them: `{"message"}`, with the type in a header, or as the name of an event in a stream."""

from __future__ import annotations

from bardo.dialects.bedrock_converse.wire import NAME
from bardo.dialects.shared.json_values import JsonObject, as_text, decode_leniently, encode_json, excerpt
from bardo.dialects.shared.spellings import message_in
from bardo.streams.eventstream import message_headers
from bardo.streams.frames import Frame
from bardo.values.context_overflow import in_bedrock_words
from bardo.values.errors import BardoError, InvalidRequest, Kind, UpstreamRefused

_QUOTED = 500
_MESSAGES = ("message", "Message", "originalMessage")

_TYPES: dict[Kind, str] = {
    "invalid_request": "ValidationException",
    "authentication": "UnrecognizedClientException",
    "permission": "AccessDeniedException",
    "billing": "ServiceQuotaExceededException",
    "not_found": "ResourceNotFoundException",
    "method_not_allowed": "ValidationException",
    "too_large": "ValidationException",
    "rate_limit": "ThrottlingException",
    "timeout": "ModelTimeoutException",
    "overloaded": "ServiceUnavailableException",
    "server": "InternalServerException",
    "upstream": "ModelErrorException",
}
_MODEL_FAILED = frozenset(("modelstreamerrorexception", "modelerrorexception"))

# What an error inside a reply that began with 200 would have been. Amazon gives failures of the model 424, a client's status for what
# it advises to try again: they are 502 here.
_STATUSES: dict[str, int] = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "throttlingexception": 429,
    "modelnotreadyexception": 429,
    "internalserverexception": 500,
    "internalfailure": 500,
    "modelstreamerrorexception": 502,
    "modelerrorexception": 502,
    "serviceunavailableexception": 503,
}
_IN_STREAM = {
    "ThrottlingException": "throttlingException",
    "ValidationException": "validationException",
    "ServiceUnavailableException": "serviceUnavailableException",
    "InternalServerException": "internalServerException",
}


def encode_error(error: BardoError) -> bytes:
    """Write an error body. AWS's clients look for the type in `__type` or `code` where the header is missing."""
    fields: JsonObject = {"message": _words_of(error), "__type": type_of(error), "code": type_of(error)}
    fields["bardo"] = {"code": error.code}
    if isinstance(error, InvalidRequest) and error.param:
        fields["bardo"]["param"] = error.param
    return encode_json(fields)


def error_headers(error: BardoError) -> list[tuple[str, str]]:
    """Return the header where AWS's clients look for the type of an error first."""
    return [("x-amzn-errortype", type_of(error))]


def exception_of(error: BardoError, extension: JsonObject | None = None) -> tuple[str, bytes]:
    """Return the name and the payload of the event that ends a broken stream: one of the few the dialect knows.

    `extension` is what bardo tells of the reply beside the error.
    """
    name = _IN_STREAM.get(type_of(error), "modelStreamErrorException")
    return name, encode_json({"message": _words_of(error), "bardo": {**(extension or {}), "code": error.code}})


def _words_of(error: BardoError) -> str:
    return message_in(in_bedrock_words, error, NAME, "bedrock_invoke")


def type_of(error: BardoError) -> str:
    """Return the name Bedrock has for such an error."""
    if isinstance(error, UpstreamRefused) and (error.upstream_type or "").lower() in _STATUSES:
        named = str(error.upstream_type)
        return named[:1].upper() + named[1:]
    return _TYPES[error.kind]


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Read an error answer. A body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = excerpt(body)
    named = headers.get("x-amzn-errortype")
    return refusal(value, provider=provider, status=status, named=named, retry_after=headers.get("retry-after"))


def stream_refusal(item: Frame, provider: str) -> UpstreamRefused | None:
    """Return the error that a message of a stream tells of, or None if it is a message of another kind."""
    if not item.event:
        return None
    data = item.data or b""
    if not data:
        headers = _headers_of(item)
        if ":error-code" not in headers:
            return None
        return refusal({"message": headers.get(":error-message")}, provider=provider, named=headers[":error-code"])
    if not item.event.lower().endswith("exception"):
        return None
    try:
        value = decode_leniently(data)
    except ValueError:
        value = excerpt(data)
    return refusal(value, provider=provider, named=item.event)


def is_refusal(value: JsonObject) -> bool:
    """Whether an object that should be a reply is an error."""
    return any(isinstance(value.get(name), str) for name in ("message", "Message", "__type"))


def refusal(
    value: object, *, provider: str, status: int | None = None, named: str | None = None, retry_after: str | None = None
) -> UpstreamRefused:
    """Return the error that `value` tells of; its status is found from its type where none came with it."""
    fields: JsonObject = value if isinstance(value, dict) else {}
    kind = _bare(named or _text(fields.get("__type")) or _text(fields.get("code")))
    status_known = _STATUSES.get((kind or "").lower(), 502) if status is None else status
    refused = UpstreamRefused(
        _message(value, fields, kind, status),
        provider=provider,
        status=status_known,
        upstream_code=_text(fields.get("originalStatusCode")),
        upstream_type=kind,
        retry_after=retry_after,
        detail=fields or None,
        dialect=NAME,
    )
    if (kind or "").lower() in _MODEL_FAILED:
        # 424 reads like the caller's mistake, and is the model's.
        refused.kind, refused.retryable = "server", True
    return refused


def _headers_of(item: Frame) -> dict[str, str]:
    try:
        return message_headers(item.raw)
    except ValueError:
        return {}


def _bare(named: str | None) -> str | None:
    """Return the type without the names of services around it: `com.amazon#Type:http://…`."""
    return named.partition(":")[0].rpartition("#")[2] if named else None


def _message(value: object, fields: JsonObject, kind: str | None, status: int | None) -> str:
    given = [fields[name] for name in _MESSAGES if name in fields]
    named = next((text for text in given if text), None)
    text = as_text(named if given else value or "").strip()
    if len(text) > _QUOTED:
        text = text[:_QUOTED] + "…"
    if text:
        return text
    return kind or (f"the provider answered {status} without a word" if status else "the provider reported an error")


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
