"""The half-life of a cache is learned from what is read after pauses: of five minutes, of an hour, and where a cache needs the room."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.affinity.server_order import HALF_LIFE_SECONDS, CacheSurvival, falling


def learned(kept_seconds: float, pauses: int = 300, *, longest: float = 7200) -> CacheSurvival:
    """Return what is learned of a cache that keeps prompts for so long, from pauses of all lengths."""
    survival, chance = CacheSurvival(), random.Random(1)
    for _ in range(pauses):
        pause = longest ** chance.random()
        survival.note(pause, 1.0 if pause <= kept_seconds else 0.0)
    return survival


def test_before_anything_is_known_half_is_left_after_five_minutes() -> None:
    survival = CacheSurvival()
    assert survival.share(0) == 1.0
    assert survival.share(HALF_LIFE_SECONDS) == pytest.approx(0.5)
    assert survival.half_life() == HALF_LIFE_SECONDS


@pytest.mark.parametrize("kept", [300, 3600])
def test_the_time_for_which_a_provider_keeps_prompts_is_found(kept: float) -> None:
    survival = learned(kept)
    assert survival.share(kept * 0.7) > 0.7
    assert survival.share(kept * 1.5) < 0.2
    assert 0.75 * kept < survival.half_life() < 1.4 * kept


def test_a_cache_that_forgets_when_it_needs_the_room_has_a_half_life_too() -> None:
    survival, chance = CacheSurvival(), random.Random(2)
    for _ in range(600):
        pause = 3600 ** chance.random()
        survival.note(pause, float(chance.random() < 0.5 ** (pause / 900)))
    assert 450 < survival.half_life() < 1800


def test_a_cache_that_keeps_all_has_no_half_life() -> None:
    assert learned(float("inf"), longest=100_000).half_life() == float("inf")


def test_a_cache_that_never_has_anything_is_soon_not_counted_on() -> None:
    survival = CacheSurvival()
    for _ in range(20):
        survival.note(5.0, 0.0)
    assert survival.share(5.0) < 0.2
    assert survival.share(600.0) < 0.2


def test_what_changes_is_learned_anew() -> None:
    survival = learned(300)
    for _ in range(60):
        survival.note(900.0, 1.0)
    assert survival.share(900.0) > 0.8
    assert survival.share(400.0) > 0.8


def test_one_odd_reading_changes_little() -> None:
    survival = learned(3600)
    before = survival.share(100)
    survival.note(100, 0.0)
    assert survival.share(100) > before - 0.15


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1, 2)), max_size=60))
def test_the_share_never_rises_with_the_pause_and_stays_a_share(notes: list[tuple[float, float]]) -> None:
    survival = CacheSurvival()
    for pause, share in notes:
        survival.note(pause, share)
    shares = [survival.share(pause) for pause in (0, 1, 20, 100, 280, 400, 1000, 4000, 10_000, 1e6)]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares, reverse=True)
    assert survival.half_life() > 0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), min_size=1, max_size=30))
def test_the_fitted_sequence_falls_and_keeps_the_weighted_sum(pairs: list[tuple[float, float]]) -> None:
    values, weights = [value for value, _ in pairs], [weight for _, weight in pairs]
    found = falling(values, weights)
    assert all(first >= second for first, second in pairwise(found))
    before, after = (sum(v * w for v, w in zip(one, weights, strict=True)) for one in (values, found))
    assert after == pytest.approx(before)
