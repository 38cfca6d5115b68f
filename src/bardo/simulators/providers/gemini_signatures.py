"""Thought signatures as Gemini makes and checks them.

From Gemini 3 on, the first call of each step of the current turn must have its signature; a signature of anybody else is refused
wherever it stands. Source: ai.google.dev, Thought signatures, as of 2026-11; the words are those users report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bardo.simulators import marks
from bardo.simulators.fields import Fields, fields, rows, text
from bardo.simulators.refusal import Refusal

_SIGNER = "gemini-api"
_HEAD = b"\x12\xf4\x01\n"
_STRICT = re.compile(r"gemini-(?:[3-9]|[1-9]\d)")
# What Google documents for calls that another model made.
WAIVERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and "
    "missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , "
    "position {position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)


def signs_always(model: str) -> bool:
    """Whether the model signs its calls even where it shows no thoughts."""
    return _STRICT.search(model) is not None


def signature(model: str, reasoning: str, *, called: str = "") -> str:
    """Return the signature of a part: of a call by the function's name, or of a text."""
    bound = {"model": model, "said": marks.fingerprint(reasoning), "called": called}
    return marks.encode_base64(marks.sign(_SIGNER, bound, size=260, head=_HEAD))


def check(contents: Sequence[Fields], model: str) -> None:
    """Refuse signatures that are not Gemini's, and calls of the current turn without one."""
    for content in contents:
        for part in rows(content.get("parts")):
            if held := held_by(part):
                check_one(held, _called(part))
    if signs_always(model):
        _check_turn(contents)


def check_one(held: str, called: str) -> None:
    """Refuse a signature that is not Gemini's, or of another call."""
    bound = marks.verify(_SIGNER, marks.decode_base64(held), head=_HEAD)
    if held not in WAIVERS and (bound is None or bound.get("called") != called):
        raise Refusal("bad_value", "Corrupted thought signature.")


def missing(name: str, position: int) -> Refusal:
    """Build the error for a call without a signature; positions count from 1."""
    return Refusal("bad_value", _MISSING.format(name=name, position=position))


def held_by(part: Fields) -> str:
    """Return the signature of a part, in either spelling."""
    return text(part.get("thoughtSignature", part.get("thought_signature")))


def _called(part: Fields) -> str:
    return text(fields(part.get("functionCall", part.get("function_call"))).get("name"))


def _check_turn(contents: Sequence[Fields]) -> None:
    for index in range(_turn_start(contents), len(contents)):
        parts = rows(contents[index].get("parts"))
        calls = [part for part in parts if _called(part)] if contents[index].get("role") == "model" else []
        if calls and not held_by(calls[0]):
            raise missing(_called(calls[0]), index + 1)


def _turn_start(contents: Sequence[Fields]) -> int:
    """The current turn begins with the last thing a person said."""
    for index in range(len(contents) - 1, -1, -1):
        parts = rows(contents[index].get("parts"))
        results = any("functionResponse" in part or "function_response" in part for part in parts)
        if contents[index].get("role", "user") == "user" and not results:
            return index
    return 0
