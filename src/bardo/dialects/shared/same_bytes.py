"""A body written anew as its client wrote it: the bytes that head a prompt are those of every turn, and a provider's cache holds for them.

Providers bill a prompt anew from its first changed byte on. The order of keys in a tool, a schema or a message says nothing, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.shared.known_items import Item, KnownItems
from bardo.values.request import Request

# Under which the form of an item is kept.
_FORM = "form"
_SAYS_NOTHING: dict[str, Any] = {"is_error": False, "annotations": [], "logprobs": []}
"""Fields that mean the same at this value as left out, and that agents write."""


def with_original_form(body: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """Return a body with its fields in the form that its client gave them."""
    try:
        return {name: _as_first_written(value, original.get(name)) for name, value in body.items()}
    except RecursionError:
        return body  # It cannot be written either.


def _as_first_written(written: Any, original: Any) -> Any:
    """Return a field in the form of the original, whose elements are taken over where they are equal: most of a history is."""
    if written is original or not (isinstance(written, list) and isinstance(original, list)):
        return as_first_written(written, original)
    if type(original) is KnownItems:
        aligned = [_known_form(one, item) for one, item in zip(written, original.items, strict=False)]
    else:
        aligned = [_form_of(one, first) for one, first in zip(written, original, strict=False)]
    return aligned + written[len(aligned) :]


def _known_form(written: Any, item: Item) -> Any:
    """Return a message in the form of an item of the history: as it was found before, where the same was written then."""
    kept: tuple[Any, Any] | None = item.read.get(_FORM)
    if kept is None or kept[0] is not written:
        kept = item.read[_FORM] = written, _form_of(written, item.value)
    return kept[1]


def _form_of(written: Any, original: Any) -> Any:
    return original if written == original else as_first_written(written, original)


def as_first_written(written: Any, original: Any) -> Any:
    """Return what was written anew in the form of the original: its order of keys, and text as a list of one part where it was one."""
    if written is original:
        return original
    if isinstance(written, dict) and isinstance(original, dict):
        return _ordered(written, original)
    if isinstance(written, list) and isinstance(original, list):
        aligned = [as_first_written(one, first) for one, first in zip(written, original, strict=False)]
        return aligned + written[len(aligned) :]
    if isinstance(written, str) and isinstance(original, list) and _text_of(original) == written:
        return original
    return written


def _ordered(written: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    ordered: dict[str, Any] = {}
    for name, first in original.items():
        if name in written:
            value = written[name]
            # Beside what holds other values, nothing has a form of its own.
            ordered[name] = value if value is first or type(first) not in _NESTED else as_first_written(value, first)
        elif name in _SAYS_NOTHING and _SAYS_NOTHING[name] == first and written.get("type") == original.get("type"):
            ordered[name] = first
    if not ordered.keys() >= written.keys():
        ordered |= {name: value for name, value in written.items() if name not in ordered}
    return ordered


_NESTED = (dict, list)
_TURN = ("role", "content")


def has_plain_form(request: Request) -> bool:
    """Whether the form of a request's body follows from its fields: each message is a role and a text, and no other field has two forms."""
    body = request.body or {}
    turns = body.get("messages")
    if not isinstance(turns, list) or len(turns) != len(request.messages):
        return False
    for turn, message in zip(turns, request.messages, strict=True):
        if (
            type(turn) is not dict
            or tuple(turn) != _TURN
            or type(turn["content"]) is not str
            or turn["role"] != message.role
        ):
            return False
    nested = [value for value in body.values() if type(value) in _NESTED and value is not turns]
    return not nested or all(map(_has_one_form, nested))


def _has_one_form(value: Any) -> bool:
    """Whether an object or a list can only be written in one way."""
    return type(value) is dict and len(value) < 2 and not any(type(inner) in _NESTED for inner in value.values())


def with_plain_texts(request: Request, texts: Sequence[str]) -> dict[str, Any]:
    """Return the body of a request of that form with other texts in its messages."""
    turns = zip(request.messages, texts, strict=True)
    return {**(request.body or {}), "messages": [{"role": one.role, "content": text} for one, text in turns]}


def _text_of(parts: list[Any]) -> Any:
    """Return the text of a list of one part that is nothing but text."""
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, dict) or "text" not in only:
        return None
    others = (name for name in only if name not in ("type", "text"))
    plain = all(name in _SAYS_NOTHING and only[name] == _SAYS_NOTHING[name] for name in others)
    return only["text"] if plain else None
