"""When a change in what a provider has in its cache pays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bardo.context.steps.cache_cost import (
    Edit,
    FirstChange,
    WarmPrefix,
    behind,
    first_worth_making,
    warm_prefix,
)
from support.layer_runs import ANSWERING, facts

WARM = WarmPrefix(tokens=10_000, read_share=0.1)


def test_a_change_behind_the_cache_always_pays() -> None:
    assert first_worth_making([Edit(before=10_000, saved=1)], WARM, 1) == 0


def test_a_change_early_in_the_cache_has_to_save_what_is_read_anew_behind_it() -> None:
    # 8,000 tokens are read anew for nine tenths more: one and a half times 7,200 has to be saved, at a tenth of 1,000 a turn.
    edit = [Edit(before=1_000, saved=1_000)]
    assert first_worth_making(edit, WARM, 107) == 1
    assert first_worth_making(edit, WARM, 109) == 0


def test_changes_are_made_from_the_place_on_from_which_they_save_most() -> None:
    edits = [Edit(before=0, saved=10), Edit(before=9_000, saved=500), Edit(before=9_600, saved=300)]
    assert first_worth_making(edits, WARM, 100) == 1


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), max_size=30),
    st.integers(0, 20_000),
    st.integers(1, 200),
)
def test_no_other_place_would_save_more(gaps: list[tuple[int, int]], warm: int, turns: int) -> None:
    edits, place = [], 0
    for gap, saved in gaps:
        edits.append(Edit(before=place + gap, saved=saved))
        place += gap + saved
    prefix = WarmPrefix(tokens=warm, read_share=0.1)
    found = first_worth_making(edits, prefix, turns)
    nets = [net(edits[first:], prefix, turns) for first in range(len(edits) + 1)]
    assert abs(nets[found] - max(nets)) < 1e-6


def net(edits: list[Edit], warm: WarmPrefix, turns: int) -> float:
    """Return what changes save less what they cost, as the page says it, in tokens at the price of input."""
    if not edits:
        return 0.0
    inside = [one for one in edits if one.before < warm.tokens]
    outside = [one for one in edits if one.before >= warm.tokens]
    saved = sum(one.saved * 0.1 * turns for one in inside) + sum(one.saved * (1 + 0.1 * (turns - 1)) for one in outside)
    read_anew = max(0, warm.tokens - edits[0].before - sum(one.saved for one in inside)) if inside else 0
    return saved - 1.5 * 0.9 * read_anew


def test_what_is_warm_is_what_was_measured_or_was_sent_lately() -> None:
    known = facts(replace(ANSWERING, warm_tokens=500, input_nanos=100, cache_read_nanos=25), now=1_000.0)
    assert warm_prefix(known, 2_000, 900.0, 300.0) == WarmPrefix(tokens=2_000, read_share=0.25)
    assert warm_prefix(known, 2_000, 600.0, 300.0) == WarmPrefix(tokens=500, read_share=0.25)


def test_nothing_is_warm_behind_a_change_of_an_earlier_layer() -> None:
    known = facts(found={"compress": FirstChange(300), "classify": object()})
    assert warm_prefix(known, 2_000, 999.0, 300.0).tokens == 300


def test_places_are_those_of_the_prompt_as_it_was_sent() -> None:
    made = [Edit(before=100, saved=50), Edit(before=900, saved=100)]
    asked = [Edit(before=90, saved=1), Edit(before=500, saved=1), Edit(before=1_000, saved=1)]
    assert [one.before for one in behind(asked, made)] == [90, 450, 850]
