"""JSON fragments: the pieces of a request body that rows hold, and how they are filled in and merged into a body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Fragment = dict[str, Any]

SWITCH = "enable_thinking"
"""The switch of most chat templates."""


def fill(
    fragment: Mapping[str, Any],
    *,
    effort: str | None = None,
    budget: int | None = None,
    switches: Sequence[str] = (SWITCH,),
) -> Fragment:
    """Return a wire form's fragment with `$effort`, `$budget` and `$switch` replaced; each of several switches is set."""
    values = {"$effort": effort, "$budget": budget}
    filled: Fragment = _filled(dict(fragment), values, switches)
    return filled


def _filled(value: Any, values: Mapping[str, Any], switches: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: _filled(inner, values, switches)
            for name, inner in value.items()
            for key in (switches if name == "$switch" else (name,))
        }
    return values.get(value, value) if isinstance(value, str) else value


def merge_fields(base: Mapping[str, Any], over: Mapping[str, Any]) -> Fragment:
    """Return `base` with the fields of `over` merged into it, object by object; where both have a value, `over` wins."""
    result = dict(base)
    for name, value in over.items():
        own = result.get(name)
        result[name] = merge_fields(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return result


def at_path(path: str, value: Any) -> Fragment:
    """Return a fragment with `value` at a dotted path."""
    for name in reversed(path.split(".")):
        value = {name: value}
    fragment: Fragment = value
    return fragment


def value_at(fields: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or None."""
    value: Any = fields
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def without_path(fields: Mapping[str, Any], path: str) -> Fragment:
    """Return the fields without the one at a dotted path, and without the objects that are empty then."""
    name, _, rest = path.partition(".")
    left = {key: value for key, value in fields.items() if key != name}
    inner = without_path(fields[name], rest) if rest and isinstance(fields.get(name), Mapping) else {}
    return {**left, name: inner} if inner else left


def overwritten(own: Mapping[str, Any], fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield what `fields` would replace in the caller's `own` fields: the path, the caller's value and the new one."""
    for name, value in fields.items():
        before = own.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            yield from overwritten(before, value, f"{prefix}{name}.")
        elif before is not None and before != value:
            yield f"{prefix}{name}", before, value


def leaves(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and the value of everything in `fields` that is no object, or an empty one."""
    for name, value in fields.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value
