"""One answer out of one text: which value it is, what is said of the way there, and which texts give none."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.structured import checker, extract, extract_repair, extract_strict
from bardo.values.errors import InvalidRequest
from structured.same import same

pytestmark = pytest.mark.each_python

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ANA = {"name": "Ana", "age": 3}
INTEGERS = {"type": "array", "items": {"type": "integer"}}
MOOD = {"enum": ["positive", "negative"]}


def one(kind: Any) -> dict[str, Any]:
    """Return the schema of an object with the one member `v`."""
    return {"type": "object", "properties": {"v": kind}, "required": ["v"], "additionalProperties": False}


FOUND: dict[str, tuple[str, Any, Any]] = {
    "fence": ('Here you are:\n```json\n{"name": "Ana", "age": 3}\n```\nAnything else?', PERSON, ANA),
    "tilde fence": ('~~~\n{"name": "Ana", "age": 3}\n~~~', PERSON, ANA),
    "quoted fence": ('> ```\n> {"name": "Ana",\n> "age": 3}\n> ```', PERSON, ANA),
    "braces in prose": ('The set {1, 2} gives {"name": "Ana", "age": 3}, as {that} says [1].', PERSON, ANA),
    "thinking with a draft": ('<think>{"name": "Bo", "age": 1}</think>{"name": "Ana", "age": 3}', PERSON, ANA),
    "begin mark eaten": ('maybe {"name": "Bo", "age": 1}</think>{"name": "Ana", "age": 3}', PERSON, ANA),
    "channels": (
        '<|channel|>analysis<|message|>{"name": "Bo", "age": 1}<|end|><|start|>assistant'
        '<|channel|>final<|message|>{"name": "Ana", "age": 3}<|return|>',
        PERSON,
        ANA,
    ),
    "the last that conforms": (
        '{"name": "Bo", "age": 1} then {"name": "Ana", "age": 3} then {"debug": 1}',
        PERSON,
        ANA,
    ),
    "lines as an array": ("[1]\n[2]", {"type": "array", "items": INTEGERS}, [[1], [2]]),
    "a key around it": ('{"answer": {"name": "Ana", "age": 3}}', PERSON, ANA),
    "a tool call around it": (
        '{"id": "1", "name": "f", "arguments": "{\\"name\\": \\"Ana\\", \\"age\\": 3}"}',
        PERSON,
        ANA,
    ),
    "JSON in a string": ('"{\\"name\\": \\"Ana\\", \\"age\\": 3}"', PERSON, ANA),
    "escaped once too often": ('{\\"name\\": \\"Ana\\", \\"age\\": 3}', PERSON, ANA),
    "first brace missing": ('"name": "Ana", "age": 3}', PERSON, ANA),
    "trailing comma": ('{"name": "Ana", "age": 3,}', PERSON, ANA),
    "inner object of a broken one": (
        '{"v": {"v": {"v": 1}},}',
        {"type": "object", "properties": {"v": {"type": "object"}}, "required": ["v"]},
        {"v": {"v": {"v": 1}}},
    ),
    "Python": ("{'v': (1, 2, None)}", one({"type": "array"}), {"v": [1, 2, None]}),
    "a call with names": ("Person(name='Ana', age=3)", PERSON, ANA),
    "Mongo": ('{"name": ObjectId("5f"), "age": NumberLong(3)}', PERSON, {"name": "5f", "age": 3}),
    "quotes inside": ('{"v": "he said "hi", then left"}', one({"type": "string"}), {"v": 'he said "hi", then left'}),
    "code inside": ('{"v": "x = {"a": "b"}"}', one({"type": "string"}), {"v": 'x = {"a": "b"}'}),
    "a Windows path": ('{"v": "C:\\Users\\dana"}', one({"type": "string"}), {"v": "C:\\Users\\dana"}),
    "a lone surrogate": ('{"v": "\\ud800!"}', one({"type": "string"}), {"v": "\ufffd!"}),
    "a pair in repaired text": ('{"v": "\\ud83d\\ude00",}', one({"type": "string"}), {"v": "\U0001f600"}),
    "not a number": ('{"v": NaN}', one({"type": ["number", "null"]}), {"v": None}),
    "too large a float": ('{"v": 1e999}', one({"type": ["number", "null"]}), {"v": None}),
    "a big integer": (
        '{"v": 123456789012345678901234567890}',
        one({"type": "integer"}),
        {"v": 123456789012345678901234567890},
    ),
    "hexadecimal": ('{"v": 0xFF}', one({"type": "integer"}), {"v": 255}),
    "a number in quotes": ('{"v": "42"}', one({"type": "integer"}), {"v": 42}),
    "an integer for a string": ('{"v": 42}', one({"type": "string"}), {"v": "42"}),
    "thousands": ('{"v": 1,000}', one({"type": "integer"}), {"v": 1000}),
    "money": ('{"v": $19.99}', one({"type": "number"}), {"v": 19.99}),
    "a union that fits as it stands": ('{"v": "42"}', one({"type": ["integer", "string"]}), {"v": "42"}),
    "behind a reference": (
        '{"v": "42"}',
        {"$defs": {"i": {"type": "integer"}}, **one({"$ref": "#/$defs/i"})},
        {"v": 42},
    ),
    "YAML": ("name: Ana\nage: 3", PERSON, ANA),
    "YAML, nested": ("v:\n  - 1\n  - 2", one(INTEGERS), {"v": [1, 2]}),
    "TOML": ('name = "Ana"\nage = 3', PERSON, ANA),
    "bold keys": ("**name**: Ana\n**age**: 3", PERSON, ANA),
    "a table": ("| name | age |\n|---|---|\n| Ana | 3 |", {"type": "array", "items": PERSON}, [ANA]),
    "tags": ("<person><name>Ana</name><age>3</age></person>", PERSON, ANA),
    "a number alone": ("**42**", {"type": "integer"}, 42),
    "a word of a list": ("positive", MOOD, "positive"),
    "null": ("null", {"type": ["object", "null"]}, None),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_value_is_found(name: str) -> None:
    text, schema, wanted = FOUND[name]
    found = extract(text, schema)
    assert found.error is None, found.message
    assert same(found.value, wanted)


NOT_FOUND: dict[str, tuple[str, Any, str]] = {
    "a refusal in words": ("I'm sorry, but [policy 4.2] forbids {this}.", PERSON, "no_json"),
    "nothing": ("", PERSON, "no_json"),
    "an empty fence": ("```json\n```", PERSON, "no_json"),
    "only a draft in thinking": ('<think>{"name": "Ana", "age": 3}', PERSON, "no_json"),
    "a member too many": ('{"name": "Ana", "age": 3, "x": 1}', PERSON, "invalid"),
    "a member missing": ('{"name": "Ana"}', PERSON, "invalid"),
    "arithmetic": ('{"v": 2+3}', one({"type": "number"}), "invalid"),
    "a percentage": ('{"v": 50%}', one({"type": "number"}), "invalid"),
    "a fraction for an integer": ('{"v": "3.7"}', one({"type": "integer"}), "invalid"),
    "0 for false": ('{"v": 0}', one({"type": "boolean"}), "invalid"),
    "a word like one of the list": ('{"v": "not positive"}', one(MOOD), "invalid"),
    "a word in other letters": ('{"v": "Positive"}', one(MOOD), "invalid"),
    "an inner object of a broken one": (
        '{"name": "Ana", "age": old, "friend": {"name": "Bo", "age": 5}}',
        {**PERSON, "additionalProperties": True},
        "invalid",
    ),
    "an example before a cut answer": ('Like {"name": "X", "age": 1}:\n{"name": "Ana", "ag', PERSON, "truncated"),
    "a string that was cut": ('{"age": 3, "name": "An', PERSON, "truncated"),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_a_value_that_would_be_a_guess_is_an_error(name: str) -> None:
    text, schema, code = NOT_FOUND[name]
    found = extract(text, schema)
    assert found.error == code, found
    assert found.message


def test_an_error_names_the_path_and_what_is_wrong_there() -> None:
    found = extract('{"people": [{"name": "Ana", "age": "old"}]}', {"properties": {"people": {"items": PERSON}}})
    assert (found.error, found.path, found.failures[0].keyword) == ("invalid", "/people/0/age", "type")
    assert '"old"' in found.failures[0].message
    assert "/people/0/age" in found.message


def test_what_was_done_on_the_way_is_told() -> None:
    found = extract("{'answer': {'name': 'Ana', 'age': '3'}}", PERSON)
    assert (found.value, found.repaired, found.unwrapped, found.coerced) == (ANA, True, ("answer",), ("/age",))
    assert found.warnings == ("repaired", "coerced", "unwrapped")


def test_a_null_for_a_number_that_is_not_finite_is_told() -> None:
    assert extract('{"v": 1e999}', one({"type": ["number", "null"]})).coerced == ("/v",)


def test_a_cut_answer_gives_what_it_holds_and_says_that_it_was_cut() -> None:
    found = extract(
        '{"name": "Ana", "age": 3, "bio": "She wro', {**PERSON, "additionalProperties": True, "required": ["bio"]}
    )
    assert (found.error, found.truncated, found.value["name"]) == ("truncated", True, "Ana")


def test_only_a_missing_brace_is_a_warning_unless_the_provider_says_it_was_cut() -> None:
    text = '{"name": "Ana", "age": 3'
    assert (extract(text, PERSON).error, extract(text, PERSON).truncated) == (None, True)
    assert extract(text, PERSON, cut=True).error == "truncated"


def test_a_refusal_is_the_providers_word() -> None:
    found = extract('{"name": "Ana", "age": 3}', PERSON, refused=True)
    assert (found.error, found.value) == ("refusal", None)


def test_markup_is_left_alone_where_the_reasoning_is_already_out() -> None:
    text = 'As <think> says: {"name": "Ana", "age": 3}'
    assert extract(text, PERSON).error == "no_json"
    assert extract(text, PERSON, reasoning_removed=True).value == ANA


def test_text_that_begins_as_json_may_speak_of_markup() -> None:
    text = '{"v": "</think>", "w": "<think>"}'
    assert extract(text, {"type": "object"}).value == {"v": "</think>", "w": "<think>"}


@pytest.mark.parametrize("text", ['{"name": "Ana", "age": 3}', 'Sure: {"name": "Ana", "age": 3}. Bye.'])
def test_sound_json_needs_no_repair(text: str) -> None:
    found = extract_strict(text, PERSON)
    assert found is not None
    assert (found.value, found.warnings) == (ANA, ())


@pytest.mark.parametrize("text", ['{"name": "Ana", "age": 3,}', '{"name": "Ana"}', '{x} {"name": "Ana", "age": 3}'])
def test_whatever_else_is_left_to_the_second_step(text: str) -> None:
    assert extract_strict(text, PERSON) is None
    assert extract_repair(text, checker(PERSON)) == extract(text, PERSON)


def test_a_schema_that_is_none_is_the_callers_error() -> None:
    with pytest.raises(InvalidRequest, match="not a JSON Schema") as caught:
        extract("{}", {"type": 5})
    assert caught.value.param == "schema"
