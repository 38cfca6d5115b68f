"""What a caller's schema may cost: an answer is judged at once, or in a process that is ended, and never without a bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.structured import checker, extract, judging
from bardo.structured.bounds import MAX_ANSWER, MAX_PATTERN_WORK, MAX_WORK_HERE, JudgingCost
from bardo.structured.judging import TooMuchWork
from bardo.values.errors import InvalidRequest

NODE = {"anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/node", "title": "again"}]}
TWICE = {"$defs": {"node": {"type": "object", "properties": {"a": NODE}}}, "$ref": "#/$defs/node"}
MANY = {"items": {"anyOf": [{"const": number} for number in range(2_000)]}}
ENDLESS: dict[str, tuple[Any, Any]] = {
    "a lookbehind": ({"pattern": "(?<=(a+)+)b"}, "a" * 100_000),
    "a lookahead": ({"pattern": "(?=(a+)+)b"}, "a" * 100_000),
    "a lookahead within a lookahead": ({"pattern": "(?=(?=(a+)+b)a)b"}, "a" * 100_000),
    "a lookbehind in the name of a member": ({"patternProperties": {"(?<=(a+)+)b": {}}}, {"a" * 100_000: 1}),
    "a lookbehind in propertyNames": ({"propertyNames": {"pattern": "(?<=(a+)+)b"}}, {"a" * 100_000: 1}),
}


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MAX_SECONDS", 0.3)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("name", ENDLESS)
def test_a_schema_that_asks_for_too_much_ends_with_its_reason(name: str) -> None:
    schema, value = ENDLESS[name]
    assert not checker(schema).is_quick(value)
    assert not checker(schema).is_quick_for_text(json.dumps(value))
    with pytest.raises(TooMuchWork, match="more than"):
        checker(schema).accepts(value)
    found = extract(json.dumps(value), schema)
    assert found.error == "too_complex"
    assert "cannot be judged by its schema" in found.message


def test_the_process_answers_again_after_it_was_ended() -> None:
    schema = {"type": "string", "pattern": "^(?!bad)[a-z]+$"}
    with pytest.raises(TooMuchWork):
        checker(ENDLESS["a lookbehind"][0]).accepts(ENDLESS["a lookbehind"][1])
    assert checker(schema).accepts("good")
    assert not checker(schema).accepts("badly")
    (failure,) = checker({"properties": {"a/b": schema}}).failures({"a/b": "badly"})
    assert (failure.path, failure.keyword) == ("/a~1b", "pattern")


def test_both_ways_of_judging_say_the_same() -> None:
    values = [[1, 2], [1, "x"], [-1], list(range(1_990)), ["x"] * 3]
    for value in values:
        here, apart = checker(MANY), checker({**MANY, "not": {"type": "string", "pattern": "(?=z)z"}})
        assert apart.accepts(value) == here.accepts(value), value
        assert [one.path for one in apart.failures(value)] == [one.path for one in here.failures(value)], value


@pytest.mark.usefixtures("_short")
def test_a_value_whose_failures_cannot_be_told_in_time_still_does_not_conform() -> None:
    for schema, value in ((MANY, ["x"] * 5_000), (TWICE, json.loads('{"a":' * 40 + "1" + "}" * 40))):
        (failure,) = checker(schema).failures(value)
        assert "takes too long" in failure.message


def test_what_is_usual_is_judged_in_this_process() -> None:
    person = {
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": "^[A-Z].*"}, "age": {"minimum": 0}},
    }
    people = {"type": "array", "items": person}
    assert checker(people).is_quick([{"name": "Ada", "age": 36}] * 200)
    assert checker(people).is_quick_for_text(json.dumps([{"name": "Ada", "age": 36}] * 200))


def test_the_work_here_grows_with_values_alternatives_depth_and_letters() -> None:
    assert JudgingCost({}).is_small_for([0] * (MAX_WORK_HERE - 2))
    assert not JudgingCost({}).is_small_for([0] * (MAX_WORK_HERE + 2))
    assert not JudgingCost({}).is_small_for("a" * 64 * (MAX_WORK_HERE + 2))
    assert not JudgingCost({}).is_small_for({"a" * 64 * (MAX_WORK_HERE + 2): 1})
    assert not JudgingCost(MANY).is_small_for([0])
    assert JudgingCost(TWICE).is_small_for({"a": 1})
    assert not JudgingCost(TWICE).is_small_for(json.loads('{"a":' * 12 + "1" + "}" * 12))


def test_patterns_that_repeat_too_much_are_refused_with_the_reason() -> None:
    many = {"anyOf": [{"pattern": f"(a{{0,90}}){{0,90}}{number}"} for number in range(10)]}
    with pytest.raises(InvalidRequest, match=f"{MAX_PATTERN_WORK:,}"):
        checker(many)
    with pytest.raises(InvalidRequest, match=f"{MAX_PATTERN_WORK:,}"):
        checker({"patternProperties": {r"(\w{1,80}){1,40}": True}})
    assert checker({"pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[{}()*]{3}\)$"}).accepts("2026-11-29T10:00:00{(*)")


def test_a_text_that_is_too_long_for_an_answer_is_told_so() -> None:
    assert extract(" " * MAX_ANSWER + "1", True).error == "too_complex"
