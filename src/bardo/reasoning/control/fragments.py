"""JSON fragments of wire forms: filling them in, and laying them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SWITCH = "enable_thinking"
"""The switch of most chat templates."""


def fill(
    fragment: Mapping[str, Any],
    *,
    effort: str | None = None,
    budget: int | None = None,
    switches: Sequence[str] = (SWITCH,),
) -> dict[str, Any]:
    """Return a fragment with its level, budget and switch in place; of several switches each is turned."""
    values = {"$effort": effort, "$budget": budget}
    filled: dict[str, Any] = _filled(dict(fragment), values, switches)
    return filled


def _filled(value: Any, values: Mapping[str, Any], switches: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {
            one: _filled(inner, values, switches)
            for name, inner in value.items()
            for one in (switches if name == "$switch" else (name,))
        }
    return values.get(value, value) if isinstance(value, str) else value


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the fields of `over` laid into it, object by object."""
    result = dict(base)
    for name, value in over.items():
        own = result.get(name)
        result[name] = merged(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return result


def placed(path: str, value: Any) -> dict[str, Any]:
    """Return `value` at a dotted path, in objects of its own."""
    first, _, rest = path.partition(".")
    return {first: placed(rest, value) if rest else value}


def at(fields: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a dotted path, or None."""
    found: Any = fields
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def overwritten(own: Mapping[str, Any], fields: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Give what `fields` would replace in the caller's `own` fields: the path, the caller's value and the other one."""
    for name, value in fields.items():
        before = own.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            yield from overwritten(before, value, f"{at}{name}.")
        elif before is not None and before != value:
            yield f"{at}{name}", before, value
