"""Counts within a window, and the lower end of Wilson's interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.routing.circuit import BUCKETS, HealthWindow, wilson_lower_bound


@pytest.mark.parametrize(
    ("failed", "calls", "published"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I, method 3.
        pytest.param(81, 263, 0.2553, id="newcombe-81-of-263"),
        pytest.param(15, 148, 0.0624, id="newcombe-15-of-148"),
        pytest.param(0, 20, 0.0, id="newcombe-0-of-20"),
        pytest.param(1, 29, 0.0061, id="newcombe-1-of-29"),
    ],
)
def test_the_lower_bound_is_the_published_one(failed: int, calls: int, published: float) -> None:
    assert wilson_lower_bound(failed, calls) == pytest.approx(published, abs=5e-5)


def test_few_calls_prove_little() -> None:
    assert wilson_lower_bound(1, 4) < 0.05 < wilson_lower_bound(25, 100)
    assert wilson_lower_bound(0, 0) == 0.0


@given(st.integers(1, 10_000), st.data())
def test_the_lower_bound_lies_between_nothing_and_the_share(calls: int, data: st.DataObject) -> None:
    failed = data.draw(st.integers(0, calls))
    assert 0.0 <= wilson_lower_bound(failed, calls) <= failed / calls
    assert wilson_lower_bound(failed, calls) <= wilson_lower_bound(10 * failed, 10 * calls) + 1e-12


def test_what_is_older_than_the_window_is_forgotten() -> None:
    window = HealthWindow(300.0)
    window.note_fault("server", 0.0)
    window.note_success(200.0)
    window.look(299.0)
    assert (window.calls, window.failed, window.faults) == (2, 1, {"server": 1})
    window.look(301.0)
    assert (window.calls, window.failed, window.faults) == (1, 0, {})
    window.look(10_000.0)
    assert window.calls == 0


def test_a_clock_that_goes_back_a_little_loses_nothing() -> None:
    window = HealthWindow(300.0)
    window.note_success(1000.0)
    window.note_fault("timeout", 950.0)
    assert (window.calls, window.failed) == (2, 1)
    window.look(1280.0)
    assert window.calls == 2


@pytest.mark.parametrize("later", [1e9, -1e9, 0.0])
def test_a_clock_that_jumps_far_starts_anew(later: float) -> None:
    window = HealthWindow(300.0)
    window.note_fault("server", 1_000_000.0)
    window.note_success(later)
    assert (window.calls, window.failed) == (1, 0)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), max_size=200))
def test_the_counts_are_those_of_the_buckets(events: list[tuple[float, bool]]) -> None:
    window = HealthWindow(60.0)
    for now, failed in events:
        if failed:
            window.note_fault("broken", now)
        else:
            window.note_success(now)
        assert 0 <= window.failed <= window.calls
        assert window.failed == sum(window.faults.values())
    assert window.calls <= len(events)
    assert len(window._calls) == BUCKETS
