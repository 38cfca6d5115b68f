"""What is learned of models: per cluster where much was seen, from wider levels where little was, and less of what is long ago."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.clusters import Share, fit_clusters, shipped_clusters
from bardo.routing.learned.outcomes import MOST_MODELS, Outcome, OutcomeTable

EMBEDDING = shipped_embedding()
CODE = [f"Write a python function to sort a list of {n} numbers and return it." for n in range(60)]
CHAT = [f"Who was the king of France in the year {n}, and whom did he marry?" for n in range(1400, 1460)]


def test_two_kinds_of_prompts_fall_into_different_clusters() -> None:
    clusters = fit_clusters(CODE + CHAT, EMBEDDING, Random(0), fine=8)
    code = {clusters.shares(prompt, EMBEDDING)[0].cluster for prompt in CODE}
    chat = {clusters.shares(prompt, EMBEDDING)[0].cluster for prompt in CHAT}
    assert not code & chat


def test_the_shipped_clusters_are_made_for_the_shipped_embedding() -> None:
    assert shipped_clusters().embedding == EMBEDDING.fingerprint
    assert len(shipped_clusters().centroids) == len(shipped_clusters().parents) == 64


@given(st.text(max_size=200))
def test_shares_add_up_to_one(text: str) -> None:
    shares = shipped_clusters().shares(text, EMBEDDING)
    assert math.isclose(sum(one.share for one in shares), 1)
    assert [one.share for one in shares] == sorted((one.share for one in shares), reverse=True)


def test_no_prompt_is_an_error() -> None:
    with pytest.raises(ValueError, match="no prompts"):
        fit_clusters([], EMBEDDING, Random(0))


def taught(*outcomes: tuple[int, str, float], half_life: float = math.inf, at: float = 0) -> OutcomeTable:
    table = OutcomeTable(shipped_clusters(), half_life)
    for cluster, model, success in outcomes:
        table.add(Outcome(shares=(Share(cluster, 1.0),), model=model, success=success, cost=0.5, at=at))
    return table


def test_a_model_that_was_never_seen_succeeds_once_in_two() -> None:
    estimate = taught().estimate("m", (Share(0, 1.0),))
    assert estimate.success == pytest.approx(0.5)
    assert estimate.cost is None


def test_evidence_counts_most_in_its_own_cluster() -> None:
    table = taught(*[(0, "m", 1.0)] * 50)
    other = next(n for n, parent in enumerate(table.clusters.parents) if parent != table.clusters.parents[0])
    assert table.estimate("m", (Share(0, 1.0),)).success > 0.97
    assert table.estimate("m", (Share(other, 1.0),)).success > 0.5
    own, far = table.estimate("m", (Share(0, 1.0),)), table.estimate("m", (Share(other, 1.0),))
    assert own.alpha + own.beta > 5 * (far.alpha + far.beta)


def test_what_is_long_ago_counts_less() -> None:
    table = taught(*[(0, "m", 0.0)] * 20, half_life=100)
    now, later = (table.estimate("m", (Share(0, 1.0),), at) for at in (0, 1000))
    assert now.success < 0.1 < later.success < 0.5
    assert later.alpha + later.beta < now.alpha + now.beta


def test_outcomes_that_come_late_are_faded_as_if_they_had_come_in_time() -> None:
    in_time, late = OutcomeTable(shipped_clusters(), 100), OutcomeTable(shipped_clusters(), 100)
    first, second = (
        Outcome(shares=(Share(3, 1.0),), model="m", success=s, at=at) for s, at in ((1.0, 0.0), (0.0, 200.0))
    )
    for table, order in ((in_time, (first, second)), (late, (second, first))):
        for outcome in order:
            table.add(outcome)
    expected, found = (table.estimate("m", (Share(3, 1.0),), 200) for table in (in_time, late))
    assert (found.alpha, found.beta) == pytest.approx((expected.alpha, expected.beta))


def test_the_table_is_bounded() -> None:
    table = taught(*[(0, f"m{n}", 1.0) for n in range(MOST_MODELS)])
    assert not table.add(Outcome(shares=(Share(0, 1.0),), model="one more", success=1.0))
    assert len(table.models) == MOST_MODELS


outcomes = st.lists(st.tuples(st.integers(0, 63), st.sampled_from("abc"), st.floats(0, 1)), max_size=40)


@given(outcomes, st.integers(0, 63))
def test_an_estimate_is_a_posterior(seen: list[tuple[int, str, float]], cluster: int) -> None:
    estimate = taught(*seen).estimate("a", (Share(cluster, 0.7), Share((cluster + 1) % 64, 0.3)))
    assert estimate.alpha > 0
    assert estimate.beta > 0
    assert 0 < estimate.success < 1
