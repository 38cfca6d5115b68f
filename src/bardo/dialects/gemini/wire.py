"""What the contents of a generateContent request look like, as Google's reference says it (2026-11). Both spellings of names are read.

What bardo has a word for is read; fields beside it are carried as they came.

Gemini's words beside bardo's: spelling of fields, reasons for ending, and what a thought signature holds.

Citations of web pages in Gemini's form: pages in `groundingChunks`, and in `groundingSupports` the stretches that they support.

Places are bytes of UTF-8. A page that supports no stretch is one without places.
Source: https://ai.google.dev/api/generate-content#GroundingMetadata.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from bardo.dialects.shared.content_forms import Citation, CitationForm, Citations
from bardo.dialects.shared.declaration import is_empty
from bardo.dialects.shared.json_values import without
from bardo.dialects.shared.states import seal, unseal
from bardo.dialects.shared.structs import Wire
from bardo.values.blocks import Opaque, has_no_arguments
from bardo.values.events import Finish, FinishReason


class Blob(Wire, kw_only=True, rename="camel"):
    """Bytes in base64. One that has more fields is carried whole."""

    data: str
    mime_type: str | None = None


class FileData(Wire, kw_only=True, rename="camel"):
    """Where a file is. One that has more fields is carried whole."""

    file_uri: str
    mime_type: str | None = None


class ResponsePart(Wire, kw_only=True, rename="camel"):
    """A picture or a document that a function gave back."""

    inline_data: Blob | None = None
    file_data: FileData | None = None


class FunctionCall(Wire, kw_only=True, rename="camel"):
    """A call of a function, which may have no id."""

    name: str
    id: str | None = None
    args: dict[str, Any] | None = None


class FunctionResponse(Wire, kw_only=True, rename="camel"):
    """What a function gave back."""

    name: str
    id: str | None = None
    response: dict[str, Any] | None = None
    parts: list[ResponsePart] | None = None


class Part(Wire, kw_only=True, rename="camel"):
    """A part of a content: one of text, a call, a result or media, with what goes with it."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(Wire, kw_only=True, rename="camel"):
    """A message, or a piece of one. Bare strings stand for parts of text."""

    parts: list[Part | str] | Part | str | None = None
    role: str | None = None


NAME = "gemini"
FORMAT = "google-gemini-v1"
RAW_ARGUMENTS = "_raw"
"""Gemini's `args` is an object: arguments that are not one stand whole under this key, and are taken out of it again."""

REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
    "ESCALATION": "refusal",
    "PUP_LIMITED_DISABLED": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "IMAGE_OTHER": "error",
    "NO_IMAGE": "error",
    "CONTINUATION": "pause",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
}

_FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "SAFETY",
}


def finish_reason(word: str, *, called: bool) -> FinishReason:
    """Return why a candidate ended. Gemini says STOP for function calls too, so `called` makes the difference."""
    reason = REASONS.get(word, "unknown")
    return "tool_calls" if reason == "stop" and called else reason


def finish_word(finish: Finish) -> str:
    """Return Gemini's word: its own where the reply came from Gemini, else the nearest."""
    ours = finish.raw in REASONS and finish_reason(finish.raw, called=finish.reason == "tool_calls") == finish.reason
    if ours or (finish.reason == "unknown" and finish.raw.isupper()):
        return finish.raw
    return _FINISH_REASONS.get(finish.reason, "OTHER")


def camel(name: str) -> str:
    """Return `response_mime_type` as `responseMimeType`; the real API takes both spellings."""
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def split_fields(fields: dict[str, Any], names: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields called one of `names`, in camel case, and all others as they are. A null counts as absent."""
    known: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in fields.items():
        spelled = name if name in names else camel(name)
        if value is not None:
            target, key = (known, spelled) if spelled in names else (others, name)
            target[key] = value
    return known, others


def is_native(opaque: Opaque) -> bool:
    """Whether this is a thought signature of Gemini's own."""
    return opaque.format == FORMAT and opaque.kind == "signature"


def signature_of(states: Sequence[Opaque]) -> str:
    """Return what stands in `thoughtSignature`: Gemini's own signature as it is, anything else sealed, nothing for nothing."""
    if not states:
        return ""
    return states[0].data if len(states) == 1 and is_native(states[0]) else seal(states)


def opaque_of(signature: str) -> tuple[tuple[Opaque, ...], bool]:
    """Return the state in a client's `thoughtSignature`, and whether it had been sealed by bardo."""
    # SDKs hold the field as bytes and write it in base64's other alphabet.
    sealed = unseal(signature.replace("-", "+").replace("_", "/"))
    if sealed is not None:
        return sealed, True
    return ((Opaque("signature", signature, FORMAT),) if signature else ()), False


def arguments_object(arguments: str) -> tuple[dict[str, Any], bool]:
    """Return the arguments as the object Gemini wants, and whether they had to be kept as raw text."""
    if has_no_arguments(arguments):
        return {}, False
    try:
        parsed = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        parsed = None
    return (parsed, False) if isinstance(parsed, dict) else ({RAW_ARGUMENTS: arguments}, True)


SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "seed": "seed",
    "stop": "stopSequences",
}
"""The sampling parameters by their names here."""


_FIELD = "groundingMetadata"
_CHUNKS, _SUPPORTS = "groundingChunks", "groundingSupports"


def _decode(value: Any) -> Citations:
    grounding = value if isinstance(value, dict) else {}
    pages = [_page(chunk) for chunk in _objects(grounding.get(_CHUNKS))]
    found: list[Citation] = []
    used: set[int] = set()
    for support in _objects(grounding.get(_SUPPORTS)):
        segment = support.get("segment")
        segment = segment if isinstance(segment, dict) else {}
        start, end, said = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text") or ""
        for number in support.get("groundingChunkIndices") or ():
            page = pages[number] if type(number) is int and 0 <= number < len(pages) else None
            if page is not None and type(start) is int and type(end) is int:
                used.add(number)
                found.append(page._replace(start=start, end=end, text=said))
    found += [page for number, page in enumerate(pages) if page is not None and number not in used]
    others = without(grounding, _CHUNKS, _SUPPORTS)
    lost = [f"{_FIELD}.{name}" for name, held in others.items() if not is_empty(held)]
    if None in pages or not grounding:
        lost.append(f"{_FIELD}.{_CHUNKS}")
    return Citations(tuple(found), tuple(lost) if found else (_FIELD,))


def _write(citations: Sequence[Citation]) -> dict[str, Any]:
    pages = {(one.url, one.title): None for one in citations}
    numbers = {page: number for number, page in enumerate(pages)}
    stretches: dict[tuple[int, int, str], list[int]] = {}
    for one in citations:
        if one.start is not None and one.end is not None and one.end > one.start:
            listed = stretches.setdefault((one.start, one.end, one.text), [])
            listed.append(numbers[one.url, one.title])
    supports = [
        {"segment": {"startIndex": start, "endIndex": end, "text": said}, "groundingChunkIndices": listed}
        for (start, end, said), listed in stretches.items()
    ]
    return {_CHUNKS: [{"web": {"uri": url, "title": title}} for url, title in pages], _SUPPORTS: supports}


def _page(chunk: dict[str, Any]) -> Citation | None:
    web = chunk.get("web")
    if not isinstance(web, dict) or not isinstance(web.get("uri"), str):
        return None
    title = web.get("title")
    return Citation(web["uri"], title if isinstance(title, str) else "")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else {} for one in value] if isinstance(value, list) else []


CITATIONS = CitationForm(field=_FIELD, read=_decode, write=_write, of_choice=True, in_bytes=True, at_end=True)
