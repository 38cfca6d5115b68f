"""Token counts as providers report them, under bardo's algebra."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.usage import cache_within_input, doubted, output_with_reasoning, token_count
from bardo.values.degradation import Degradation


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (0, 0),
        (7, 7),
        (7.0, 7),
        (None, None),
        (-9, None),
        (7.5, None),
        (True, None),
        ("7", None),
        ([7], None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        (1e300, None),
    ],
)
def test_a_count_is_a_whole_number(value: Any, count: int | None) -> None:
    assert token_count(value) == count


def test_only_impossible_counts_are_reported() -> None:
    assert doubted("usage.output_tokens", 3) == doubted("usage.output_tokens", None) == ()
    [doubt] = doubted("usage.output_tokens", -9)
    assert (doubt.what, doubt.asked, doubt.sent) == ("usage.output_tokens", -9, None)


CASES: dict[str, tuple[tuple[int | None, int | None, int | None, int | None, bool | None], tuple[int | None, int | None]]] = {
    "inside, as the provider's row says": ((10, 4, 5, 15, False), (10, 4)),
    "beside, as the provider's row says": ((10, 4, 5, 15, True), (14, 4)),
    "inside, as the total says": ((10, 4, 5, 15, None), (10, 4)),
    "beside, as the total says": ((10, 4, 5, 19, None), (14, 4)),
    "no total": ((10, 4, 5, None, None), (10, 4)),
    "no prompt": ((10, 4, None, 19, None), (10, 4)),
    "no reasoning": ((10, None, 5, 15, True), (10, None)),
    "reasoning of 0": ((10, 0, 5, 15, True), (10, 0)),
    "no output": ((None, 4, 5, 15, None), (None, 4)),
    "all of it reasoning": ((4, 4, 5, 9, None), (4, 4)),
    "more reasoning than output, beside": ((10, 96, 5, 111, None), (106, 96)),
    "more reasoning than output, no total": ((2, 25, 5, None, None), (27, 25)),
    "more reasoning than output, no prompt": ((2, 25, None, 40, None), (27, 25)),
    "more reasoning than output, a total of something else": ((2, 25, 5, 99, None), (27, 25)),
}  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), CASES.values(), ids=CASES.keys())
def test_output_includes_reasoning(told: tuple[Any, ...], expected: tuple[int | None, int | None]) -> None:
    output, reasoning, prompt, total, excludes_reasoning = told
    assert output_with_reasoning(
        output, reasoning, prompt=prompt, total=total, excludes_reasoning=excludes_reasoning
    ) == (*expected, ())


def test_more_reasoning_than_the_output_that_includes_it_is_capped_and_reported() -> None:
    output, reasoning, [doubt] = output_with_reasoning(10, 96, prompt=5, total=15, excludes_reasoning=None)
    assert (output, reasoning) == (10, 10)
    why = "the provider reports more reasoning than output, which includes it"
    assert doubt == Degradation("usage.reasoning_tokens", asked=96, sent=10, why=why)


def test_a_total_that_holds_more_than_it_names_was_spent_on_reasoning() -> None:
    # Gemini's Chat Completions route leaves thoughts out of its output and names them nowhere: 66 + 6 are told to be 100.
    output, reasoning, [doubt] = output_with_reasoning(6, None, prompt=66, total=100, excludes_reasoning=None)
    assert (output, reasoning) == (34, 28)
    assert (doubt.what, doubt.asked, doubt.sent) == ("usage.reasoning_tokens", None, 28)
    assert output_with_reasoning(6, None, prompt=66, total=100, excludes_reasoning=False) == (6, None, ())


counts = st.none() | st.integers(0, 100)


@given(counts, counts, counts, counts, st.sampled_from([None, True, False]))
def test_the_algebra_always_holds(
    output: int | None, reasoning: int | None, prompt: int | None, total: int | None, excludes_reasoning: bool | None
) -> None:
    found, thought, doubts = output_with_reasoning(
        output, reasoning, prompt=prompt, total=total, excludes_reasoning=excludes_reasoning
    )
    assert (found is None) is (output is None)
    if found is not None and thought is not None:
        assert thought <= found
        assert (thought == reasoning) is not bool(doubts)


CACHES: dict[str, tuple[tuple[int | None, int | None, int | None], tuple[int | None, int | None], list[str]]] = {
    "within": ((10, 4, 6), (4, 6), []),
    "not told": ((10, None, None), (None, None), []),
    "no input to compare with": ((None, 4, 6), (4, 6), []),
    "more read than input": ((10, 12, None), (10, None), ["usage.cached_input_tokens"]),
    "the same tokens read and written": ((10, 8, 8), (8, 2), ["usage.cache_write_tokens"]),
    "more of both": ((10, 12, 3), (10, 0), ["usage.cached_input_tokens", "usage.cache_write_tokens"]),
}


@pytest.mark.parametrize(("told", "expected", "doubts"), CACHES.values(), ids=CACHES.keys())
def test_input_includes_what_was_cached(
    told: tuple[int | None, int | None, int | None], expected: tuple[int | None, int | None], doubts: list[str]
) -> None:
    prompt, cached, written = told
    found = cache_within_input(prompt, cached, written)
    assert found[:2] == expected
    assert [doubt.what for doubt in found[2]] == doubts
