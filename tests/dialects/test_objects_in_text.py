"""Whether a text is one JSON object is known of long ones without reading their values, and says the same."""

from __future__ import annotations

import json

import pytest

from bardo.dialects.wire import is_object

LONG = ", ".join(f'"name{place}": [{place}, "text"]' for place in range(5_000))
ENDINGS = {
    "whole": ('{"a": 1}', True),
    "with space": (' \n{"a": 1} ', True),
    "cut": ('{"a": 1', False),
    "list": ("[1]", False),
    "more behind it": ('{"a": 1} {}', False),
    "no number": ('{"a": 01}', False),
    "number beyond a double": ('{"a": 1e999}', False),
    "surrogate": ('{"a": "\ud800"}', False),
    "deep": ('{"a": ' + "[" * 20_000 + "]" * 20_000 + "}", False),
}


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("name", ENDINGS)
def test_an_object_is_told_from_all_else(name: str, long: bool) -> None:
    text, expected = ENDINGS[name]
    assert is_object(text.replace('"a":', f'{LONG}, "a":') if long else text) is expected


def test_what_is_an_object_can_be_read() -> None:
    text = f'{{{LONG}, "a": {"9" * 400}}}'
    assert is_object(text) is isinstance(json.loads(text), dict)
