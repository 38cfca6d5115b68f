"""A body written anew as its client wrote it: the bytes that head a prompt are those of every turn, and a provider's cache holds for them.

Providers bill a prompt anew from its first changed byte on. The order of keys in a tool, a schema or a message says nothing, and stays.
"""

from __future__ import annotations

from collections.abc import Callable

from bardo.dialects.shared.json_values import JsonObject

_SAYS_NOTHING: JsonObject = {"is_error": False, "annotations": [], "logprobs": []}
"""Fields that mean the same at this value as left out, and that agents write."""


def with_original_form(body: JsonObject, original: JsonObject) -> JsonObject:
    """Return a body with its fields in the form that its client gave them."""
    try:
        return {name: _as_first_written(value, original.get(name)) for name, value in body.items()}
    except RecursionError:
        return body  # It cannot be written either.


def _as_first_written(written: object, original: object) -> object:
    """Return a field in the form of the original, whose elements are taken over where they are equal: most of a history is."""
    if written is original or not (isinstance(written, list) and isinstance(original, list)):
        return as_first_written(written, original)
    aligned = [form if form is first else _form_of(form, first) for form, first in zip(written, original, strict=False)]
    return aligned + written[len(aligned) :]


def _form_of(written: object, original: object) -> object:
    """Return an element in the form of the original; if it differs, the values of its fields may still be equal."""
    if written == original:
        return original
    if isinstance(written, dict) and isinstance(original, dict):
        return _ordered(written, original, _equal_or_as_first_written)
    return as_first_written(written, original)


def _equal_or_as_first_written(written: object, original: object) -> object:
    return original if written == original else as_first_written(written, original)


def as_first_written(written: object, original: object) -> object:
    """Return what was written anew in the form of the original: its order of keys, and text as a list of one part where it was one."""
    if written is original:
        return original
    if isinstance(written, dict) and isinstance(original, dict):
        return _ordered(written, original, as_first_written)
    if isinstance(written, list) and isinstance(original, list):
        aligned = [as_first_written(form, first) for form, first in zip(written, original, strict=False)]
        return aligned + written[len(aligned) :]
    if isinstance(written, str) and isinstance(original, list) and _text_of(original) == written:
        return original
    return written


def _ordered(written: JsonObject, original: JsonObject, form: Callable[[object, object], object]) -> JsonObject:
    """Return an object with its fields in the order of the original; `form` gives a field that may hold other values."""
    ordered: JsonObject = {}
    for name, first in original.items():
        if name in written:
            value = written[name]
            # Beside what holds other values, nothing has a form of its own.
            ordered[name] = value if value is first or type(first) not in _NESTED else form(value, first)
        elif name in _SAYS_NOTHING and _SAYS_NOTHING[name] == first and written.get("type") == original.get("type"):
            ordered[name] = first
    if not ordered.keys() >= written.keys():
        ordered |= {name: value for name, value in written.items() if name not in ordered}
    return ordered


_NESTED = frozenset((dict, list))


def _text_of(parts: list[object]) -> object:
    """Return the text of a list of one part that is nothing but text."""
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, dict) or "text" not in only:
        return None
    others = (name for name in only if name not in ("type", "text"))
    plain = all(name in _SAYS_NOTHING and only[name] == _SAYS_NOTHING[name] for name in others)
    return only["text"] if plain else None
