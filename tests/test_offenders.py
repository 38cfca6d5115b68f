"""Checks that run over many cases in one item name every case that is wrong."""

from __future__ import annotations

import inspect

import pytest

from support.offenders import each_case, offenders


def test_all_that_is_wrong_is_listed_with_what_to_do() -> None:
    offenders([], "take them out")
    with pytest.raises(pytest.fail.Exception) as caught:
        offenders(["a", "b"], "take them out")
    assert str(caught.value) == "2 × take them out:\n  a\n  b"


def test_every_case_runs_and_the_wrong_ones_are_named() -> None:
    seen = []

    @each_case("number, word", [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")])
    def check(number: int, word: str, fixture: str) -> None:
        seen.append(number)
        if number == 2:
            pytest.skip("not for this one")
        if number == 5:
            raise KeyError(word)
        assert number < 3, f"{word} is too large for {fixture}"

    assert [*inspect.signature(check).parameters] == ["fixture"]
    with pytest.raises(pytest.fail.Exception) as caught:
        check(fixture="x")
    assert seen == [1, 2, 3, 4, 5]
    assert [line.strip().partition("\n")[0] for line in str(caught.value).split("\n  ") if "-" in line] == [
        "3-c: c is too large for x",
        "4-d: d is too large for x",
        "5-e: KeyError: 'e'",
    ]


def test_cases_of_two_tables_are_multiplied() -> None:
    seen = []

    @each_case("one", "ab")
    @each_case("other", [1, 2], ids=lambda value: f"number {value}")
    def check(one: str, other: int) -> None:
        seen.append((one, other))
        assert (one, other) != ("b", 2)

    with pytest.raises(pytest.fail.Exception, match=r"b: (.|\n)*number 2: "):
        check()
    assert seen == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_a_check_without_cases_fails_unless_they_lie_elsewhere() -> None:
    def check(one: str) -> None:
        raise AssertionError(one)

    with pytest.raises(AssertionError, match="no cases"):
        each_case("one", [])(check)()
    with pytest.raises(pytest.skip.Exception):
        each_case("one", [], optional=True)(check)()
