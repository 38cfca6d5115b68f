"""Estimates of a prompt's length come near what a provider counts, and one wrong count moves them little."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.planning.token_counting import PromptEstimates
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request


@given(st.floats(0.25, 4.0), st.lists(st.integers(1_000, 5_000), min_size=12, max_size=20))
def test_estimates_converge_to_what_is_counted(factor: float, sizes: list[int]) -> None:
    estimates = PromptEstimates()
    estimates.learn_measured(1000, 1000, "lab", "m")
    for size in sizes:
        estimates.learn_measured(size, max(1, round(size * factor)), "lab", "m")
    # Each count takes a quarter of what is left of the difference.
    left = abs(1 - factor) * 0.75**12
    assert abs(estimates.corrected(100_000, "lab", "m") / 100_000 - factor) <= left + 0.02
    assert estimates.corrected(1000, "lab", "other") == 1000


@given(st.lists(st.tuples(st.integers(3, 12), st.integers(0, 15)), min_size=1, max_size=300))
def test_short_prompts_with_what_a_provider_adds_say_little_of_a_long_one(prompts: list[tuple[int, int]]) -> None:
    estimates = PromptEstimates()
    for measured, added in prompts:
        estimates.learn_measured(measured, measured + added, "lab", "m")
    assert 90_000 <= estimates.corrected(90_000, "lab", "m") <= 92_000


@given(st.integers(1, 10**6), st.integers(1, 10**9))
def test_a_count_of_something_else_is_bounded(measured: int, counted: int) -> None:
    estimates = PromptEstimates()
    estimates.learn_measured(measured, counted, "lab", "m")
    assert 200 <= estimates.corrected(1000, "lab", "m") <= 5000


def test_a_count_that_says_nothing_is_not_learned() -> None:
    estimates = PromptEstimates()
    estimates.learn_measured(100, 0, "lab", "m")
    estimates.learn_measured(0, 100, "lab", "m")
    assert estimates.corrected(1000, "lab", "m") == 1000


def test_models_are_bounded_and_the_one_not_counted_for_longest_goes() -> None:
    estimates = PromptEstimates()
    for number in range(5000):
        estimates.learn_measured(1000, 2000, "lab", f"m{number}")
        estimates.learn_measured(1000, 2000, "lab", "often")
    assert estimates.corrected(100, "lab", "m0") == 100
    assert estimates.corrected(100, "lab", "m4999") == 200
    assert estimates.corrected(100, "lab", "often") == 200


def test_a_tokenizer_file_counts_exactly_for_the_models_it_is_about(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    from bardo.adapters.embedding.tokenizer_files import TokenizerFiles

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"one": 0, "two": 1, "?": 2}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    estimates = PromptEstimates()
    estimates.exact_counters = TokenizerFiles({"lab-*": str(tmp_path / "tokenizer.json")}).counter
    request = Request(model="m", messages=(Message("user", (TextBlock("one two three four five"),)),))
    assert estimates.exact(request, "lab-1") == 5 + 4
    assert estimates.exact(request, "other") is None


def test_counts_of_one_callers_prompts_correct_no_other_callers_estimates() -> None:
    estimates = PromptEstimates()
    estimates.learn_measured(1000, 5000, "p", "m", "a")
    told = [estimates.corrected(1000, "p", "m", tenant) for tenant in ("a", "b", "")]
    assert told == [5000, 1000, 1000]
    again = PromptEstimates()
    again.restore(estimates.corrections())
    assert [again.corrected(1000, "p", "m", tenant) for tenant in ("a", "b")] == [5000, 1000]
