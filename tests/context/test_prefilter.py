"""The pre-filter passes over targets that cannot take a request, and never one that its estimate and margin say can."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.layer_rows import CapRow
from bardo.context.layer import LayerFacts, Passed, TargetFacts
from bardo.context.prefilter import Prefilter
from bardo.values.blocks import TextBlock
from bardo.values.errors import ContextOverflow, Forbidden
from bardo.values.request import BardoOptions, Message, Request

pytestmark = pytest.mark.each_python


def decide(
    *targets: TargetFacts, tokens: int = 1000, most: int | None = None, layer: Prefilter | None = None, **facts: Any
) -> Passed:
    """Return what the layer decides about a prompt of so many tokens."""
    request = Request(
        model="m",
        messages=(Message("user", (TextBlock("x"),)),),
        max_output_tokens=most,
        options=facts.pop("options", BardoOptions()),
    )
    known = LayerFacts(
        tenant="", session="", now=0.0, profile="fast", count_tokens=lambda _, __: tokens, targets=targets, **facts
    )
    steps = (layer or Prefilter(margin=0.1)).steps(request, known)
    with pytest.raises(StopIteration) as done:
        next(steps)
    found = done.value.value
    assert isinstance(found, Passed)
    return found


def target(model: str = "m", **facts: Any) -> TargetFacts:
    return TargetFacts(provider="lab", model=model, dialect="openai_chat", **facts)


def test_a_target_that_is_too_small_is_passed_over_and_said_so() -> None:
    found = decide(target("small", window=500), target("large", window=9000), target("unknown"))
    assert found.order == (1, 2)
    assert found.receipt.did == "passed over lab/small"
    [lost] = found.degraded
    assert (lost.what, lost.asked) == ("model", "lab/small")
    assert "500" in str(lost.why)
    assert "1000" in str(lost.why)


def test_the_largest_window_is_named_where_none_is_large_enough() -> None:
    with pytest.raises(ContextOverflow, match="800") as refused:
        decide(target("a", window=500), target("b", window=800), target("c", window=300))
    assert refused.value.overflow == (1000, 800, 0)


def test_the_longest_answer_counts_while_another_target_has_room_and_refuses_nothing() -> None:
    small, large = target("small", window=1100), target("large", window=9000)
    assert decide(small, large, most=500).order == (1,)
    assert decide(small, most=500).order is None
    assert decide(target(window=9000, max_output_tokens=100), large, most=500).order == (1,)


def test_a_target_that_fails_is_passed_over_unless_all_fail() -> None:
    assert decide(target("a", down=True), target("b")).order == (1,)
    assert decide(target("a", down=True), target("b", down=True)).order is None


def test_caps_hold_for_their_workloads_and_below_their_vitality() -> None:
    cheap = CapRow(workloads=("heartbeat*",), models=("small*",), why="a tick needs no more")
    layer = Prefilter(caps=[cheap])
    both = target("large"), target("small-1")
    assert decide(*both, layer=layer, workload="dream").order is None
    assert decide(*both, layer=layer, workload="heartbeat_t1").order == (1,)
    with pytest.raises(Forbidden, match="a tick needs no more"):
        decide(target("large"), layer=layer, workload="heartbeat_t1")
    dying = Prefilter(caps=[CapRow(vitality_below=0.3, most_usd_per_million=1.0)])
    dear, free = target("dear", input_nanos=3_000_000_000), target("free", input_nanos=0)
    assert decide(dear, free, layer=dying, options=BardoOptions(vitality=0.2)).order == (1,)
    assert decide(dear, free, layer=dying, options=BardoOptions(vitality=0.3)).order is None
    assert decide(dear, free, layer=dying).order is None
    with pytest.raises(ContextOverflow, match="100"):
        decide(target(), layer=Prefilter(caps=[CapRow(most_prompt_tokens=100)]))


_SIZES = st.none() | st.integers(1, 3000)
_TARGETS = st.lists(
    st.builds(target, st.sampled_from(["a", "b"]), window=_SIZES, max_output_tokens=_SIZES, down=st.booleans()),
    min_size=1,
    max_size=5,
)


@given(_TARGETS, st.integers(0, 3000), st.none() | st.integers(1, 3000), st.sampled_from([0.0, 0.15, 0.5]))
def test_what_fits_by_estimate_and_margin_is_never_refused(
    targets: list[TargetFacts], tokens: int, most: int | None, margin: float
) -> None:
    fits = [
        place
        for place, one in enumerate(targets)
        if one.window is None or int(tokens * (1 - margin)) + (most or 0) <= one.window
    ]
    least = int(tokens * (1 - margin))
    if all(one.window is not None and least > one.window for one in targets):
        with pytest.raises(ContextOverflow) as refused:
            decide(*targets, tokens=tokens, most=most, layer=Prefilter(margin=margin))
        assert refused.value.overflow.limit == max(one.window or 0 for one in targets)
        return
    found = decide(*targets, tokens=tokens, most=most, layer=Prefilter(margin=margin))
    kept = tuple(range(len(targets))) if found.order is None else found.order
    assert kept == tuple(sorted(kept))
    assert len(found.degraded) == len(targets) - len(kept)
    for place in fits:
        one = targets[place]
        spared = one.max_output_tokens is None or most is None or most <= one.max_output_tokens
        assert place in kept or one.down or not spared
