"""Gemini's words beside bardo's: spelling of fields, reasons for ending, and what a thought signature holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from bardo.dialects.sealing import seal, unseal
from bardo.values.blocks import Opaque, has_no_arguments
from bardo.values.events import Finish, FinishReason

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
