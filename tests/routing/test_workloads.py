"""Workloads: rows, rows that go on from others, and the names by which they are found."""

from __future__ import annotations

import pytest

from bardo.routing.workloads import WorkloadMistake, WorkloadRow, Workloads, builtin_workloads, unknown_workload
from bardo.values.profile import InferenceProfile
from bardo.values.request import Intent


def test_a_row_is_laid_over_the_workload_that_is_its_model() -> None:
    rows = {
        "review": WorkloadRow(model="careful", quality="maximum", fallbacks=("lab/b",)),
        "careful": WorkloadRow(
            model="lab/a",
            require=("vision",),
            cost_sensitivity=0.1,
            profile=InferenceProfile(temperature=0.2),
            private=True,
        ),
    }
    made = Workloads().with_rows(rows).get("review")
    assert made is not None
    assert made.intent == Intent(
        model="lab/a", require=("vision",), quality="maximum", cost_sensitivity=0.1, subsystem="review"
    )
    assert (made.fallbacks, made.private, made.name) == (("lab/b",), True, "review")
    assert made.profile == InferenceProfile(temperature=0.2)


def test_a_row_may_change_a_built_in_workload_of_its_own_name() -> None:
    before = builtin_workloads().get("cheap")
    after = builtin_workloads().with_rows({"cheap": WorkloadRow(model="bardo/cheap", quality="low")}).get("cheap")
    assert before is not None
    assert after is not None
    assert (after.intent.quality, after.intent.cost_sensitivity) == ("low", before.intent.cost_sensitivity)


def test_a_row_called_like_its_model_names_the_model() -> None:
    made = Workloads().with_rows({"gpt-5": WorkloadRow(model="gpt-5", quality="low")}).get("gpt-5")
    assert made is not None
    assert made.intent.model == "gpt-5"


@pytest.mark.parametrize(
    "models",
    [{"a": "bardo/a"}, {"a": "b", "b": "bardo/a"}, {"a": "b", "b": "c", "c": "b"}],
    ids=["self", "two", "tail"],
)
def test_a_row_that_leads_to_itself_is_refused(models: dict[str, str]) -> None:
    with pytest.raises(WorkloadMistake, match="leads to itself"):
        Workloads().with_rows({name: WorkloadRow(model=model) for name, model in models.items()})


def test_names_find_workloads() -> None:
    workloads = builtin_workloads().with_rows({"mine": WorkloadRow()})
    assert workloads.find("bardo/mine") is workloads.find("mine") is not None
    assert workloads.find("bardo/cheap") is not None
    assert workloads.find("cheap") is None
    assert workloads.find("bardo/none") is None
    assert "bardo/cheap" in unknown_workload("chep", workloads).hint
    assert "bardo/" not in unknown_workload("zzzzzz", workloads).hint


def test_built_in_workloads_say_what_they_are() -> None:
    assert all(one.about and one.intent.subsystem == one.name for one in builtin_workloads())
    assert [one.name for one in builtin_workloads() if one.private] == ["private"]
