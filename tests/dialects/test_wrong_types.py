"""A field of the wrong type, wherever it stands in a request, is the client's fault: InvalidRequest, never another exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.values.errors import CallerError
from bardo.values.wire import Arrival
from support.full_requests import FULL_REQUESTS

WRONG: tuple[Any, ...] = (None, True, -1, 1.5, 10**30, "x", "\ud800", [], [None], [[]], [{}], {}, {"type": []})


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value in a JSON value."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from paths(inner, (*at, name))


def put(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """Return a JSON value with another value at one place."""
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = put(copy[at[0]], at[1:], new)
    return copy


@pytest.mark.parametrize("name", FULL_REQUESTS)
def test_a_full_request_is_read(name: str) -> None:
    assert dialect(name).decode_request(json.dumps(FULL_REQUESTS[name]).encode(), Arrival(model="m")).messages


@pytest.mark.parametrize("name", FULL_REQUESTS)
def test_a_wrong_type_anywhere_is_read_or_refused(name: str) -> None:
    decode = dialect(name).decode_request
    count = 0
    for at in paths(FULL_REQUESTS[name]):
        for wrong in WRONG:
            body = json.dumps(put(FULL_REQUESTS[name], at, wrong)).encode()
            count += 1
            try:
                decode(body, Arrival(model="m"))
            except CallerError:
                continue
            except Exception as mistake:
                raise AssertionError(f"{at} = {wrong!r}: {type(mistake).__name__}") from mistake
    assert count > 300
