"""Requests whose control says what their client said, as the engine's does where the model takes just that; fields that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bardo.values.request import Control, Request


def as_told(request: Request) -> Request:
    """Return the request with the client's own words of thinking as its control."""
    fields = request.reasoning.raw_fields if request.reasoning is not None else {}
    return msgspec.structs.replace(request, control=Control(fields=fields))


def with_unheard_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield a JSON value with a field that nobody knows, once for each object in it, beside where that object stands."""
    if isinstance(value, dict):
        yield path, {**value, "unheard_of": 1}
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for place, changed in with_unheard_of(inner, (*path, key)):
            copy = [*value] if isinstance(value, list) else {**value}
            copy[key] = changed
            yield place, copy
