"""JSON fragments: the pieces of a body that are laid into one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def laid_into(body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return `body` with `fields` laid into it, object by object; where both say something, `fields` win."""
    laid = dict(body)
    for name, value in fields.items():
        own = laid.get(name)
        laid[name] = laid_into(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return laid


def at_path(path: str, value: Any) -> dict[str, Any]:
    """Return a fragment with `value` at a dotted path."""
    for name in reversed(path.split(".")):
        value = {name: value}
    fragment: dict[str, Any] = value
    return fragment
