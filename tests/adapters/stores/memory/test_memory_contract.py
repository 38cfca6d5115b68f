"""What every reasoning memory keeps and finds, whichever engine holds it: SQLite always, PostgreSQL where one can be started."""

from __future__ import annotations

import pytest

from bardo.adapters.stores.database.problems import AmbiguousRequest
from bardo.adapters.stores.log.row import mended_text
from bardo.adapters.stores.memory.episodes import LONGEST_ANSWER, EpisodeSelection
from bardo.values.errors import InvalidRequest
from bardo.values.reasoning import ReasoningStepType, ReasoningVisibility
from support.episodes import NOW, SIGNATURE, Kept, draft
from support.hostile_text import HOSTILE

pytestmark = pytest.mark.each_python

TIDES = draft(
    "req_a1",
    "Why are there two high tides a day?",
    "The moon pulls the near side more.\n\nWait, but the far side bulges too.",
    "Because the Earth falls towards the moon.",
)
RIVERS = draft("req_a2", "Which river is the longest?", "The Nile or the Amazon.", "The Nile, by most counts.")


def test_an_episode_reads_back_with_all_that_was_kept_of_it(kept: Kept) -> None:
    kept.add(
        draft(
            "req_1",
            "Is 91 prime?",
            "91 = 7 * 13.\n\nTherefore it is not.",
            "No.",
            session="s1",
            schema_ok=True,
            tokens=7,
            tenant="acme",
            key_id="key_1",
            subsystem="maths",
            reasoning_verdict="honoured",
            outcome="ok",
            input_tokens=4,
            output_tokens=9,
            cost_nanos=1_500_000,
            tags=("night",),
        )
    )
    found = kept.memory.show("req_1")
    assert found is not None
    assert (found.id, found.request_id, found.started_at) == ("ep_1", "req_1", NOW)
    assert (found.tenant, found.key_id, found.session, found.subsystem) == ("acme", "key_1", "s1", "maths")
    assert (found.provider, found.model, found.question, found.answer) == ("lab", "m", "Is 91 prime?", "No.")
    assert (found.outcome, found.verdict, found.schema_ok, found.feedback) == ("ok", "honoured", True, ())
    assert (found.input_tokens, found.output_tokens, found.cost_usd, found.tags) == (4, 9, 0.0015, ("night",))
    chain = found.reasoning
    assert (chain.content, chain.visibility) == ("91 = 7 * 13.\n\nTherefore it is not.", ReasoningVisibility.VISIBLE)
    assert (chain.reasoning_tokens, chain.reported, chain.tokens_approx) == (7, True, False)
    assert [step.step_type for step in chain.steps] == [
        ReasoningStepType.ANALYSIS,
        ReasoningStepType.DECISION,
    ]


def test_thinking_that_cannot_be_read_is_kept_as_its_tokens_alone(kept: Kept) -> None:
    kept.add(draft("req_1", "Prove it.", "", "Done.", opaque=True, tokens=812))
    found = kept.memory.show("ep_1")
    assert found is not None
    assert (found.reasoning.visibility, found.reasoning.content) == (ReasoningVisibility.OPAQUE, None)
    assert (found.reasoning.reasoning_tokens, found.reasoning.blocks) == (812, ())
    assert kept.ids(SIGNATURE) == []
    assert kept.memory.stats().not_visible == 1


def test_words_of_questions_thinking_and_answers_are_found(kept: Kept) -> None:
    kept.add(TIDES, RIVERS)
    assert kept.ids("tides") == ["req_a1"]
    assert kept.ids("BULGES") == ["req_a1"]
    assert kept.ids("counts nile") == ["req_a2"]
    assert kept.ids('"far side"') == ["req_a1"]
    assert kept.ids('"side far"') == []
    assert kept.ids("bulg*") == ["req_a1"]
    assert kept.ids("bulg") == []
    assert kept.ids("volcano") == []


def test_episodes_with_all_words_come_before_those_with_half(kept: Kept) -> None:
    kept.add(draft("req_1", "moon moon moon moon", "moon", "x"), TIDES, RIVERS)
    assert kept.ids("moon tides") == ["req_a1", "req_1"]
    assert kept.ids("what is the longest volcano") == ["req_a2"]
    assert kept.ids("the volcano of Iceland") == []


def test_case_accents_and_scripts_without_spaces_make_no_difference(kept: Kept) -> None:
    kept.add(
        draft("req_1", "Où est le CAFÉ Ärger?", "là", "ici"),
        draft("req_2", "東京都の人口は？", "約1400万人です", "多い"),
    )
    assert kept.ids("cafe") == kept.ids("Café") == kept.ids("ärger") == kept.ids("ou") == ["req_1"]
    assert kept.ids("東京") == kept.ids("京都") == kept.ids("人口") == kept.ids("都") == ["req_2"]
    assert kept.ids("東口") == []


