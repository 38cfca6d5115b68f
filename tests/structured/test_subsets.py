"""The rows of subsets and ladders are whole and consistent."""

from __future__ import annotations

import pytest

from bardo.catalog.load import builtin
from bardo.structured.modes import MODE_OF, RequestConditions, SchemaTarget, ladders, ordered, refusal, rungs_of
from bardo.structured.rewrite.keywords import RULES
from bardo.structured.subsets import subset, subsets
from bardo.values.errors import InternalError
from support.offenders import each_case


@each_case("name", sorted(subsets()))
def test_a_subset_names_rules_that_exist_and_its_source(name: str) -> None:
    row = subset(name)
    assert row.source
    assert row.keywords - {"default", "propertyOrdering"} <= RULES
    assert bool(row.formats) == ("format" in row.keywords)


def test_an_unknown_subset_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="no schema subset"):
        subset("none")


def test_every_rung_names_a_subset_that_exists() -> None:
    assert {rung.subset for row in ladders() for rung in row.rungs} <= subsets().keys()


def test_forms_that_need_an_object_at_the_root_ask_for_one() -> None:
    for row in ladders():
        for rung in row.rungs:
            # Gemini's subset has any root, and its tools take one schema per argument list, which bardo wraps as well.
            if rung.form == "json_object":
                assert subset(rung.subset).root_object


@each_case("row", builtin().providers, ids=lambda row: row.id)
def test_every_provider_has_a_ladder_that_ends_in_the_prompt(row: object) -> None:
    provider, dialect = row.id, row.dialect  # type: ignore[attr-defined]
    target = SchemaTarget(provider=provider, model="some-model", dialect=dialect)
    assert rungs_of(target)[-1].form == "prompt"
    assert provider == "watsonx" or any(one.fits(target) for one in ladders())


LADDERS = {
    "openai gpt-5": ("openai", "gpt-5", {}, "json_schema"),
    "openai gpt-4": ("openai-chat", "gpt-4-turbo", {}, "json_object"),
    "claude opus 4.5": ("anthropic", "claude-opus-4-5-20251101", {}, "json_schema"),
    "claude opus 4": ("anthropic", "claude-opus-4-20250514", {}, "tool"),
    "claude opus 4 thinking": ("anthropic", "claude-opus-4-20250514", {"thinking": True}, "tool_auto"),
    "gemini 2 with tools": ("gemini", "gemini-2.5-pro", {"tools": True}, "tool"),
    "gemini 3 with tools": ("gemini", "gemini-3-pro", {"tools": True}, "json_schema"),
    "groq": ("groq", "openai/gpt-oss-120b", {}, "json_schema"),
    "groq streaming": ("groq", "openai/gpt-oss-120b", {"streaming": True}, "tool"),
    "groq with tools": ("groq", "llama-4", {"tools": True}, "tool"),
    "deepseek": ("deepseek", "deepseek-chat", {}, "json_object"),
    "minimax": ("minimax", "minimax-m2", {}, "tool_auto"),
    "venice llama": ("venice", "llama-3.3-70b", {}, "json_schema"),
    "venice claude": ("venice", "claude-sonnet-45", {}, "tool"),
    "venice r1": ("venice", "deepseek-r1-671b", {}, "prompt"),
    "cohere with tools": ("cohere", "command-a", {"tools": True}, "tool_auto"),
    "kimi": ("moonshot", "kimi-k2", {}, "json_schema"),
    "watsonx": ("watsonx", "granite", {}, "prompt"),
    "converse with Claude": ("bedrock", "anthropic.claude-opus-4-5-v1:0", {}, "json_schema"),
    "a server unknown": ("lab", "x", {}, "json_schema"),
}


@pytest.mark.parametrize("case", LADDERS)
def test_the_first_rung_that_can_be_used(case: str) -> None:
    provider, model, around, form = LADDERS[case]
    target = SchemaTarget(provider=provider, model=model, dialect="openai_chat" if provider == "lab" else "")
    rungs = ordered(rungs_of(target), prefer_schema_enforcement=True, mode=None)
    assert next(rung.form for rung in rungs if not refusal(rung, target, RequestConditions(**around))) == form


def test_forms_belong_to_the_modes_of_the_documents() -> None:
    assert set(MODE_OF.values()) == {"schema_enforced", "tool_use_workaround", "prompt_guided", "none"}
