"""What holds for every value and every text: JSON comes back whatever stands around it, and no text breaks the reader."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.structured import extract
from bardo.structured.bounds import MAX_READ
from structured.same import same
from support.growth import check_growth

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)
AROUND: dict[str, str] = {
    "nothing": "{}",
    "prose": "Sure, here it is:\n{}\nI hope this helps.",
    "prose with braces": "In the {{style}} of [1]: {} (see [2])",
    "fence": "```json\n{}\n```",
    "inline code": "It is `{}`.",
    "thinking": "<think>perhaps {{'a': [1}}</think>\n{}",
    "tags": "<json>{}</json>",
}


@given(VALUES)
def test_sound_json_is_unharmed(value: Any) -> None:
    found = extract(json.dumps(value), True)
    assert same(found.value, value)
    assert (found.error, found.warnings) == (None, ())


@given(VALUES, st.booleans())
def test_sound_json_is_unharmed_in_any_layout(value: Any, ascii_only: bool) -> None:
    assert same(extract(json.dumps(value, indent=2, ensure_ascii=ascii_only), True).value, value)


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
@given(value=OBJECTS)
@example(value={"<|CALL|>": None})
@example(value={"</think>": "<think>"})
@example(value={"a": ["say <think> and </think>", "<|end|>"]})
def test_an_object_is_found_whatever_stands_around_it(around: str, value: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "required": list(value),
        "properties": {key: {"const": inner} for key, inner in value.items()},
    }
    found = extract(around.format(json.dumps(value)), schema)
    assert found.error is None
    assert set(found.value) >= set(value)
    assert all(same(found.value[key], value[key]) for key in value)


WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
SIMPLE = st.dictionaries(
    WORDS, st.integers(-(10**6), 10**6) | st.booleans() | st.none() | WORDS, min_size=1, max_size=4
)


@given(SIMPLE)
def test_what_python_prints_is_read_as_json(value: dict[str, Any]) -> None:
    assert same(extract(repr(value), {"const": value}).value, value)


@given(SIMPLE)
def test_commas_too_many_and_comments_change_nothing(value: dict[str, Any]) -> None:
    members = "".join(f"  {json.dumps(key)}: {json.dumps(inner)},, // a note\n" for key, inner in value.items())
    assert same(extract(f"{{\n{members}}}", {"const": value}).value, value)


@given(OBJECTS, st.data())
def test_a_cut_answer_is_never_passed_off_as_whole(value: dict[str, Any], data: st.DataObject) -> None:
    written = json.dumps({"first": value, "last": 1})
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    schema = {
        "type": "object",
        "properties": {"first": {"const": value}, "last": {"const": 1}},
        "required": ["first", "last"],
    }
    found = extract(cut, schema)
    assert found.error is not None or (found.truncated and same(found.value, {"first": value, "last": 1}))


@given(
    st.text(st.sampled_from("{}[]()\",:'`/*#\\<>|-=.ab10 \n\u201c\u00ab\ufeff\ud800"), max_size=60),
    st.sampled_from([True, {"type": "object"}]),
)
def test_no_text_breaks_the_reader(text: str, schema: Any) -> None:
    found = extract(text, schema)
    json.dumps(found.value, allow_nan=False, ensure_ascii=False).encode()
    assert found.text == text


ENDLESS = {
    "braces": "{",
    "brackets": "[",
    "objects": '{"a":',
    "arrays": "[1,",
    "quotes": '{"a":"" "',
    "comments": '{"a": "/*',
    "fences": "```\n",
    "lines": "\n",
    "calls": "f(",
    "escapes": '{\\"',
    "keys": "a: 1\n",
    "thinking": "<think>",
    "rules": "|--",
    "digits": "9",
    "backticks": "{`",
    "spaces": "{ ",
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("piece", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_text_that_never_ends_is_refused_with_a_reason(piece: str) -> None:
    # Each of these takes minutes where reading is not linear.
    found = extract(piece * (20_000 // len(piece)), {"type": "object", "required": ["never"]})
    assert found.error in ("no_json", "invalid", "truncated")
    assert found.message


REPEATED = {
    **ENDLESS,
    "empty objects": "{}",
    "small objects": '{"a":1}',
    "objects without quotes": "{a:1},",
    "arrays of words": "[a] ",
    "tables of TOML": "[a]\n",
    "dotted keys": "a.",
    "curly quotes": "{\u201ca\u201d:1}",
    "trailing commas": '{"a":1,}',
    "missing closers": '{"a":{}',
    "missing commas": '{"a":1 "b"',
    "comments in objects": '{"a":1//x\n',
    "quotes and comments": '{"k": "v" // c\n, ',
    "fenced objects": "```json\n{}\n```\n",
    "full-width braces": "\uff5b`",
    "arrays and comments": "f([] # ",
    "values and openers": "{}{a:1}[",
    "joined texts": '{"a": "b" + ',
    "texts in texts": '{"a":"x"y"',
    "tags": "<a>1</a>",
    "three quotes": '{"""',
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", REPEATED.values(), ids=REPEATED.keys())
def test_the_time_grows_no_faster_than_the_text(piece: str) -> None:
    def read(size: int) -> None:
        extract(piece * (size // len(piece)), {"type": "object", "required": ["never"]})

    read(1000)
    # Eight times the text; where reading is quadratic it takes sixty-four times as long.
    check_growth(read, 15_000, 120_000, below=25)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", ['"b"} ', '["a" ', '{"'])
def test_the_repair_library_reads_no_more_than_so_often_the_length_of_a_text(piece: str) -> None:
    def read(size: int) -> None:
        extract(
            '{"n": NaN} or [1, 2, {"a": ' + piece * (size // len(piece)) + "}]",
            {"type": "object", "required": ["never"]},
        )

    read(1000)
    check_growth(read, 8_000, 64_000, below=25)


def test_values_beyond_the_bound_are_too_complex_and_the_last_of_those_below_it_is_the_answer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert extract('{"a": 1}\n' * 200 + '{"a": 2}', schema).value == {"a": 2}
    for piece in ("{}", "{a:1},", '{"a": 1}\n{b} '):
        found = extract(piece * 40_000, {**schema, "required": ["never"]})
        assert (found.error, found.value) == ("too_complex", None)
        assert found.message


def test_broken_text_beyond_the_limit_is_not_repaired_and_sound_json_beyond_it_is_read() -> None:
    long = "x" * MAX_READ
    assert extract(f"{{'a': '{long}'}}", {"type": "object"}).message.endswith("too many to repair")
    assert extract(f'Well: {{"a": "{long}"}}', {"type": "object"}).value == {"a": long}
