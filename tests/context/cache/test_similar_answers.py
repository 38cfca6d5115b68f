"""The pure parts behind similar questions: answers compared, confidence within a budget, and what the layer decides by them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.cache.confidence import Evidence, comparisons_needed, false_hit_bound
from bardo.context.cache.entries import compare_answers
from bardo.context.cache.similar import SimilarAnswers, SimilarRules
from bardo.context.cache.similar_lookup import (
    Candidate,
    CompareAnswers,
    CountSimilar,
    FindSimilar,
    IndexedQuestion,
    SimilarLookup,
    after_reply,
    decode_index,
    encode_index,
    packed,
    unpacked,
)
from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import LayerFacts
from bardo.values.blocks import ImageBlock, TextBlock
from bardo.values.request import Message, Request, Sampling

FACTS = LayerFacts(tenant="t", session="s", now=1_000.0, profile="fast", count_tokens=lambda request, target: 1)
ASKED = "How do I delete a file in Linux?"
ENOUGH = Evidence(same=10_000)


def asking(text: str, **fields: Any) -> Request:
    return Request(dialect="openai_chat", model="m", messages=(Message("user", (TextBlock(text),)),), **fields)


def candidate(question: str, *, cosine: float = 0.9, pool: Evidence = ENOUGH, own: Evidence | None = None) -> Candidate:
    return Candidate(
        identity=question.encode(), cosine=cosine, question=question, answer="Use rm.", own=own or Evidence(), pool=pool
    )


def looked(
    rules: SimilarRules, request: Request, *found: Candidate, facts: LayerFacts = FACTS
) -> tuple[SimilarLookup | None, list[Any]]:
    """Run one look with these entries, and return what it gave and the effects that it yielded."""
    steps = SimilarAnswers(rules).look(request, facts)
    effects: list[Any] = []
    result: Any = None
    while True:
        try:
            effect = steps.send(result)
        except StopIteration as end:
            return end.value, effects
        effects.append(effect)
        if isinstance(effect, Embed):
            result = TextVectors(vectors=((1.0, 0.0),), fingerprint="f", tier="static")
        else:
            result = found if isinstance(effect, FindSimilar) else None


def outcome(effects: list[Any]) -> str:
    return next(effect.outcome for effect in effects if isinstance(effect, CountSimilar))


SERVE = SimilarRules(mode="serve", recheck_share=0)
PARAPHRASE = "What is the way to remove a file in Linux?"


def test_a_paraphrase_is_served_where_enough_comparisons_went_well() -> None:
    look, effects = looked(SERVE, asking(ASKED), candidate(PARAPHRASE))
    assert look is not None
    assert look.serve is not None
    assert look.against is None
    assert outcome(effects) == "served"


@pytest.mark.parametrize(
    ("pool", "own"),
    [
        (Evidence(), Evidence()),
        (Evidence(same=50), Evidence()),
        (ENOUGH, Evidence(different=1)),
        (Evidence(900, 100), Evidence()),
    ],
    ids=["nothing known", "too little known", "wrong once", "often wrong"],
)
def test_a_paraphrase_is_only_compared_where_errors_may_be_over_budget(pool: Evidence, own: Evidence) -> None:
    look, effects = looked(SERVE, asking(ASKED), candidate(PARAPHRASE, pool=pool, own=own))
    assert look is not None
    assert look.serve is None
    assert look.against is not None
    assert outcome(effects) == "shadowed"
    assert look.saw["bound"] > 0.01


def test_in_shadow_mode_nothing_is_served_however_well_it_went() -> None:
    look, effects = looked(SimilarRules(), asking(ASKED), candidate(PARAPHRASE))
    assert look is not None
    assert look.serve is None
    assert outcome(effects) == "shadowed"


def test_a_share_of_what_could_be_served_is_asked_for_anew() -> None:
    rules = SimilarRules(mode="serve", recheck_share=0.25)
    outcomes = [
        outcome(
            looked(rules, asking(ASKED), candidate(PARAPHRASE), facts=msgspec.structs.replace(FACTS, now=float(now)))[1]
        )
        for now in range(400)
    ]
    assert 60 <= outcomes.count("rechecked") <= 140
    assert outcomes.count("served") == 400 - outcomes.count("rechecked")


def test_what_the_guard_refuses_is_neither_served_nor_compared() -> None:
    look, effects = looked(SERVE, asking(ASKED), candidate("How do I rename a file in Linux?", cosine=0.99))
    assert look is not None
    assert look.serve is look.against is None
    assert outcome(effects) == "refused"
    assert look.saw["guard"] == "word"


def test_a_less_similar_entry_may_answer_where_the_most_similar_does_not() -> None:
    found = candidate("How do I delete a folder in Linux?", cosine=0.98), candidate(PARAPHRASE, cosine=0.85)
    look, _ = looked(SERVE, asking(ASKED), *found)
    assert look is not None
    assert look.serve == found[1]


def test_a_dry_run_counts_nothing() -> None:
    _, effects = looked(SERVE, asking(ASKED), candidate(PARAPHRASE), facts=msgspec.structs.replace(FACTS, dry=True))
    assert not [effect for effect in effects if isinstance(effect, CountSimilar)]


def test_everything_but_the_question_is_part_of_the_scope() -> None:
    def scope(request: Request, facts: LayerFacts = FACTS) -> bytes:
        look, _ = looked(SERVE, request, facts=facts)
        assert look is not None
        return look.scope

    plain = scope(asking(ASKED))
    assert scope(asking(PARAPHRASE)) == plain
    assert scope(asking(ASKED, sampling=Sampling(temperature=0.1))) != plain
    assert scope(asking(ASKED, max_output_tokens=9)) != plain
    assert scope(asking(ASKED), msgspec.structs.replace(FACTS, tenant="other")) != plain
    assert scope(asking(ASKED), msgspec.structs.replace(FACTS, models=("x",))) != plain
    system = asking(ASKED)
    system = msgspec.structs.replace(system, messages=(Message("system", (TextBlock("Be brief."),)), *system.messages))
    assert scope(system) != plain


def test_what_is_no_question_alone_is_not_looked_for() -> None:
    picture = Request(
        dialect="openai_chat",
        model="m",
        messages=(Message("user", (TextBlock(ASKED), ImageBlock(media_type="image/png", data="eA=="))),),
    )
    for request in (picture, asking("x" * 5_000), Request(dialect="openai_chat", model="m", messages=())):
        assert looked(SERVE, request) == (None, [])


def test_the_answer_of_the_model_is_compared_with_the_kept_one() -> None:
    look, _ = looked(SimilarRules(), asking(ASKED), candidate(PARAPHRASE))
    assert look is not None
    (effect,) = after_reply(look, "rm does it.")
    assert isinstance(effect, CompareAnswers)
    assert (effect.kept, effect.fresh) == ("Use rm.", "rm does it.")
    nothing, _ = looked(SimilarRules(), asking(ASKED))
    assert nothing is not None
    assert list(after_reply(nothing, "rm does it.")) == []


@pytest.mark.parametrize(
    ("kept", "fresh", "cosine", "found"),
    [
        ("Paris.", "**Paris**", None, "same"),
        ("Yes, you can.", "No, you cannot.", 0.95, "different"),
        ("It was in 1912.", "It was in 1921.", 0.99, "different"),
        ("It takes 3 days. " * 20, "It will take 3 days. " * 20, 0.95, "same"),
        ("It takes 3 days. " * 20, "It will take 3 days. " * 20, None, "undecided"),
        ("Use rm to remove a file.", "Cats sleep most of the day.", 0.05, "different"),
        ("Ann beat Bob.", "Bob beat Ann.", 0.99, "undecided"),
        ("", "Something", None, "different"),
    ],
)
def test_answers_are_the_same_different_or_cannot_be_told(
    kept: str, fresh: str, cosine: float | None, found: str
) -> None:
    assert compare_answers(kept, fresh, cosine) == found
    assert compare_answers(fresh, kept, cosine) == found


@given(st.floats(0.001, 0.2))
def test_the_number_of_comparisons_that_is_told_is_the_one_that_is_needed(budget: float) -> None:
    needed = comparisons_needed(budget)
    assert false_hit_bound(Evidence(same=needed), Evidence()) <= budget
    assert false_hit_bound(Evidence(same=max(0, needed - 2)), Evidence()) > budget


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 50))
def test_right_answers_raise_confidence_and_wrong_ones_lower_it(same: int, different: int, own: int) -> None:
    pool = Evidence(same, different)
    bound = false_hit_bound(pool, Evidence(own))
    assert false_hit_bound(pool, Evidence(own + 1)) <= bound
    assert false_hit_bound(pool, Evidence(own, 1)) >= bound
    assert false_hit_bound(Evidence(same + 1, different), Evidence(own)) <= bound


@given(st.lists(st.floats(-1, 1, width=32), max_size=64).map(tuple), st.text(), st.text())
def test_an_index_is_read_as_it_was_written(vector: tuple[float, ...], question: str, answer: str) -> None:
    try:
        entry = IndexedQuestion("f", b"scope", packed(vector), question, answer)
        written = encode_index(entry)
    except UnicodeEncodeError:
        return
    read = decode_index(written)
    assert read == entry
    assert read is not None
    assert tuple(unpacked(read.vector)) == vector


@given(st.binary(max_size=40))
def test_an_index_of_another_form_is_none(index: bytes) -> None:
    found = decode_index(index)
    assert found is None or isinstance(found, IndexedQuestion)
