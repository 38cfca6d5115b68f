"""Almost-JSON is read up to its end, prose is left alone, and the repair library sees only what it may see."""

from __future__ import annotations

from typing import Any

import json_repair
import pytest

from bardo.structured import extract
from bardo.structured.bounds import MAX_DEPTH, MAX_REPAIR
from bardo.structured.reading import NotData, read_value
from bardo.structured.scanning import scan

READ: dict[str, tuple[str, Any, str]] = {
    "quotes of all kinds": ("{'a': `b`, “c”: «d»}", {"a": "b", "c": "d"}, ""),
    "words without quotes": (
        "{a: New York, b: 10:45, c: https://x.org/?d=1}",
        {"a": "New York", "b": "10:45", "c": "https://x.org/?d=1"},
        "",
    ),
    "comments": ("{/* x */ a: 1, // y\n b: 2 # z\n}", {"a": 1, "b": 2}, ""),
    "other words": (
        "[TRUE, None, undefined, NaN, 0x1F, 1_000, .5, 5.]",
        [True, None, None, None, 31, 1000, 0.5, 5.0],
        "",
    ),
    "joined strings": ('["a" + "b"]', ["ab"], ""),
    "three quotes": ('["""a "b"\nc"""]', ['a "b"\nc'], ""),
    "missing commas": ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}], ""),
    "an ellipsis": ("[1, 2, ...]", [1, 2], ""),
    "cut before the closers": ('{"a": [1, {"b": "c"', {"a": [1, {"b": "c"}]}, "closers"),
    "cut in a string": ('{"a": "b', {"a": "b"}, "scalar"),
    "cut in an escape": ('{"a": "b\\u00', {"a": "b"}, "scalar"),
    "cut in a key": ('{"a": 1, "b', {"a": 1}, "scalar"),
    "cut behind a key": ('{"a": 1, "b":', {"a": 1}, "scalar"),
    "cut in a word": ('{"a": 1, "b": tr', {"a": 1}, "scalar"),
}


@pytest.mark.parametrize("name", READ)
def test_almost_json_is_read_to_its_end(name: str) -> None:
    text, value, cut = READ[name]
    found = read_value(text, 0)
    assert (found.value, found.end, found.cut, found.unsure) == (value, len(text), cut, False)


@pytest.mark.parametrize("text", ['[{"a": 1, {"a": 2}]', '{"a": [1, 2}', '{"a" 1}', '{"a": , "b": 1}'])
def test_a_closer_or_colon_that_had_to_be_guessed_makes_the_reading_unsure(text: str) -> None:
    assert read_value(text, 0).unsure


@pytest.mark.parametrize("text", ["{this}", "{1, 2}", "{see above: [1]", "[note: {x}]", "{:}", "[" * (MAX_DEPTH + 1)])
def test_prose_in_brackets_is_not_data(text: str) -> None:
    with pytest.raises(NotData):
        read_value(text, 0)


def test_what_stands_inside_a_value_is_not_found_by_itself() -> None:
    assert [one.value for one in scan('{"a": {"b": 1},} and [2]').found] == [{"a": {"b": 1}}, [2]]


CUT_LAST = {
    "in its first key": '{"a": 1}{"a',
    "behind a member": '{"a": 1}\n{"a": 2, "b"',
    "in a string": '{"a": 1}\n{"a": 2, "b": "x',
}


@pytest.mark.parametrize("name", CUT_LAST)
def test_a_whole_value_before_a_cut_one_is_not_the_answer(name: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert extract(CUT_LAST[name], schema).error == "truncated"


def test_the_repair_library_gets_no_more_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(json_repair, "loads", lambda text, **_: seen.append(len(text)))
    fences = "".join(f"```\n{{bad {'x' * 9000}}}\n```\n" for _ in range(20))
    extract(fences, {"type": "object", "required": ["never"]})
    assert seen
    assert sum(seen) <= MAX_REPAIR


def test_the_repair_library_gets_nothing_too_deep_and_nothing_that_could_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(json_repair, "loads", lambda text, **_: seen.append(text))
    extract("{bad " + "[" * 1000, {"type": "object"})
    extract("{'a': 2+3}", {"type": "object", "properties": {"a": {"type": "integer"}}})
    assert seen == []


def test_a_guess_of_the_last_resort_is_marked() -> None:
    found = extract(
        '{"a": x"y, "b": 1}', {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    )
    assert (found.salvaged, found.warnings) == (True, ("repaired", "salvaged"))
