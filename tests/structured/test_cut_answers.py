"""An answer that was cut is never passed off as whole, and prose is never a value: every cut of many answers, for every finish."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.structured import Extraction, extract
from bardo.values.events import FinishReason
from structured.same import same
from structured.test_extract_laws import OBJECTS, VALUES

PAYMENT = {
    "type": "object",
    "properties": {"who": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["who", "amount"],
}
OPTIONAL = {"type": "object", "properties": {"who": {"type": "string"}, "amount": {"type": "integer"}}}
NESTED: dict[str, Any] = {
    "name": "Ana \"A\" {x}, [y]: 'z'",
    "tags": ["a", "b\\c", "\u00e9\U0001f600"],
    "size": -12.5e3,
    "inner": {"yes": True, "no": None, "list": [[1, 2], [{"deep": 10}]], "empty": {}},
    "last": 1200,
}
INTERRUPTED: tuple[FinishReason, ...] = ("length", "pause", "error")

WRITTEN: dict[str, tuple[Any, str]] = {
    "compact": (NESTED, "{}"),
    "fenced": (NESTED, "```json\n{}\n```"),
    "fenced, with words around": (NESTED, "Here you are:\n```json\n{}\n```\nI hope [this] helps: {ok}."),
    "in prose": (NESTED, "Here you are: {} and that is all, see [1]."),
    "behind a draft": (NESTED, 'A draft: {"name": "Bo", "last": 1}.\nThe answer: {}'),
    "behind thinking": (NESTED, '<think>{"last": 1}</think>{}'),
    "in a wrapper": ({"answer": NESTED}, "{}"),
    "an array": ([{"n": 1}, {"n": 22}, {"n": 333}], "{}"),
    "numbers": ([1, 22, 333], "{}"),
    "a number": (1200, "{}"),
    "a text": ('a "b" {c}', "{}"),
    "a literal": (True, "{}"),
}
LOOSE: dict[str, str] = {
    "Python": "{'who': 'bob', 'amount': 1200}",
    "bare keys": '{who: "bob", amount: 1200}',
    "comments": '{"who": "bob", // it is bob\n "amount": 1200 /* dollars */}',
    "missing comma": '{"who": "bob" "amount": 1200}',
    "a call": "Payment(who='bob', amount=1200)",
    "indented": '{\n  "who": "bob",\n  "amount": 1200\n}',
    "escaped once too often": '{\\"who\\": \\"bob\\", \\"amount\\": 1200}',
    "first brace missing": '"who": "bob", "amount": 1200}',
    "lines": "who: bob\namount: 1200",
    "TOML": 'who = "bob"\namount = 1200',
    "tags": "<who>bob</who>\n<amount>1200</amount>",
    "a table": "| who | amount |\n|---|---|\n| bob | 1200 |",
    "unescaped quotes": '{"who": "bob "the" builder", "amount": 1200}',
    "garbled": '{"who": bob"y, "amount": 1200}',
}


def full(name: str) -> tuple[Any, str]:
    value, around = WRITTEN[name]
    return value, around.replace("{}", json.dumps(value, indent=1 if "fenced" in name else None), 1)


SCHEMAS: dict[str, Any] = {"anything": True, "optional members": OPTIONAL, "an object": {"type": "object"}}


@pytest.mark.parametrize("finish", INTERRUPTED)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_cut_reply_gives_the_whole_value_or_truncated(name: str, finish: FinishReason) -> None:
    value, text = full(name)
    inner = value["answer"] if isinstance(value, dict) and "answer" in value else value
    for at in range(len(text)):
        found = extract(text[:at], True, finish=finish)
        assert found.error == "truncated" or same(found.value, value) or same(found.value, inner), (text[:at], found)
        assert (found.error == "truncated") is found.truncated


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_finished_reply_gives_no_other_value_unless_it_is_flagged_as_repaired(name: str, schema: Any) -> None:
    value, text = full(name)
    _, _, behind = text.partition(json.dumps(value))
    for at in range(len(text) - len(behind)):
        found = extract(text[:at], schema, finish="stop")
        wrong = found.ok and not same(found.value, value)
        assert (
            not wrong
            or name == "behind a draft"
            or (found.repaired and found.truncated)
            or at < 4
            or not isinstance(value, dict | list)
        ), (text[:at], found)


@pytest.mark.parametrize("text", LOOSE.values(), ids=LOOSE)
def test_what_has_to_be_repaired_is_truncated_where_the_reply_was_cut(text: str) -> None:
    whole = extract(text, PAYMENT, finish="stop")
    for schema in (PAYMENT, OPTIONAL, {"type": "array", "items": OPTIONAL}, True):
        for at in range(len(text)):
            if text[:at] == '"who"' and schema is True:
                continue  # That is a whole text of JSON.
            found = extract(text[:at], schema, finish="length")
            assert found.error == "truncated", (text[:at], found)
    assert extract(text, PAYMENT, finish="length").error in ("truncated", None)
    assert whole.error is None or "table" in text or "|" in text


@given(VALUES, st.data())
def test_no_cut_of_any_value_gives_another(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 1])))
    found = extract(text[: data.draw(st.integers(0, len(text) - 1))], True, finish="length")
    assert found.error == "truncated" or same(found.value, value)


@given(OBJECTS, st.data())
def test_a_finished_text_is_only_closed_never_completed(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps({"first": value, "last": 12})
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    found = extract(cut, True, finish="stop")
    if found.ok:
        assert found.repaired
        assert found.truncated
        assert cut.rstrip()[-1] in '"}]0123456789elE'


# The end of a text whose closing brackets are missing, and whether it counts as complete in a reply that was finished.
ENDS: dict[str, tuple[str, bool]] = {
    "a number": ('{"who": "bob", "amount": 12', True),
    "a number and a space": ('{"who": "bob", "amount": 12 ', True),
    "a closed string": ('{"amount": 12, "who": "bob"', True),
    "a literal": ('{"who": "bob", "amount": 12, "paid": true', True),
    "a closed object": ('{"who": "bob", "amount": 12, "more": {"a": 1}', True),
    "a closed array": ('{"who": "bob", "amount": 12, "more": [1]', True),
    "an inner number": ('{"who": "bob", "amount": 12, "more": {"a": [1', True),
    "an open string": ('{"amount": 12, "who": "bo', False),
    "a comma": ('{"who": "bob", "amount": 12,', False),
    "a comma and a space": ('{"who": "bob", "amount": 12, ', False),
    "an open key": ('{"who": "bob", "amount": 12, "pa', False),
    "a key": ('{"who": "bob", "amount": 12, "paid"', False),
    "a key and its colon": ('{"who": "bob", "amount": 12, "paid":', False),
    "part of a literal": ('{"who": "bob", "amount": 12, "paid": tr', False),
    "part of a number": ('{"who": "bob", "amount": 12, "rate": 1.', False),
    "a minus": ('{"who": "bob", "amount": 12, "rate": -', False),
    "an exponent": ('{"who": "bob", "amount": 12, "rate": 1e', False),
    "an opening brace": ('{"who": "bob", "amount": 12, "more": {', False),
    "an opening bracket": ('{"who": "bob", "amount": 12, "more": [', False),
    "an escape": ('{"amount": 12, "who": "bob\\', False),
}


@pytest.mark.parametrize("fence", ["", "```json\n"], ids=["bare", "in an open fence"])
@pytest.mark.parametrize(("text", "complete"), ENDS.values(), ids=ENDS)
def test_the_end_of_a_finished_text_decides_whether_it_is_complete(text: str, complete: bool, fence: str) -> None:
    for finish in ("stop", None):
        found = extract(fence + text, PAYMENT, finish=finish)
        assert found.ok is complete, found
        assert found.truncated
        assert not complete or found.repaired
    for cut in ({"finish": "length"}, {"cut": True}):
        assert extract(fence + text, PAYMENT, **cut).error == "truncated"


def test_every_finish_is_complete_or_cut_or_a_refusal() -> None:
    codes = {one: extract('{"who": "bob", "amount": 12', PAYMENT, finish=one).error for one in get_args(FinishReason)}
    assert codes == {
        "stop": None,
        "tool_calls": None,
        "refusal": "refusal",
        **dict.fromkeys((*INTERRUPTED, "unknown"), "truncated"),
    }


def test_where_nobody_says_why_a_text_ends_a_closed_value_is_found_and_none_is_closed() -> None:
    for text in ('Sure: {"who": "bob", "amount": 12}. Bye.', "{'who': 'bob', 'amount': 12}"):
        assert extract(text, PAYMENT, finish="unknown").value == {"who": "bob", "amount": 12}
    assert extract('Sure: {"who": "bob", "amount": 12', PAYMENT, finish="unknown").error == "truncated"
    assert extract("I cannot say.", PAYMENT, finish="unknown").error == "no_json"


def test_what_was_closed_before_the_cut_is_the_answer() -> None:
    for text in (
        '{"who": "bob", "amount": 12}',
        '{"who": "bob", "amount": 12}\n\nThis means th',
        '```json\n{"who": "bob", "amount": 12}\n``',
        'Sure:\n```json\n{"who": "bob", "amount": 12}\n```\nThis means th',
        "{'who': 'bob', 'amount': 12}",
    ):
        assert extract(text, PAYMENT, finish="length").value == {"who": "bob", "amount": 12}, text


PROSE = (
    "I cannot answer that.",
    "Sorry, but no. See [1] and [2] for why.",
    "Use {} or [] to say nothing.",
    "- [ ] ask again\n- [x] think",
    "[1] Smith et al., 2020",
    "The list[0] is empty, as {this} shows",
    "None",
    "Nil.",
    "nan",
    "undefined",
    "Well",
    "null and void",
    "true story: it was 42 of them",
    'I\'d say: "no"',
    "name: nobody knows\nSorry about that.\nwho: ask somebody else",
    "who: I cannot say\n\nPlease ask somebody else.",
    "   ",
    "...",
    "Réponse impossible 🙂",
)
KINDS: dict[str, Any] = {
    "optional members": OPTIONAL,
    "defaults": {"type": "object", "properties": {"who": {"default": "x"}}, "default": {"who": "y"}},
    "an array": {"type": "array"},
    "an array of integers": {"type": "array", "items": {"type": "integer"}},
    "an array of texts": {"type": "array", "items": {"type": "string"}},
    "nullable": {"type": ["object", "null"], "properties": {"who": {"type": "string"}}},
    "nullable text": {"type": ["string", "null"]},
    "a choice with null": {"anyOf": [{"type": "null"}, OPTIONAL]},
    "a text": {"type": "string"},
    "a number": {"type": "number", "default": 3},
    "a boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "anything": True,
    "no rules": {},
    "a word": {"enum": ["yes", "no", None]},
}


@pytest.mark.parametrize("schema", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_json_for_every_kind_of_schema(text: str, schema: Any) -> None:
    found = extract(text, schema, finish="stop")
    assert (found.error, found.value) == ("no_json", None), found
    assert extract(text, schema, finish="length").error == "truncated"


def closed(found: Extraction) -> Any:
    return found.value if found.ok else found.error


def test_json_alone_is_a_value_of_every_kind() -> None:
    assert closed(extract("null", {"type": ["object", "null"]})) is None
    assert closed(extract("[]", {"type": "array"})) == []
    assert closed(extract("{}", OPTIONAL)) == {}
    assert closed(extract("The answer: [3]", {"type": "array"})) == [3]
    assert closed(extract('"no"', {"type": "string"})) == "no"
    assert closed(extract("who: bob\namount: 3", OPTIONAL)) == {"who": "bob", "amount": 3}


@pytest.mark.parametrize("behind", ["", " ", "\n", "\n```", "\n\nI hope this hel", "\n``"])
@pytest.mark.parametrize("before", ["", "```json\n"])
def test_a_value_that_was_closed_before_the_cut_is_complete_and_says_that_more_was_cut(
    before: str, behind: str
) -> None:
    text = before + '{"who": "bob", "amount": 1200}' + behind
    for finish in INTERRUPTED:
        found = extract(text, PAYMENT, finish=finish)
        assert (found.value, found.error) == ({"who": "bob", "amount": 1200}, None)
        assert (found.truncated, found.truncated_after) == (False, True)
        assert "truncated_after" in found.warnings
    assert not extract(text, PAYMENT, finish="stop").truncated_after


def test_a_loose_value_that_was_closed_before_the_cut_says_that_more_was_cut() -> None:
    found = extract("{'who': 'bob', 'amount': 1200}\nThat is", PAYMENT, finish="length")
    assert (found.error, found.repaired, found.truncated_after) == (None, True, True)


def test_a_value_that_was_cut_is_truncated_and_nothing_behind_it() -> None:
    found = extract('{"who": "bob", "amount": 12', PAYMENT, finish="length")
    assert (found.error, found.truncated, found.truncated_after) == ("truncated", True, False)
