"""Send a request without a field that its provider refused: found by the words of the refusal, left out of the body, and reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.values.degradation import Degradation
from bardo.values.errors import UpstreamRefused
from bardo.values.wire import WireRequest

_STATUSES = frozenset({400, 422, 501})
_DEEPEST = 4
_NUMBER = re.compile(r"\[\d+\]|\.\d+(?=\.)")


class RefusedField(msgspec.Struct, frozen=True):
    """A field of the provider's body, by its dotted path, that is not taken there; `instead` is its other name, empty for none.

    `messages[].name` is a field of every message. `for_good`: whatever its value is.
    """

    path: str
    instead: str = ""
    for_good: bool = False


def refused_field(body: bytes, refusal: UpstreamRefused) -> RefusedField | None:
    """Return the field of `body` that a refusal is about; None where it names none that the request could go without."""
    if refusal.status not in _STATUSES:
        return None
    rows = builtin_field_refusals()
    said = f"{refusal.message} {detail_text(refusal.detail)}"
    named = rows.named(said, refusal.param or "")
    if not named:
        return None
    sent = msgspec.json.decode(body)
    fields = [*_fields(sent), *_message_fields(sent, rows.of_messages)]
    kept = {_plain(name) for name in rows.keep}
    for one in named:
        asked = _plain(one.name)
        # The whole path, or the name alone: `generation_config.topK` is said as `topK`.
        path = next((path for path in fields if _plain(path) == asked), "")
        path = path or next((path for path in fields if _plain(path.rpartition(".")[2]) == asked), "")
        if path and _plain(path.rpartition(".")[2]) not in kept:
            return RefusedField(path, one.instead, one.for_good)
    return None


def without_fields(
    wire: WireRequest, refused: Iterable[RefusedField]
) -> tuple[WireRequest, dict[str, Any], tuple[Degradation, ...]]:
    """Return the request without the fields that are refused, those fields by their paths, and the differences."""
    body = msgspec.json.decode(wire.body)
    taken: dict[str, Any] = {}
    for field in refused:
        value = _take(body, field.path)
        if value is None:
            continue
        taken[field.path] = value
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


def _fields(body: Any, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of all fields of objects, the outermost first."""
    if not isinstance(body, dict) or depth > _DEEPEST:
        return
    yield from (f"{prefix}{name}" for name in body)
    for name, value in body.items():
        yield from _fields(value, f"{prefix}{name}.", depth + 1)


def _message_fields(body: Any, names: Iterable[str]) -> Iterator[str]:
    """Yield the paths of those fields of Chat's messages, and of their calls, that are called so."""
    messages = [one for one in _listed(body, "messages") if isinstance(one, dict)]
    calls = [call for one in messages for call in _listed(one, "tool_calls") if isinstance(call, dict)]
    for name in names:
        if any(name in one for one in messages):
            yield f"messages[].{name}"
        if any(name in call for call in calls):
            yield f"messages[].tool_calls[].{name}"


def _listed(body: Any, name: str) -> list[Any]:
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, list) else []


def _take(body: Any, path: str) -> Any:
    """Take a field out of its object, and every object that is empty without it; return its value, the first of a list's."""
    name, _, rest = path.partition(".")
    if name.endswith("[]"):
        taken = [_take(one, rest) for one in _listed(body, name[:-2])]
        return next((one for one in taken if one is not None), None)
    if not isinstance(body, dict) or name not in body:
        return None
    if not rest:
        return body.pop(name)
    value = _take(body[name], rest)
    if value is not None and not body[name]:
        del body[name]
    return value


def _plain(name: str) -> str:
    """Return a name without the differences between snake and camel case, and without a place in a list."""
    return _NUMBER.sub("[]", name).replace("_", "").lower()


def detail_text(detail: Any) -> str:
    """Return a provider's error object as JSON; empty where there is none."""
    try:
        return msgspec.json.encode(detail).decode() if detail else ""
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return ""
