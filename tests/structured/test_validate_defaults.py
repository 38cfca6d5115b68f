"""The last step before an error: declared defaults, told one by one; and what a model hears before that."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.structured import Extraction, extract, retry_message, with_defaults, worth_retrying

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "level": {"enum": ["low", "high"], "default": "low"},
        "note": {"type": "string"},
        "size": {"type": "integer"},
        "inner": {"$ref": "#/$defs/inner"},
    },
    "required": ["level", "size"],
    "additionalProperties": False,
    "$defs": {"inner": {"type": "object", "properties": {"n": {"type": "integer", "default": 0}}, "required": ["n"]}},
}


def settled(text: str) -> Extraction:
    return with_defaults(extract(text, SCHEMA), SCHEMA)


MENDED: dict[str, tuple[str, Any, tuple[str, ...], tuple[str, ...]]] = {
    "missing": ('{"size": 1}', {"level": "low", "size": 1}, ("/level",), ()),
    "not in the list": ('{"size": 1, "level": "mid"}', {"level": "low", "size": 1}, ("/level",), ()),
    "optional and bad": ('{"size": 1, "level": "high", "note": 1.5}', {"level": "high", "size": 1}, (), ("/note",)),
    "unknown": ('{"size": 1, "level": "high", "x": 1}', {"level": "high", "size": 1}, (), ("/x",)),
    "inside": (
        '{"size": 1, "level": "high", "inner": {}}',
        {"level": "high", "size": 1, "inner": {"n": 0}},
        ("/inner/n",),
        (),
    ),
}


@pytest.mark.parametrize("name", MENDED)
def test_bad_members_take_declared_defaults_or_are_left_out(name: str) -> None:
    text, value, defaulted, dropped = MENDED[name]
    found = settled(text)
    assert (found.error, found.value, found.defaulted, found.dropped) == (None, value, defaulted, dropped)


@pytest.mark.parametrize("text", ['{"level": "low"}', '{"level": "low", "size": "big"}', "no", '{"size": 1.5}'])
def test_a_member_that_must_be_there_and_has_no_default_stays_an_error(text: str) -> None:
    assert settled(text) == extract(text, SCHEMA)
    assert settled(text).error is not None


def test_the_value_that_was_extracted_is_not_changed() -> None:
    before = extract('{"size": 1}', SCHEMA)
    assert with_defaults(before, SCHEMA).value != before.value
    assert before.value == {"size": 1}


def test_a_default_that_breaks_its_own_schema_does_not_help() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}, "required": ["a"]}
    assert with_defaults(extract("{}", schema), schema).error == "invalid"


LEFT_ALONE: dict[str, tuple[str, dict[str, Any], str]] = {
    "no JSON": ("I cannot say.", {"finish": "stop"}, "no_json"),
    "no text": ("", {}, "no_json"),
    "cut in a value that has a default": ('{"a": "hi', {"finish": "length"}, "truncated"),
    "cut behind a number": ('{"a": 1', {"finish": "length"}, "truncated"),
    "an open string at the end of a finished reply": ('{"a": "hi', {"finish": "stop"}, "truncated"),
}


@pytest.mark.parametrize(("text", "ended", "code"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_defaults_do_not_make_an_answer_of_no_json_or_of_a_cut_one(text: str, ended: dict[str, Any], code: str) -> None:
    rules: tuple[dict[str, Any], ...] = (
        {"properties": {"a": {"default": 1}}, "required": ["a"]},
        {"properties": {"a": {}}},
        {"default": {}},
    )
    for schema in rules:
        found = extract(text, {"type": "object", **schema}, **ended)
        assert found.error == code
        assert with_defaults(found, {"type": "object", **schema}) is found


def test_a_refusal_takes_no_defaults() -> None:
    schema: dict[str, Any] = {"default": {}}
    found = extract("no", schema, refused=True)
    assert with_defaults(found, schema) is found
    assert not worth_retrying(found)


def test_a_good_answer_is_left_alone() -> None:
    found = extract('{"size": 1, "level": "low"}', SCHEMA)
    assert with_defaults(found, SCHEMA) is found
    assert not worth_retrying(found)


def test_the_retry_names_what_was_wrong_and_where() -> None:
    found = extract('{"size": "big", "level": "low"}', SCHEMA)
    said = retry_message(found, SCHEMA)
    assert worth_retrying(found)
    assert "/size" in said
    assert '"big" is not of type "integer"' in said
    assert '"additionalProperties":false' in said


def test_the_schema_is_not_repeated_where_it_is_enforced() -> None:
    found = extract('{"size": 1', SCHEMA, cut=True)
    said = retry_message(found, SCHEMA, with_schema=False)
    assert "more briefly" in said
    assert "additionalProperties" not in said


def test_the_issues_of_a_type_are_told() -> None:
    said = retry_message(extract('{"size": 1, "level": "low"}', SCHEMA), SCHEMA, issues=("size 1 out of range [2,3]",))
    assert "makes no sense" in said
    assert "- size 1 out of range [2,3]" in said
