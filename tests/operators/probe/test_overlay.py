"""The row that follows from verdicts: loadable over the catalog, and saying only what was decided."""

from __future__ import annotations

import datetime
import tomllib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from bardo.adapters.config.settings import parse_settings
from bardo.catalog.models import builtin_models
from bardo.operators.probe.overlay import overlay_row, overlay_toml
from bardo.operators.probe.verdicts import Decision, SettingVerdict, Verdict
from bardo.reasoning.control import ControlTarget, know, plan_reasoning
from bardo.reasoning.control.target import ResolvedFacts
from bardo.values.request import ReasoningPolicy
from operators.probe.support import known

DAY = datetime.date(2026, 11, 22)


def decision(form: str, unasked: bool | None = True, **verdicts: Verdict) -> Decision:
    found = tuple(
        SettingVerdict(setting=setting, form=form, verdict=verdict, why="", medians={"low": 1.0, "high": 2.0})
        for setting, verdict in verdicts.items()
    )
    return Decision(measure="reported", verdicts=found, thinks_unasked=unasked)


def laid_over(place: ResolvedFacts, row: dict[str, Any]) -> ResolvedFacts:
    """Return what is known once the row's file is loaded over the catalog."""
    tables = tomllib.loads(overlay_toml(row, "found out"))["models"]
    return know(place.target, models=builtin_models().over(tables))


def test_a_flattened_effort_leaves_the_budget_to_be_sent() -> None:
    place = known("openrouter", "qwen/qwen3.6-27b")
    row = overlay_row(place, decision("openrouter", off="honours", effort="flattens", budget="honours"), DAY, "n")
    assert row is not None
    found = laid_over(place, row)
    assert found.control == ("budget", "toggle")
    assert (found.facts.off, found.facts.omit) == (True, "on")
    plan = plan_reasoning(ReasoningPolicy(mode="effort", effort="low"), found)
    assert plan.fields == {"reasoning": {"max_tokens": 2048}}


def test_an_honoured_effort_is_sent_with_the_levels_that_were_taken() -> None:
    place = known("openrouter", "qwen/qwen3.6-27b")
    row = overlay_row(place, decision("openrouter", effort="honours", budget="ignores"), DAY, "n")
    assert row is not None
    found = laid_over(place, row)
    assert (set(found.control), found.levels) == ({"effort", "toggle"}, ("low", "high"))


def test_where_nothing_bites_thinking_is_fixed_or_absent() -> None:
    place = known("openrouter", "qwen/qwen3.6-27b")
    nothing: dict[str, Verdict] = {"off": "refuses", "on": "ignores", "effort": "ignores", "budget": "refuses"}
    for unasked, control in ((True, ["fixed"]), (False, ["none"])):
        row = overlay_row(place, decision("openrouter", unasked, **nothing), DAY, "n")
        assert row is not None
        assert (row["control"], row["off"]) == (control, False)


def test_what_stayed_open_stays_as_it_was() -> None:
    place = known("openrouter", "qwen/qwen3.6-27b")
    assert overlay_row(place, decision("openrouter", None, off="inconclusive", effort="inconclusive"), DAY, "n") is None
    row = overlay_row(place, decision("openrouter", None, off="honours", budget="inconclusive"), DAY, "n")
    assert row is not None
    assert row["control"] == ["budget", "toggle"]
    assert "omit" not in row


def test_a_makers_row_is_given_whole_because_it_stands_in_the_place_of_the_built_in_one() -> None:
    place = known("anthropic", "claude-opus-4-8", "anthropic_messages")
    row = overlay_row(place, decision(place.form.name, False, effort="honours"), DAY, "n")
    assert row is not None
    before, after = place.found.row, laid_over(place, row).found.row
    assert before is not None
    assert after is not None
    kept = ("rules", "output_limit", "default_display", "forced_tool", "off", "default_effort")
    assert {name: getattr(after, name) for name in kept} == {name: getattr(before, name) for name in kept}
    assert after.date == DAY


def test_a_form_that_bites_where_the_usual_one_does_not_is_named() -> None:
    place = known("anthropic", "claude-opus-4-8", "anthropic_messages")
    usual = decision(place.form.name, False, effort="ignores").verdicts
    other = decision("anthropic-level", False, effort="honours", off="honours").verdicts
    row = overlay_row(place, Decision(measure="reported", verdicts=(*usual, *other)), DAY, "n")
    assert row is not None
    assert row["form"] == "anthropic-level"


def test_a_model_nobody_knew_gets_a_row_that_is_found() -> None:
    place = know(ControlTarget("openai-compatible", "openai_chat", "my-own-model"))
    row = overlay_row(place, decision(place.form.name, off="honours", effort="honours"), DAY, "n")
    assert row is not None
    found = laid_over(place, row)
    assert found.layers["efforts"] == "L2"
    assert found.found.how == "exact"


texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=20)


@given(note=texts, heading=some.text(some.sampled_from("ab #\"'"), max_size=20))
@pytest.mark.parametrize("budget", [{"min": 1, "max": 5}, {"min": 1, "max": None}])
def test_what_is_written_reads_back(note: str, heading: str, budget: dict[str, Any]) -> None:
    row = {"provider": "x", "match": ["a", "b"], "off": True, "budget": budget, "date": DAY, "note": note}
    (read,) = tomllib.loads(overlay_toml(row, heading))["models"]
    assert read == {**row, "budget": {name: value for name, value in budget.items() if value is not None}}


def test_a_row_is_plain_values() -> None:
    place = known("anthropic", "claude-haiku-4-5", "anthropic_messages")
    row = overlay_row(place, decision(place.form.name, False, budget="honours"), DAY, "n")
    assert msgspec.json.decode(msgspec.json.encode(row)) is not None


def test_a_row_may_stand_in_the_configuration_too() -> None:
    place = known("openrouter", "qwen/qwen3.6-27b")
    row = overlay_row(place, decision("openrouter", effort="flattens"), DAY, "n")
    assert row is not None
    (read,) = parse_settings(overlay_toml(row, "found out")).models
    assert read.match == ("qwen3.6-27b", "qwen/qwen3.6-27b")
