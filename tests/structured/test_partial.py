"""Partial objects only grow, in any cut of the text, and end as what the whole text says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.structured import PartialJson
from structured.same import same
from structured.test_extract_laws import OBJECTS

pytestmark = pytest.mark.each_python


def fed(partial: PartialJson, *pieces: str) -> list[Any]:
    return [value for piece in pieces for value in partial.feed(piece)] + partial.finish()


def letters(text: str, partial: PartialJson | None = None) -> list[Any]:
    return fed(partial or PartialJson(), *text)


def grown(before: Any, after: Any) -> bool:
    """Whether one value is the other with something added at its ends."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and grown(inner, after[key]) for key, inner in before.items()
        )
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(grown, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return same(before, after)


@given(OBJECTS, st.booleans(), st.data())
def test_every_cut_only_grows_and_ends_as_the_whole(
    value: dict[str, Any], strings_grow: bool, data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 1])))
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    partial = PartialJson(strings_grow=strings_grow)
    given_values = fed(partial, *pieces)
    kept = json.dumps(given_values)
    assert all(map(grown, given_values, given_values[1:]))
    assert partial.done
    assert same(given_values[-1] if given_values else None, value)
    assert json.dumps(given_values) == kept


def test_what_was_given_does_not_change_afterwards() -> None:
    partial = PartialJson()
    (first,) = partial.feed('{"a": [1, ')
    partial.feed('2], "b": 3}')
    assert first == {"a": [1]}


def test_a_scalar_appears_once_it_is_complete() -> None:
    assert letters('{"n": 125, "t": true, "s": "neg"}') == [
        {"n": 125},
        {"n": 125, "t": True},
        {"n": 125, "t": True, "s": "neg"},
    ]


def test_a_number_at_the_end_of_a_cut_text_is_not_shown() -> None:
    assert letters('{"a": 1, "n": 12') == [{"a": 1}]


def test_free_text_grows_where_it_is_asked_for() -> None:
    partial = PartialJson(strings_grow=True)
    assert fed(partial, '{"a": ["x', "y", '"]}') == [{"a": ["x"]}, {"a": ["xy"]}]


CLOSED: dict[str, Any] = {
    "a list of words": {"enum": ["negative", "neutral"]},
    "a date": {"type": "string", "format": "date"},
    "a pattern": {"type": "string", "pattern": "^a"},
    "not a string at all": {"type": "integer"},
    "behind a reference": {"$ref": "#/$defs/word"},
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_word_of_a_list_never_grows(name: str) -> None:
    schema = {"properties": {"w": CLOSED[name]}, "$defs": {"word": {"const": "negative"}}}
    assert letters('{"w": "negative"}', PartialJson(schema, strings_grow=True)) == [{"w": "negative"}]


def test_an_escape_in_pieces_is_one_letter() -> None:
    assert letters(r'{"a": "\ud83d\ude00\n\u00e9\"\ud800x"}') == [{"a": '\U0001f600\n\u00e9"\ufffdx'}]


def test_prose_and_fences_before_the_answer_are_passed_over() -> None:
    partial = PartialJson()
    assert fed(partial, 'In {this} style:\n```json\n{"a"', ": 1}", "\n``` and {more}") == [{"a": 1}]
    assert partial.done


BROKEN: dict[str, tuple[str, Any]] = {
    "a key without quotes": ('{"a": 1, b: 2}', {"a": 1}),
    "a wrong closer": ('{"a": [1}', {"a": [1]}),
    "a missing comma": ('{"a": 1 "b": 2}', {"a": 1}),
    "a key that comes twice": ('{"a": 1, "a": 2}', {"a": 1}),
    "a word that is none": ('{"a": 1, "b": maybe}', {"a": 1}),
    "a bad escape": ('{"a": 1, "b": "\\uzzzz"}', {"a": 1}),
    "too deep": ('{"a": 1, "b": ' + "[" * 500, None),
    "a number without end": ('{"a": 1, "b": ' + "9" * 10_000, {"a": 1}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_text_ends_the_growth_and_takes_nothing_back(name: str) -> None:
    text, last = BROKEN[name]
    partial = PartialJson()
    values = letters(text, partial)
    assert partial.broken
    assert all(map(grown, values, values[1:]))
    assert last is None or values[-1] == last


def test_the_open_path_says_what_is_not_complete_yet() -> None:
    partial = PartialJson()
    partial.feed('{"a": 1, "b": [{"c": 2}, {"d": "x')
    assert partial.open_path == ("b", 1, "d")
    assert not partial.done


def test_numbers_json_has_no_word_for_are_null() -> None:
    assert letters('{"a": [NaN, 1e999, -Infinity]}')[-1] == {"a": [None, None, None]}


def test_the_live_value_grows_in_place() -> None:
    partial = PartialJson()
    assert partial.value is None
    assert partial.grow('{"a": 1,')
    live = partial.value
    assert not partial.grow(' "b"')
    partial.grow(": 2}")
    assert live == {"a": 1, "b": 2}


@pytest.mark.parametrize("text", ['{"a": "Ada \\ux": {"b": {"c": 1}}', '[["Ada \\u12g', '{"a": "x\\uzz {\\"b\\": 1}'])
def test_a_string_that_breaks_while_it_grows_ends_in_the_same_value_in_any_cut(text: str) -> None:
    whole = fed(PartialJson(strings_grow=True), text)
    assert [text, letters(text, PartialJson(strings_grow=True))[-1]] == [text, whole[-1]]
