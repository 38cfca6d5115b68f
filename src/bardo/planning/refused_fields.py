"""Send a request without a field that its provider refused: found by the words of the refusal, left out of the body, and reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.planning.provider_words import Fields, ProviderWords, fields_of
from bardo.values.degradation import Degradation
from bardo.values.errors import UpstreamRefused
from bardo.values.wire import WireRequest

_STATUSES = frozenset({400, 422, 501})
_DEEPEST = 4
_NUMBER = re.compile(r"\[\d+\]|\.\d+(?=\.)")
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


class RefusedField(msgspec.Struct, frozen=True):
    """A field of the provider's body, by its dotted path, that is not taken there; `instead` is its other name, empty for none.

    `messages[].name` is a field of every message. `for_good`: whatever its value is, and whatever else the request has, so that it may
    be left out of the next call, once this one was answered without it.
    """

    path: str
    instead: str = ""
    for_good: bool = False


def refused_field(words: ProviderWords, refusal: UpstreamRefused) -> RefusedField | None:
    """Return the field that a refusal is about, exactly as it is written; None where it names none that the request could go without."""
    if refusal.status not in _STATUSES:
        return None
    rows = builtin_field_refusals()
    named = rows.named(words.text, refusal.param or "", words.quotes)
    if not named:
        return None
    fields = [*_paths(words.fields), *_message_paths(words.fields, rows.of_messages)]
    for one in named:
        name = _NUMBER.sub("[]", one.name)
        path = _path_named(name, fields) or next(
            (path for root in rows.roots if (path := _path_named(name.removeprefix(f"{root}."), fields))), ""
        )
        if not path and one.camel:
            path = _path_named(_HUMP.sub(lambda hump: f"_{hump[1].lower()}", one.name), fields)
        name = path.rpartition(".")[2]
        if path and name not in rows.keep:
            lasts = one.for_good and (one.instead or name not in rows.never_learned)
            own = {*path.replace("[]", "").split("."), one.instead}
            return RefusedField(
                path,
                one.instead,
                bool(lasts) and not words.is_value(name) and not words.is_about_relation(own),
            )
    return None


def _path_named(name: str, paths: list[str]) -> str:
    """Return the path that a refusal names: the whole of it, or its last name where one field alone is called so; empty for none."""
    if name in paths:
        return name
    ends = [path for path in paths if path.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else ""


def without_fields(
    wire: WireRequest, refused: Iterable[RefusedField]
) -> tuple[WireRequest, dict[str, Any], tuple[Degradation, ...]]:
    """Return the request without the fields that are refused, those fields by their paths, and the differences."""
    body = fields_of(wire.body)
    taken: dict[str, Any] = {}
    for field in refused:
        value = _take(body, field.path)
        if value is None:
            continue
        taken[field.path] = msgspec.json.decode(value)
        if field.instead and field.instead not in body:
            body[field.instead] = value
    if not taken:
        return wire, {}, ()
    names = {field.path: field.instead for field in refused}
    degraded = tuple(
        Degradation(path, asked=value, sent=names[path] or None, why="the provider refuses this field")
        for path, value in taken.items()
    )
    return msgspec.structs.replace(wire, body=msgspec.json.encode(body)), taken, degraded


def has_field(body: bytes, path: str) -> bool:
    """Whether a body has a field, by its dotted path."""
    # Without its name in it nothing is decoded.
    name = path.rpartition(".")[2].removesuffix("[]")
    return msgspec.json.encode(name) in body and _take(fields_of(body), path) is not None


def _paths(fields: Fields, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of all fields of objects, the outermost first."""
    yield from (f"{prefix}{name}" for name in fields)
    if depth < _DEEPEST:
        for name, value in fields.items():
            if bytes(memoryview(value)[:1]) == b"{":
                yield from _paths(fields_of(value), f"{prefix}{name}.", depth + 1)


def _message_paths(fields: Fields, names: Iterable[str]) -> Iterator[str]:
    """Yield the paths of those fields of Chat's messages, and of their calls, that are called so."""
    messages = _objects(fields.get("messages"))
    calls = [call for one in messages for call in _objects(one.get("tool_calls"))]
    for name in names:
        if any(name in one for one in messages):
            yield f"messages[].{name}"
        if any(name in call for call in calls):
            yield f"messages[].tool_calls[].{name}"


def _objects(value: msgspec.Raw | None) -> list[Fields]:
    """Return the objects of a list, as far as it holds nothing else."""
    try:
        return [] if value is None else msgspec.json.decode(value, type=list[Fields])
    except (msgspec.MsgspecError, RecursionError):
        return []


def _take(fields: Fields, path: str) -> msgspec.Raw | None:
    """Take a field out of its object, and every object that is empty without it; return its value, the first of a list's."""
    name, _, rest = path.partition(".")
    if name.endswith("[]"):
        return _take_of_each(fields, name[:-2], rest)
    if name not in fields:
        return None
    if not rest:
        return fields.pop(name)
    inner = fields_of(fields[name])
    value = _take(inner, rest)
    if value is not None and inner:
        fields[name] = msgspec.Raw(msgspec.json.encode(inner))
    elif value is not None:
        del fields[name]
    return value


def _take_of_each(fields: Fields, name: str, path: str) -> msgspec.Raw | None:
    """Take a field out of each object of a list; return the first value."""
    objects = _objects(fields.get(name))
    found = [value for value in (_take(one, path) for one in objects) if value is not None]
    if not found:
        return None
    fields[name] = msgspec.Raw(msgspec.json.encode(objects))
    return found[0]
