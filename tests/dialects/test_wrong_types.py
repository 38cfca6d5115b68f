"""A field of the wrong type, wherever it stands in a request, is the client's fault: InvalidRequest, never another exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.dialects.shared.json_values import take
from bardo.values.errors import CallerError, InvalidRequest
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


def is_told(refusal: CallerError, at: tuple[Any, ...]) -> bool:
    """Whether a refusal names the place, or what is around or inside it: without its type a tool is one with another field."""
    if refusal.message.startswith("the body "):
        return True
    place = "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in at).removeprefix(".")
    names = (place, place.removesuffix(".type"))
    param = getattr(refusal, "param", None) or "nothing"
    return any(one.startswith(param) or param.startswith(one) for one in names)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ((int, float), "top_p must be a number, not a string"),
        ((str, list), "top_p must be a string or an array, not a number"),
    ],
)
def test_a_kind_of_value_is_named_once(kind: tuple[type, ...], words: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{words}$"):
        take("x" if float in kind else 1, kind, "top_p")


@pytest.mark.parametrize("name", FULL_REQUESTS)
def test_a_full_request_is_read(name: str) -> None:
    assert dialect(name).decode_request(json.dumps(FULL_REQUESTS[name]).encode(), Arrival(model="m")).messages


@pytest.mark.parametrize("name", FULL_REQUESTS)
def test_a_wrong_type_anywhere_is_read_or_refused(name: str) -> None:
    decode = dialect(name).decode_request
    count, untold = 0, list[str]()
    for at in paths(FULL_REQUESTS[name]):
        for wrong in WRONG:
            body = json.dumps(put(FULL_REQUESTS[name], at, wrong)).encode()
            count += 1
            try:
                decode(body, Arrival(model="m"))
            except CallerError as refusal:
                untold += [] if is_told(refusal, at) else [f"{at} = {wrong!r}: {refusal.message}"]
            except Exception as mistake:
                raise AssertionError(f"{at} = {wrong!r}: {type(mistake).__name__}") from mistake
    assert count > 300
    assert not untold
