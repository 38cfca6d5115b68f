"""A registry finds formats by name and by model, and says why; the user's rows come first."""

from __future__ import annotations

import pytest

from bardo.reasoning import ReasoningFormat, UnknownFormat, formats, split
from bardo.reasoning.formats import EXAMPLE_ANSWER, EXAMPLE_THOUGHT, example_of
from bardo.reasoning.registry import PASSTHROUGH, FormatRegistry, builtin_formats
from support.offenders import each_case

LAB = ReasoningFormat(name="Lab-One", start="[[", end="]]", patterns=("lab-",), aliases=("lab",))
MARK_NOTHING = {PASSTHROUGH, "minimax_m2_append_think", "response_template", "gigachat3"}
OWN_QWEN = ReasoningFormat(name="qwen3", start="[[", end="]]")


def test_the_users_rows_come_before_the_built_in_ones() -> None:
    known = builtin_formats().with_rows([LAB])
    assert next(iter(known.rows)) == "Lab-One"
    assert [*known.rows][1:] == [*formats()]
    assert known.for_model("acme/lab-qwen3-4b") is LAB
    assert known.find("lab_one") is known.find("LAB") is LAB
    assert known.for_model("qwen3-4b").name == "qwen3"


def test_a_row_takes_the_place_of_one_that_has_its_name_with_its_patterns_and_aliases() -> None:
    known = builtin_formats().with_rows([OWN_QWEN])
    assert known.for_model("qwen3-4b") is OWN_QWEN
    assert known.find("QWEN3") is OWN_QWEN
    # The narrower pattern of another row still stands before.
    assert known.for_model("Qwen3-30B-A3B-Thinking-2507").name == "qwen3_thinking"
    assert len(known.rows) == len(formats())


def test_patterns_of_its_own_replace_those_of_the_row_whose_place_it_takes() -> None:
    own = ReasoningFormat(name="qwen3", start="[[", end="]]", patterns=("only-this",))
    known = builtin_formats().with_rows([own])
    assert known.for_model("only-this") is own
    assert known.for_model("qwen3-4b") is not own


def test_a_name_goes_before_an_alias() -> None:
    own = ReasoningFormat(name="minimax", start="[[", end="]]")
    assert builtin_formats().find("minimax").name == "minimax_m2"
    assert builtin_formats().with_rows([own]).find("minimax") is own


def test_of_two_rows_with_one_name_the_first_counts() -> None:
    other = ReasoningFormat(name="lab_one", start="((", end="))")
    assert FormatRegistry([LAB, other]).find("lab-one") is LAB


def test_a_registry_never_changes() -> None:
    known = builtin_formats()
    known.with_rows([LAB]).with_patterns([("gpt", "lab")])
    with pytest.raises(UnknownFormat):
        known.find("lab_one")
    assert known.for_model("gpt-4o").name == PASSTHROUGH


def test_patterns_given_later_go_first_and_need_a_format() -> None:
    known = builtin_formats().with_rows([LAB]).with_patterns([("gpt", "lab"), ("gpt-4", "qwen3")])
    assert known.for_model("gpt-4o") is LAB
    with pytest.raises(UnknownFormat, match="lab_one"):
        known.with_patterns([("gpt", "lab_two")])


def test_a_registry_without_rows_leaves_text_as_it_is() -> None:
    assert split("<think>a</think>b", FormatRegistry().for_model("qwen3")) == ("", "<think>a</think>b")


@pytest.mark.parametrize(
    ("asked", "by", "why"),
    [
        ({"name": "lab"}, "name", "the format 'lab' was named"),
        ({"name": "lab", "model": "qwen3"}, "name", "the format 'lab' was named"),
        ({"model": "acme/LAB-1"}, "pattern", "its pattern 'lab-' fits the model's name"),
        ({"model": "gpt-4o"}, "passthrough", "no format has a pattern that fits"),
        ({}, "default", "neither a format nor a model was named"),
    ],
    ids=["name", "name before model", "pattern", "unknown model", "nothing"],
)
def test_a_choice_says_why(asked: dict[str, str], by: str, why: str) -> None:
    choice = builtin_formats().with_rows([LAB]).choose(**asked)
    assert choice.by == by
    assert why in choice.why


def test_a_choice_says_whether_the_format_is_the_users_own() -> None:
    known = builtin_formats().with_rows([LAB]).with_patterns([("gpt", "qwen3")])
    own = {model: known.choose(model=model).own for model in ("lab-1", "qwen3-4b", "gpt-4o", "other")}
    assert own == {"lab-1": True, "qwen3-4b": False, "gpt-4o": False, "other": False}
    assert known.choose(name="lab").own
    assert not known.choose().own
    assert builtin_formats().with_rows([OWN_QWEN]).choose(model="qwen3-4b").own


@each_case("row", formats().values(), ids=formats().keys())
def test_every_format_has_an_example_that_is_read_as_it_says(row: ReasoningFormat) -> None:
    reasoning, answer = split(example_of(row), row)
    if row.name in MARK_NOTHING:
        assert not example_of(row)
    elif row.example:
        assert reasoning
        assert answer
        assert len(reasoning) + len(answer) < len(row.example)
    else:
        assert (reasoning, answer) == (EXAMPLE_THOUGHT, EXAMPLE_ANSWER)