HOSTILE_QUERIES = (
    "",
    "   ",
    '"',
    '""" OR 1=1 --',
    "'; DROP TABLE memory_episodes; --",
    "NEAR(a b, 5)",
    "AND OR NOT",
    "words: tides",
    "*",
    "tides*moon*",
    "^tides",
    "{words} : x",
    "(tides",
    "tides)",
    "a & | ! <-> b:*",
    "\\",
    "%_",
    "\0nul\0",
    "half \ud83e",
    "\u202e\u200b",
    "-tides",
    "+",
    "x" * 50_000,
    '"' * 5_000,
    "a " * 5_000,
    ":phrases :param_1 %(x)s %s ?",
)


def test_no_query_is_read_in_the_language_of_a_database(kept: Kept) -> None:
    kept.add(TIDES)
    for query in (*HOSTILE_QUERIES, *HOSTILE.values()):
        assert all(found == "req_a1" for found in kept.ids(query)), query
    assert kept.ids("tides") == ["req_a1"]


def test_words_of_a_query_language_are_only_words(kept: Kept) -> None:
    kept.add(draft("req_1", "to be or not to be", "hm", "x"), TIDES)
    assert sorted(kept.ids("NOT tides")) == ["req_1", "req_a1"]
    assert kept.ids("or not") == ["req_1"]


def test_hostile_texts_are_kept_as_they_are(kept: Kept) -> None:
    kept.add(*(draft(f"req_{name}", text, f"x {text}", text) for name, text in HOSTILE.items()))
    assert kept.memory.stats().episodes == len(HOSTILE)
    for name, text in HOSTILE.items():
        found = kept.memory.show(f"ep_{name}")
        assert found is not None
        assert found.answer == mended_text(text, LONGEST_ANSWER)


def test_texts_that_hold_anything_are_kept_and_found(kept: Kept) -> None:
    nasty = "'quote' \"double\" \\ back \0nul \ud83ehalf :name %s $$ <-> | & ! \x1b[31m \u202e"
    kept.add(draft("req_1", nasty, nasty + " needle", nasty))
    [found] = kept.memory.search("needle")
    assert "needle" in found.excerpt
    assert kept.ids("double") == ["req_1"]


def test_texts_of_any_length_are_kept_cut(kept: Kept) -> None:
    words = " ".join(f"w{number}é" for number in range(40_000))
    kept.add(draft("req_1", "beginning " + words, words, words), draft("req_2", "é" * 90_000, "ok", "x" * 90_000))
    assert kept.ids("beginning") == ["req_1"]
    found = kept.memory.show("req_1")
    assert found is not None
    assert found.question.endswith("more characters]")
    assert kept.ids("é" * 90_000) == ["req_2"]


def test_what_a_selection_does_not_name_is_not_found(kept: Kept) -> None:
    kept.add(
        draft("req_1", "tides", "x", tenant="a", key_id="k1", subsystem="s", session="c1", started_at=NOW - 100),
        draft("req_2", "tides", "x", tenant="b", key_id="k2", model="other", session="c2", started_at=NOW - 50),
    )

    def found(**fields: object) -> list[str]:
        return kept.ids("tides", selection=EpisodeSelection(**fields))  # type: ignore[arg-type]

    assert sorted(found()) == ["req_1", "req_2"]
    assert found(tenant="a") == found(key="k1") == found(subsystem="s") == found(model="m") == ["req_1"]
    assert found(session="c1") == found(before=NOW - 60) == ["req_1"]
    assert found(since=NOW - 60) == ["req_2"]
    assert found(tenant="") == found(tenant="a' OR '1'='1") == found(tenant="a", key="k2") == []
    assert kept.memory.show("req_2", tenant="a") is None
    assert kept.memory.stats(tenant="a").episodes == 1


def test_an_episode_is_found_by_any_beginning_only_it_has(kept: Kept) -> None:
    kept.add(TIDES, RIVERS)
    assert getattr(kept.memory.show("ep_a1"), "request_id", None) == "req_a1"
    assert kept.memory.show("") is None
    assert kept.memory.show("ep_b") is None
    with pytest.raises(AmbiguousRequest, match="ep_a1"):
        kept.memory.show("ep_a")


def test_a_call_that_is_stored_twice_has_one_episode(kept: Kept) -> None:
    kept.add(TIDES, TIDES)
    assert kept.memory.stats().episodes == 1


def test_results_are_bounded_and_newest_first_where_they_are_alike(kept: Kept) -> None:
    kept.add(*(draft(f"req_{number}", "the same question", "y") for number in range(12)))
    assert kept.ids("question", limit=2) == ["req_11", "req_10"]
    assert len(kept.ids("question", limit=0)) == 1
    with pytest.raises(InvalidRequest, match="by is"):
        kept.memory.search("x", by="magic")  # type: ignore[arg-type]
