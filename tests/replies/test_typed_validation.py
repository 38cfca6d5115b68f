"""What is read of a model's answer, and what is said of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.planning.typed_answer import AnswerPlan
from bardo.replies.typed_validation import (
    AnswerReading,
    AnswerText,
    again_worthwhile,
    looked_at,
    provenance,
    read_closely,
    read_strictly,
    turns_to_ask_again,
    warnings,
    with_declared_defaults,
)
from bardo.structured import Failure, SchemaTarget, checker, plan
from bardo.structured.bounds import MAX_READ
from bardo.values.request import Request
from support.typed import BAD, GOOD, PLACE


def answer_for(schema: Any, provider: str = "vllm", model: str = "m") -> AnswerPlan:
    made = plan(schema, SchemaTarget(provider=provider, model=model))
    return AnswerPlan(plan=made, judge=checker(schema), request=Request(model="m", messages=()))


NATIVE = answer_for(PLACE)
GUIDED = answer_for(PLACE, "watsonx")


def read(answer: AnswerPlan, text: str, **more: Any) -> AnswerReading:
    said = AnswerText(text=text, **more)
    return read_strictly(answer, said) or read_closely(answer, said)


def text_of(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@given(st.fixed_dictionaries({"city": st.text(st.characters(exclude_categories=["Cs"])), "size": st.integers(-9, 9)}))
def test_sound_json_that_conforms_is_the_answer_as_it_stands(value: dict[str, Any]) -> None:
    found = read_strictly(NATIVE, AnswerText(text=text_of(value)))
    assert found is not None
    assert (found.verbatim, found.extraction.value, found.text) == (True, value, text_of(value))


def test_json_within_words_is_taken_out_of_them() -> None:
    found = read(GUIDED, f"Here: ```json\n{text_of(GOOD)}\n``` Bye.")
    assert (found.verbatim, msgspec.json.decode(found.text)) == (False, GOOD)
    assert [one.what for one in warnings(found)] == ["answer.text"]


def test_what_was_repaired_is_told() -> None:
    found = read(GUIDED, "{city: 'Paris', size: 3,}")
    assert (found.extraction.value, found.extraction.repaired) == (GOOD, True)
    assert provenance(GUIDED, found.extraction, attempts=1).repaired


FAILURES = {
    "no json": ("I do not know.", {}, "no_json"),
    "invalid": (text_of(BAD), {}, "invalid"),
    "truncated": ('{"city": "Par', {"cut": True}, "truncated"),
    "refusal": ("I will not.", {"refused": True}, "refusal"),
    "nothing": ("", {}, "no_json"),
}


@pytest.mark.parametrize(("text", "more", "code"), FAILURES.values(), ids=FAILURES)
def test_failures_are_told_apart_and_keep_the_text(text: str, more: dict[str, Any], code: str) -> None:
    found = read(NATIVE, text, **more)
    assert (found.extraction.error, found.extraction.text) == (code, text)
    assert again_worthwhile(found) is (code != "refusal")
    assert provenance(NATIVE, found.extraction, attempts=2).error == code


MAP = {"type": "object", "additionalProperties": {"type": "integer"}}


def test_an_answer_in_another_form_is_brought_back() -> None:
    answer = answer_for(MAP, "openai", "gpt-5")
    assert answer.plan.schema is not None
    [(name, entries)] = answer.plan.schema["properties"].items()
    key, value = entries["items"]["properties"]
    found = read(answer, text_of({name: [{key: "a", value: 1}, {key: "b", value: 2}]}))
    assert (found.extraction.value, found.verbatim) == ({"a": 1, "b": 2}, False)


def test_a_model_that_answers_in_the_callers_own_form_is_understood() -> None:
    answer = answer_for(MAP, "openai", "gpt-5")
    assert read(answer, '{"a": 1, "b": 2}').extraction.value == {"a": 1, "b": 2}
    assert read(answer, '{"a": "one"}').extraction.path == "/a"


def test_a_callers_own_look_may_find_a_value_wanting() -> None:
    found = looked_at(read(NATIVE, text_of(GOOD)), lambda _: (Failure(path="/size", message="too small"),))
    assert (found.extraction.error, found.extraction.path) == ("invalid", "/size")
    assert looked_at(read(NATIVE, text_of(GOOD)), lambda _: ()).extraction.ok


def test_asking_again_shows_the_answer_and_what_was_wrong() -> None:
    own, told = turns_to_ask_again(GUIDED, read(GUIDED, text_of(BAD)))
    assert (own.role, own.text) == ("assistant", text_of(BAD))
    assert told.role == "user"
    assert "/size" in told.text
    assert '"city"' in told.text
    assert [turn.role for turn in turns_to_ask_again(GUIDED, read(GUIDED, "  "))] == ["user"]


def test_where_the_schema_is_enforced_it_is_not_told_again() -> None:
    assert '"properties"' not in turns_to_ask_again(NATIVE, read(NATIVE, text_of(BAD)))[1].text


def test_declared_defaults_stand_in_and_others_are_not_invented() -> None:
    properties = {**PLACE["properties"], "size": {"type": "integer", "default": 7}}
    answer = answer_for({**PLACE, "properties": properties})
    mended = with_declared_defaults(answer, read(answer, text_of(BAD)))
    assert mended.extraction.value == {"city": "Paris", "size": 7}
    assert [one.what for one in warnings(mended)] == ["answer.defaults"]
    assert with_declared_defaults(NATIVE, read(NATIVE, text_of(BAD))).extraction.error == "invalid"


def test_a_very_long_answer_is_not_repaired() -> None:
    found = read(GUIDED, "{'a': '" + "x" * MAX_READ)
    assert found.extraction.error is not None
    assert len(found.extraction.text) > MAX_READ


def test_a_costly_pattern_ends() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|a)*$"}}, "required": ["a"]}
    found = read(answer_for(schema), text_of({"a": "a" * 5000 + "!"}))
    assert found.extraction.error == "invalid"
