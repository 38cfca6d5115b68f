"""What hosted providers say in their lists of models. Each says some things and is silent on others; silence is no fact.

Sources: the providers' API references as of 2026-11-20.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.models import Control
from bardo.services.facts.introspect.answer_values import (
    Answers,
    count,
    day,
    fields,
    flag,
    inside,
    level,
    levels,
    listed,
    lowered_strings,
    rows_by_id,
)
from bardo.services.facts.introspect.live import NO_THINKING, LiveFacts
from bardo.values.request import EFFORTS


def read_openrouter(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `reasoning` of every model: whether it must think, its levels (null: all), its default, whether it takes a budget."""
    rows = listed(answers["models"], "data")
    return {name: _openrouter(row) for name, row in rows_by_id(rows, "canonical_slug", "id")}


def _openrouter(row: dict[str, Any]) -> LiveFacts:
    said = row.get("reasoning")
    if not isinstance(said, dict):
        parameters = row.get("supported_parameters")
        silent = not isinstance(parameters, list) or {"reasoning", "reasoning_effort"} & {
            str(one) for one in parameters
        }
        return LiveFacts() if silent else NO_THINKING
    efforts = said.get("supported_efforts", ())
    offered = EFFORTS if efforts is None else levels(efforts)
    mandatory, enabled = flag(said.get("mandatory")), flag(said.get("default_enabled"))
    budget = flag(said.get("supports_max_tokens"))
    return LiveFacts(
        control=_control(effort=bool(offered), budget=bool(budget), toggle=mandatory is False),
        efforts=_with_none(offered, efforts) or None,
        default_effort=level(said.get("default_effort")),
        omit="on" if mandatory or enabled else "off" if enabled is False else None,
        off=None if mandatory is None else not mandatory,
        output_limit=count(inside(row, "top_provider", "max_completion_tokens")),
        shutdown=day(row.get("expiration_date")),
        context=count(row.get("context_length")),
    )


def _with_none(offered: tuple[str, ...], said: Any) -> tuple[str, ...]:
    """Keep `none` where it is listed among the levels: off is said by it then."""
    return ("none", *offered) if offered and isinstance(said, list) and "none" in said else offered


def read_anthropic(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `capabilities.thinking`, with which of its types are taken, `capabilities.effort`, limits and the day of retirement.

    `disabled` and `between_tools` are false exactly where a request that sends them is refused; the default is not said.
    """
    return {name: _anthropic(row) for name, row in rows_by_id(listed(answers["models"], "data"), "id")}


def _anthropic(row: dict[str, Any]) -> LiveFacts:
    can = fields(row.get("capabilities"))
    if flag(inside(can, "thinking")) is False:
        limit, retires = count(row.get("max_tokens")), day(row.get("retires_at"))
        return msgspec.structs.replace(NO_THINKING, output_limit=limit, shutdown=retires)
    types, efforts = inside(can, "thinking", "types"), fields(inside(can, "effort"))
    offered = tuple(effort for effort in EFFORTS if flag(efforts.get(effort)))
    control: list[Control] = ["adaptive"] if flag(inside(types, "adaptive")) else []
    control += _control(effort=bool(offered), budget=bool(flag(inside(types, "enabled"))), toggle=False) or ()
    off = flag(inside(types, "disabled"))
    return LiveFacts(
        control=tuple(control) or None,
        efforts=offered or None,
        off=off,
        nearest_off="between_tools" if off is False and flag(inside(types, "between_tools")) else None,
        output_limit=count(row.get("max_tokens")),
        shutdown=day(row.get("retires_at")),
        context=count(row.get("max_input_tokens")),
    )


def read_openai(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `shutdown_date` (openai 3.54.0, types/model.py); nothing is said of thinking."""
    rows = rows_by_id(listed(answers["models"], "data"), "id")
    return {name: LiveFacts(shutdown=day(row.get("shutdown_date"))) for name, row in rows}


def read_cerebras(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read the list in OpenRouter's form: whether a model thinks is said by the features and parameters that it has, its levels are not."""
    return {name: _cerebras(row) for name, row in rows_by_id(listed(answers["models"], "data"), "id")}


def _cerebras(row: dict[str, Any]) -> LiveFacts:
    features, parameters = row.get("supported_features"), row.get("supported_sampling_parameters")
    said = {*lowered_strings(features), *lowered_strings(parameters)}
    limits = LiveFacts(output_limit=count(row.get("max_output_length")), context=count(row.get("context_length")))
    if not isinstance(features, list) or {"reasoning", "reasoning_effort"} & said:
        return limits
    return msgspec.structs.replace(NO_THINKING, output_limit=limits.output_limit, context=limits.context)


def read_venice(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `model_spec.capabilities`. Some models are listed as reasoning without levels, which leaves the levels open."""
    return {name: _venice(row) for name, row in rows_by_id(listed(answers["models"], "data"), "id")}


def _venice(row: dict[str, Any]) -> LiveFacts:
    can = inside(row, "model_spec", "capabilities")
    if flag(inside(can, "supportsReasoning")) is False:
        return NO_THINKING
    if not flag(inside(can, "supportsReasoningEffort")):
        return LiveFacts(context=count(inside(row, "model_spec", "availableContextTokens")))
    said = inside(can, "reasoningEffortOptions")
    default = inside(can, "defaultReasoningEffort")
    return LiveFacts(
        control=("effort",),
        efforts=_with_none(levels(said), said) or None,
        default_effort=level(default),
        omit="off" if default == "none" else "on" if level(default) else None,
        context=count(inside(row, "model_spec", "availableContextTokens")),
    )


def read_blockrun(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read the length of the context and of the longest answer (BlockRunAI/model-catalog, 2026-09-29); nothing is said of thinking."""
    rows = rows_by_id(listed(answers["models"], "data", "models"), "id")
    return {
        name: LiveFacts(context=count(row.get("context_window")), output_limit=count(row.get("max_output")))
        for name, row in rows
    }


def read_gemini(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `thinking`; levels, ranges and whether off is allowed are not said. A field that is absent says nothing."""
    rows = [
        (name.removeprefix("models/"), row) for name, row in rows_by_id(listed(answers["models"], "models"), "name")
    ]
    return {name: _may_think(row.get("thinking"), row.get("inputTokenLimit")) for name, row in rows}


def read_mistral(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `capabilities.reasoning`, for every alias of a model too."""
    rows = rows_by_id(listed(answers["models"], "data"), "aliases", "id")
    return {
        name: _may_think(inside(row, "capabilities", "reasoning"), row.get("max_context_length")) for name, row in rows
    }


def read_moonshot(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `supports_reasoning`."""
    rows = rows_by_id(listed(answers["models"], "data"), "id")
    return {name: _may_think(row.get("supports_reasoning"), row.get("context_length")) for name, row in rows}


def _may_think(said: Any, context: Any) -> LiveFacts:
    return NO_THINKING if flag(said) is False else LiveFacts(context=count(context))


def _control(*, effort: bool, budget: bool, toggle: bool) -> tuple[Control, ...] | None:
    known: dict[Control, bool] = {"effort": effort, "budget": budget, "toggle": toggle}
    return tuple(name for name, holds in known.items() if holds) or None
