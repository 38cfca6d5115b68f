"""Take a value out of the shell a model put around it: a key, a list of one, a tool call, JSON inside a string."""

from __future__ import annotations

from collections.abc import Container, Iterator

from bardo.structured.extraction import Json
from bardo.structured.scanning import loads

_MAX_SHELLS = 4
_ARGUMENTS = ("arguments", "parameters", "input", "args", "kwargs")
_TOOL = frozenset(
    {"name", "tool", "tool_name", "function", "function_name", "recipient_name", "action", "type", "id", "call_id"}
)

Unwrapped = tuple[Json, tuple[str, ...]]


def forms(value: Json, known: Container[str]) -> Iterator[Unwrapped]:
    """Give the value as it stands, then what is left after each shell, with the names of the shells taken off.

    A single key that is the schema's own (`known`) is no shell, whatever is wrong with its value.
    """
    taken: tuple[str, ...] = ()
    yield value, taken
    for _ in range(_MAX_SHELLS):
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in known:
            return
        inner = _inside(value)
        if inner is None:
            return
        shell, value = inner
        taken = (*taken, shell)
        yield value, taken


def _inside(value: Json) -> tuple[str, Json] | None:
    if isinstance(value, str):
        return _in_string(value)
    if isinstance(value, list):
        return ("array", value[0]) if len(value) == 1 else None
    return _in_object(value) if isinstance(value, dict) else None


def _in_string(value: str) -> tuple[str, Json] | None:
    if value.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return "string", loads(value)
    except ValueError:
        return None


def _in_object(value: dict[str, Json]) -> tuple[str, Json] | None:
    if len(value) == 1:
        key = next(iter(value))
        return key, value[key]
    for key in _ARGUMENTS:
        if key in value and value.keys() - {key} <= _TOOL:
            return "tool_call", value[key]
    if isinstance(value.get("function"), dict) and value.keys() - {"function"} <= _TOOL:
        return "tool_call", value["function"]
    # The values were written into the shape of the schema itself.
    if value.get("type") == "object" and isinstance(value.get("properties"), dict):
        return "properties", value["properties"]
    return None
