"""Who is found for an intent: strict before relaxed, the first provider that can, and what that one lacks."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.routing import reasons
from bardo.routing.candidates import Candidate, CandidateIndex, CandidateList, Conditions, Prices
from bardo.routing.decision import decide
from bardo.routing.resolver import choices, relaxed, resolve
from bardo.routing.scorer import choices_by_score, compute_backend_score, context_of
from bardo.values.request import QUALITIES, Intent

pytestmark = pytest.mark.each_python

OPUS = Candidate(
    provider="blockrun",
    model="claude-opus-4-6",
    features=frozenset({"adaptive_thinking", "interleaved_thinking", "citations"}),
    prices=Prices(input=5, output=25),
    rating=1.0,
)
SONNET = msgspec.structs.replace(OPUS, model="claude-sonnet-4-6", prices=Prices(input=3, output=15), rating=0.8)
FLASH = Candidate(
    provider="blockrun",
    model="gemini-3-flash",
    features=frozenset({"low_effort"}),
    prices=Prices(input=0.5, output=3),
    rating=0.6,
)
VENICE_R1 = Candidate(
    provider="venice",
    model="deepseek-r1",
    features=frozenset({"visible_thinking", "privacy"}),
    rating=0.8,
    payments=("diem",),
)
VENICE_LLAMA = Candidate(
    provider="venice",
    model="llama-3.3-70b",
    features=frozenset({"privacy"}),
    prices=Prices(input=0.7, output=2.8),
    rating=0.4,
    payments=("diem",),
)
BLOCKRUN_ONLY = CandidateIndex([OPUS, SONNET, FLASH])
BOTH = CandidateIndex([OPUS, SONNET, FLASH, VENICE_R1, VENICE_LLAMA])


def names(index: CandidateIndex, intent: Intent, conditions: Conditions = Conditions()) -> list[str]:  # noqa: B008
    return [f"{one.candidate.provider}/{one.candidate.model}" for one in choices(index, intent, conditions)]


def test_what_only_a_later_provider_has_is_found_there() -> None:
    found = resolve(BOTH, Intent(require=("visible_thinking",), quality="maximum", cost_sensitivity=0.0))
    assert found is not None
    assert (found.provider, found.model, found.degraded) == ("venice", "deepseek-r1", ())
    assert found.features == ("privacy", "visible_thinking")


def test_what_nobody_has_is_a_preference_in_the_second_pass() -> None:
    # The document's example "Degradation is visible": a dream where only one provider is configured.
    dream = Intent(prefer=("visible_thinking", "privacy"), quality="high", subsystem="dream")
    found = resolve(BLOCKRUN_ONLY, dream)
    assert found is not None
    assert (found.provider, found.degraded) == ("blockrun", ("visible_thinking", "privacy"))
    assert found.model == "claude-opus-4-6"
    death = Intent(require=("visible_thinking",), prefer=("citations",), quality="maximum", cost_sensitivity=0.0)
    found = resolve(BLOCKRUN_ONLY, death)
    assert found is not None
    assert (found.model, found.degraded) == ("claude-opus-4-6", ("visible_thinking",))


@pytest.mark.parametrize(
    ("intent", "model"),
    [
        (Intent(quality="maximum", cost_sensitivity=0.0), "claude-opus-4-6"),
        # 0.7 × 1.0 + 0.3 × 0 = 0.70 for Opus, 0.7 × 0.8 + 0.3 × 0.4 = 0.68 for Sonnet.
        (Intent(quality="high", cost_sensitivity=0.3), "claude-opus-4-6"),
        # High quality at a price that counts for no more than half: the best. Where it counts for more, 0.4 × 1.0 + 0 = 0.40,
        # 0.4 × 0.8 + 0.6 × 0.4 = 0.56.
        (Intent(quality="high", cost_sensitivity=0.5), "claude-opus-4-6"),
        (Intent(quality="high", cost_sensitivity=0.6), "claude-sonnet-4-6"),
        # 0.5 × 1.0 + 0 = 0.50, 0.5 × 0.8 + 0.5 × 0.4 = 0.60, and 0.5 × 0.6 + 0.5 × 0.8875 = 0.74 for Flash.
        (Intent(quality="medium", cost_sensitivity=0.5), "gemini-3-flash"),
        (Intent(quality="minimum", cost_sensitivity=1.0), "gemini-3-flash"),
        (Intent(quality="medium", cost_sensitivity=0.5, prefer=("citations",)), "claude-sonnet-4-6"),
    ],
    ids=str,
)
def test_a_model_is_chosen_by_quality_and_price(intent: Intent, model: str) -> None:
    found = resolve(BLOCKRUN_ONLY, intent)
    assert found is not None
    assert found.model == model


def test_the_order_of_providers_goes_before_their_prices() -> None:
    cheap = Intent(quality="low", cost_sensitivity=1.0)
    assert names(BOTH, cheap) == ["blockrun/gemini-3-flash", "venice/llama-3.3-70b"]
    assert names(CandidateIndex([VENICE_LLAMA, FLASH]), cheap) == ["venice/llama-3.3-70b", "blockrun/gemini-3-flash"]


def test_a_call_costs_what_its_tokens_cost_and_nothing_with_diem() -> None:
    found = resolve(BOTH, Intent(model="claude-sonnet-4.6"))
    assert found is not None
    # 2000 tokens at $3 a million and 500 at $15.
    assert found.estimated_cost_usd == pytest.approx(0.0135)
    unknown = resolve(BOTH, Intent(model="deepseek-r1"))
    assert unknown is not None
    assert unknown.estimated_cost_usd is None
    free = resolve(BOTH, Intent(model="deepseek-r1", diem_available=True))
    assert free is not None
    assert free.estimated_cost_usd == 0


@pytest.mark.parametrize(
    "name",
    ["claude-opus-4-6", "claude-opus-4.6", "Claude-Opus-4-6", "anthropic/claude-opus-4.6", "blockrun/claude-opus-4-6"],
)
def test_a_named_model_is_found_however_it_is_spelled(name: str) -> None:
    found = resolve(BOTH, Intent(model=name))
    assert found is not None
    assert found.model == "claude-opus-4-6"


def test_a_model_that_nobody_has_is_not_found() -> None:
    assert resolve(BOTH, Intent(model="gpt-5")) is None
    assert resolve(CandidateIndex([]), Intent()) is None


def test_every_refusal_has_a_reason() -> None:
    slow = msgspec.structs.replace(OPUS, latency_ms=2400, health="down")
    intent = Intent(require=("visible_thinking", "privacy", "citations"), max_latency_ms=2000)
    conditions = Conditions(private=True, tier_cap="medium", phase_cap="low")
    assert slow.refusals(intent, conditions) == (
        "lacks:visible_thinking",
        "lacks:privacy",
        "private",
        "tier_cap",
        "phase_cap",
        "latency:2400",
        "down",
    )
    assert not OPUS.refusals(Intent(require=("citations",)))
    assert all(reasons.sentence(one) != one for one in slow.refusals(intent, conditions))


def test_latency_is_doubled_in_the_second_pass_and_no_more() -> None:
    slow = CandidateIndex([msgspec.structs.replace(OPUS, latency_ms=2000)])
    assert [one.relaxed for one in choices(slow, Intent(max_latency_ms=2000))] == [False]
    assert [one.relaxed for one in choices(slow, Intent(max_latency_ms=1000))] == [True]
    assert resolve(slow, Intent(max_latency_ms=999)) is None


def test_conditions_are_never_relaxed() -> None:
    private = Conditions(private=True)
    assert names(BOTH, Intent(quality="maximum"), private) == ["venice/deepseek-r1"]
    assert resolve(BLOCKRUN_ONLY, Intent(), private) is None
    assert resolve(BOTH, Intent(), Conditions(down=frozenset({"blockrun", "venice"}))) is None
    capped = resolve(BOTH, Intent(quality="maximum", cost_sensitivity=0.0), Conditions(tier_cap="medium"))
    assert capped is not None
    assert capped.model == "gemini-3-flash"


def test_named_candidates_are_asked_in_their_order() -> None:
    named = CandidateList([FLASH, OPUS, VENICE_R1])
    found = list(choices(named, Intent(model="an-alias", quality="maximum", require=("citations",))))
    assert [(one.candidate.model, one.relaxed) for one in found] == [
        ("claude-opus-4-6", False),
        ("gemini-3-flash", True),
        ("deepseek-r1", True),
    ]


def test_a_decision_keeps_why_others_are_not_asked() -> None:
    decision = decide(BOTH, Intent(require=("visible_thinking",)))
    first = decision.considered[0]
    assert (first.model, first.relaxed) == ("deepseek-r1", False)
    assert [(one.model, one.reasons) for one in decision.refused] == [
        ("claude-opus-4-6", ("lacks:visible_thinking",)),
        ("claude-sonnet-4-6", ("lacks:visible_thinking",)),
        ("llama-3.3-70b", ("lacks:visible_thinking",)),
    ]
    second = decision.considered[1]
    assert (second.model, second.relaxed, second.reasons) == ("gemini-3-flash", True, ("lacks:visible_thinking",))
    assert decision.considered[0].unknown == ("cost",)
    many = CandidateIndex([msgspec.structs.replace(OPUS, model=f"m{place}") for place in range(50)])
    refused = decide(many, Intent(require=("privacy",)))
    # Eight of a provider are listed, and the one of them that is asked all the same stands elsewhere.
    assert (len(refused.refused), refused.more) == (7, 42)


# --- laws -----------------------------------------------------------------------------------------------------------

FEATURES = ("citations", "privacy", "visible_thinking", "vision")
some_features = st.lists(st.sampled_from(FEATURES), max_size=3).map(tuple)
candidates = st.lists(
    st.builds(
        Candidate,
        provider=st.sampled_from(["a", "b", "c"]),
        model=st.sampled_from([f"m{place}" for place in range(6)]),
        features=st.frozensets(st.sampled_from(FEATURES)),
        prices=st.none() | st.builds(Prices, input=st.floats(0, 20), output=st.floats(0, 100)),
        rating=st.none() | st.sampled_from([0.2, 0.4, 0.6, 0.8, 1.0]),
        latency_ms=st.none() | st.integers(1, 4000),
        payments=st.sampled_from([(), ("diem",)]),
        health=st.sampled_from(["healthy", "degraded", "down", "unknown"]),
    ),
    max_size=12,
    unique_by=lambda one: (one.provider, one.model),
)
intents = st.builds(
    Intent,
    model=st.none() | st.sampled_from([f"m{place}" for place in range(6)]),
    require=some_features,
    prefer=some_features,
    quality=st.sampled_from(QUALITIES),
    max_latency_ms=st.none() | st.integers(1, 4000),
    cost_sensitivity=st.floats(0, 1),
    diem_available=st.booleans(),
)
conditions = st.builds(
    Conditions,
    private=st.booleans(),
    tier_cap=st.none() | st.sampled_from(QUALITIES),
    down=st.frozensets(st.sampled_from(["a", "b", "c"]), max_size=1),
)


def able(found: list[Candidate], intent: Intent, held: Conditions) -> list[Candidate]:
    """Return who can do it, by the plain definition."""
    return [
        one for one in found if not one.refusals(intent, held) and (intent.model is None or one.model == intent.model)
    ]


@given(candidates, intents, conditions)
def test_a_resolution_is_of_the_first_provider_that_can(
    found: list[Candidate], intent: Intent, held: Conditions
) -> None:
    index = CandidateIndex(found)
    resolution = resolve(index, intent, held)
    for asked in (intent, relaxed(intent)):
        ready = able([*index], asked, held)
        if ready:
            assert resolution is not None
            assert resolution.provider == ready[0].provider
            chosen = next(one for one in ready if one.provider == resolution.provider and one.model == resolution.model)
            wanted = {*intent.require, *intent.prefer}
            assert {*resolution.degraded} == wanted - chosen.features
            assert len(resolution.degraded) == len({*resolution.degraded})
            assert resolution == chosen.resolution(intent)
            return
    assert resolution is None


@given(candidates, intents, conditions, st.booleans())
def test_strict_choices_go_before_relaxed_ones_and_nobody_refused_is_chosen(
    found: list[Candidate], intent: Intent, held: Conditions, by_score: bool
) -> None:
    index = CandidateIndex(found)
    chosen = list((choices_by_score if by_score else choices)(index, intent, held))
    assert sorted(chosen, key=lambda one: one.relaxed) == chosen
    assert len({(one.candidate.provider, one.candidate.model) for one in chosen}) == len(chosen)
    for one in chosen:
        assert not one.candidate.refusals(relaxed(intent) if one.relaxed else intent, held)
    assert chosen == list((choices_by_score if by_score else choices)(CandidateIndex(found), intent, held))


@given(candidates, intents.filter(lambda one: one.model is None), conditions)
def test_the_index_loses_no_best_candidate(found: list[Candidate], intent: Intent, held: Conditions) -> None:
    """What is left out of a search is beaten by something in it, for every weight of the price."""
    index = CandidateIndex(found)
    ready, context = able(found, intent, held), context_of(intent)
    first = next(iter(choices_by_score(index, intent, held)), None)
    if not ready:
        assert first is None or first.relaxed
        return
    assert first is not None
    assert not first.relaxed
    best = max(compute_backend_score(one, context) for one in ready)
    assert compute_backend_score(first.candidate, context) == pytest.approx(best)


@given(candidates, intents, conditions)
def test_a_decision_lists_each_candidate_that_is_refused(
    found: list[Candidate], intent: Intent, held: Conditions
) -> None:
    index = CandidateIndex(found)
    decision = decide(index, intent, held, most=100)
    among = [one for one in found if intent.model is None or one.model == intent.model]
    refused = {(one.provider, one.model): one.refusals(intent, held) for one in among if one.refusals(intent, held)}
    told = [*decision.refused, *(one for one in decision.considered if one.relaxed and one.reasons)]
    assert {(one.provider, one.model): one.reasons for one in told} == refused
    assert all(not one.reasons for one in decision.considered if not one.relaxed)


def test_where_price_and_rating_weigh_the_same_the_better_rated_goes_first() -> None:
    # 0.5 × 0.6 + 0.5 × 0.8, and 0.5 × 0.8 + 0.5 × 0.6.
    cheap = msgspec.structs.replace(FLASH, model="cheap", prices=Prices(input=2, output=2), rating=0.6)
    good = msgspec.structs.replace(FLASH, model="good", prices=Prices(input=4, output=4), rating=0.8)
    for index in (CandidateIndex([cheap, good]), CandidateIndex([good, cheap])):
        assert names(index, Intent(quality="medium")) == ["blockrun/good"]


def test_of_equal_scores_the_better_rated_goes_first_and_then_the_order_of_the_configuration() -> None:
    # Quality weighs twice what features weigh: 0.8 + 0.5 × 0.2 = 0.6 + 0.5 × 0.6.
    wanted = ("one", "two", "three", "four", "five")
    able = Candidate(provider="able", model="m", features=frozenset(wanted[:3]), rating=0.6)
    good = Candidate(provider="good", model="m", features=frozenset(wanted[:1]), rating=0.8)
    twin = msgspec.structs.replace(good, provider="twin")
    chosen = choices_by_score(CandidateIndex([able, twin, good]), Intent(prefer=wanted))
    assert [one.candidate.provider for one in chosen] == ["twin", "good", "able"]
