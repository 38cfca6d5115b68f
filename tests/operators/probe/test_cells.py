"""What would be sent: every setting of the form, unclamped, each round in an order of its own."""

from __future__ import annotations

import msgspec
import pytest

from bardo.catalog.forms import builtin_forms
from bardo.catalog.models import BudgetRange
from bardo.operators.probe.cells import BASELINE, EASY, in_turn, output_limit, plan_cells
from bardo.values.errors import InvalidRequest
from operators.probe.support import CELLS, known

PLACES = {
    "openrouter": (
        ("openrouter", "qwen/qwen3.6-27b", "openai_chat"),
        {
            "openrouter: off": {"reasoning": {"enabled": False}},
            "openrouter: on": {"reasoning": {"enabled": True}},
            "openrouter: effort low": {"reasoning": {"effort": "low"}},
            "openrouter: effort medium": {"reasoning": {"effort": "medium"}},
            "openrouter: effort high": {"reasoning": {"effort": "high"}},
            "openrouter: budget 1024": {"reasoning": {"max_tokens": 1024}},
            "openrouter: budget 4096": {"reasoning": {"max_tokens": 4096}},
            "openrouter: budget 16384": {"reasoning": {"max_tokens": 16384}},
        },
    ),
    "levels of the catalog": (
        ("gemini", "gemini-3-flash-preview", "gemini"),
        {
            f"gemini-level: effort {level}": {"generationConfig": {"thinkingConfig": {"thinkingLevel": level}}}
            for level in ("minimal", "low", "medium", "high")
        },
    ),
    "a switch of the template": (
        ("sglang", "Qwen/Qwen3-8B", "openai_chat"),
        {
            "sglang: off": {"chat_template_kwargs": {"enable_thinking": False}},
            "sglang: on": {"chat_template_kwargs": {"enable_thinking": True}},
            **{f"sglang: effort {level}": {"reasoning_effort": level} for level in ("low", "medium", "high")},
        },
    ),
}


@pytest.mark.parametrize(("place", "fields"), PLACES.values(), ids=PLACES)
def test_every_setting_of_the_form_is_turned(place: tuple[str, str, str], fields: dict[str, object]) -> None:
    provider, model, dialect = place
    cells = plan_cells(known(provider, model, dialect))
    assert [cell.id for cell in cells[:2]] == [EASY, BASELINE]
    assert {cell.id: cell.fields for cell in cells[2:]} == fields


def test_a_sentence_in_the_system_prompt_is_a_setting_too() -> None:
    cells = plan_cells(known(), [builtin_forms().forms["system-text"]])
    assert [cell.system for cell in cells[2:]] == ["detailed thinking off", "detailed thinking on"]


def test_budgets_stay_within_the_models_range_and_are_not_sent_twice() -> None:
    wide = known()
    narrow = msgspec.structs.replace(
        wide, facts=msgspec.structs.replace(wide.facts, budget=BudgetRange(min=2000, max=3000))
    )
    budgets = [cell.value for cell in plan_cells(narrow) if cell.setting == "budget"]
    assert budgets == ["2000", "3000"]


def test_all_requests_have_the_same_room() -> None:
    assert output_limit(known(), plan_cells(known())) == 16_384 + 8192


def test_a_form_without_settings_is_not_probed() -> None:
    with pytest.raises(InvalidRequest, match="no setting"):
        plan_cells(known("perplexity-like", "m", "watsonx_text"))


def test_each_round_holds_every_cell_in_an_order_of_its_own() -> None:
    order = [(cell.id, turn) for cell, turn in in_turn(CELLS, 3, seed=1)]
    rounds = [[cell for cell, turn in order if turn == number] for number in range(3)]
    assert all(sorted(one) == sorted(cell.id for cell in CELLS) for one in rounds)
    assert len({tuple(one) for one in rounds}) == 3
    assert [turn for _, turn in order] == sorted(turn for _, turn in order)


def test_the_same_seed_gives_the_same_order_and_another_does_not() -> None:
    first, second, third = ([cell.id for cell, _ in in_turn(CELLS, 2, seed)] for seed in (1, 1, 2))
    assert first == second != third


def test_what_is_done_is_left_out_and_the_rest_keeps_its_order() -> None:
    order = list(in_turn(CELLS, 2, 1))
    done = {(cell.id, turn) for cell, turn in order[:5]}
    assert list(in_turn(CELLS, 2, 1, done)) == order[5:]
