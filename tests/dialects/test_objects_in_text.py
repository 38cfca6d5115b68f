"""Whether a text is one JSON object is known of long ones without reading their values, and says the same."""

from __future__ import annotations

import json

import pytest

from bardo.dialects.gemini.parts import call_part
from bardo.dialects.gemini.wire import RAW_ARGUMENTS
from bardo.dialects.shared.json_values import encode_json, is_object, object_in
from bardo.values.blocks import ToolCallBlock

LONG = ", ".join(f'"name{place}": [{place}, "text"]' for place in range(5_000))
ENDINGS = {
    "whole": ('{"a": 1}', True),
    "with space": (' \n{"a": 1} ', True),
    "cut": ('{"a": 1', False),
    "list": ("[1]", False),
    "more behind it": ('{"a": 1} {}', False),
    "no number": ('{"a": 01}', False),
    "surrogate": ('{"a": "\ud800"}', False),
    "deep": ('{"a": ' + "[" * 20_000 + "]" * 20_000 + "}", False),
}


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("name", ENDINGS)
def test_an_object_is_told_from_all_else(name: str, long: bool) -> None:
    text, expected = ENDINGS[name]
    assert is_object(text.replace('"a":', f'{LONG}, "a":') if long else text) is expected


def test_a_number_beyond_a_double_is_no_value() -> None:
    text = f'{{{LONG}, "a": 1e999}}'
    assert not is_object('{"a": 1e999}')
    assert is_object(text)
    assert object_in(text) is None
    assert object_in(text.replace("1e999", "1e99")) == json.loads(text.replace("1e999", "1e99"))


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize(("ending", "malformed"), [('"a": 1}', False), ('"a": 1', True)], ids=["whole", "cut"])
def test_long_arguments_are_written_for_geminis_clients_as_short_ones_are(
    long: bool, ending: str, malformed: bool
) -> None:
    before = LONG if long else '"x": [1]'
    arguments = f"{{{before},\n {ending}"
    call = ToolCallBlock(id="c", name="f", arguments=arguments)
    part, raw = call_part(call, ())
    written = encode_json(part["functionCall"]["args"])
    assert b"\n" not in written
    assert json.loads(written) == ({RAW_ARGUMENTS: arguments} if malformed else json.loads(arguments))
    assert raw is malformed
