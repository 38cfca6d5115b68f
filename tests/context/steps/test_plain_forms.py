"""Shorter forms of texts: what they keep, and that they are found in linear time."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.steps.editing import comma_separated, compact_json, cut_middle, without_blobs, without_padding
from support.growth import check_growth

pytestmark = pytest.mark.each_python

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.lists(JSON) | st.dictionaries(st.text(), JSON), st.integers(0, 4))
def test_json_without_space_says_the_same(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent)
    short = compact_json(text)
    assert json.loads(short) == value
    assert len(short) <= len(text)
    assert compact_json(short) == short


@pytest.mark.parametrize("text", ['{"a": 1.10, "a": 100000000000000000000001}', '[1E5,  "\\u00e9  \\" "]'])
def test_each_token_of_json_stays_as_it_was_written(text: str) -> None:
    assert compact_json(text).replace(",", ", ").replace(":", ": ") != ""
    assert "".join(text.split()) == "".join(compact_json(text).split())


@pytest.mark.parametrize("text", ["", "a", '{"a": }', "[1, 2", '"text"', "12", "{a: 1}", "\ud800{}"])
def test_what_is_no_json_object_or_list_is_not_taken_for_one(text: str) -> None:
    assert compact_json(text) == ""


def test_lines_and_tables_lose_their_padding_and_nothing_else() -> None:
    text = "a  b   \n\n\n\n\n| name     | rate |\n|----------|------|\n| one  two |    3 |\n"
    assert without_padding(text) == "a  b\n\n| name | rate |\n|---|---|\n| one two | 3 |\n"


@given(st.text(alphabet=" \t\na|-", max_size=60))
def test_what_has_no_padding_stays(text: str) -> None:
    once = without_padding(text)
    assert without_padding(once) == once


def test_rows_of_plain_values_become_comma_separated_values() -> None:
    rows = [{"name": 'a, "b"', "size": 1, "open": True}, {"name": "c\nd", "size": 2.5, "open": False}]
    table = comma_separated(json.dumps(rows))
    assert list(csv.DictReader(io.StringIO(table))) == [
        {"name": 'a, "b"', "size": "1", "open": "true"},
        {"name": "c\nd", "size": "2.5", "open": "false"},
    ]


@pytest.mark.parametrize(
    "rows", [[{"a": 1}], [{"a": 1}, {"b": 1}], [{"a": [1]}, {"a": 2}], [{"a": None}, {"a": 1}], [1, 2], [{}, {}]]
)
def test_other_lists_do_not(rows: list[object]) -> None:
    assert comma_separated(json.dumps(rows)) == ""


def test_encoded_data_is_left_out_and_words_and_paths_are_not() -> None:
    text = f"before {'QUJD' * 200}== after {'word ' * 300} {'/usr/lib.so ' * 50}"
    assert without_blobs(text) == text.replace(f"{'QUJD' * 200}==", "[802 characters of encoded data left out]")


@given(st.text(), st.integers(1, 50))
def test_a_cut_text_has_the_beginning_and_the_end(text: str, longest: int) -> None:
    cut = cut_middle(text, longest)
    if len(text) <= longest:
        assert cut == text
    else:
        head, _, tail = cut.partition("\n[... ")
        assert text.startswith(head)
        assert text.endswith(tail.partition(" left out ...]\n")[2])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", [" ", '"', "a", "|  ", "A1", "\n", '\\"', "- ", "{", "[1, "])
def test_time_is_linear_whatever_a_tool_gives(unit: str) -> None:
    def work(text: str) -> None:
        for form in (without_padding, without_blobs, comma_separated):
            form(text)
            form(f"[{text}")

    small, large = unit * (20_000 // len(unit)), unit * (200_000 // len(unit))
    check_growth(work, small, large, below=30)
