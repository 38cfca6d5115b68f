"""What servers on one's own machine say of the models they run.

Sources: the servers' documentation and sources as of 2026-11-20; ds4's form is the one proposed for its `/props`.
"""

from __future__ import annotations

from typing import Any

from bardo.services.facts.introspect.answer_values import (
    Answers,
    NotAnAnswer,
    count,
    fields,
    inside,
    level,
    levels,
    listed,
    lowered_strings,
    rows_by_id,
    text,
)
from bardo.services.facts.introspect.live import NO_THINKING, LiveFacts
from bardo.values.request import Effort

# Ollama's one family that is told a level and ignores true and false.
_LEVELLED_FAMILY = "gptoss"
# The levels by which ds4 says that a model does not think.
_OFF = frozenset(("none", "off"))


def read_ds4(answers: Answers, model: str) -> dict[str, LiveFacts]:
    """Read `reasoning`: levels, which acts as which, the default. In too small a context `max` acts as the level below."""
    body = answers["props"]
    said = inside(body, "reasoning")
    if not isinstance(said, dict):
        raise NotAnAnswer("it says nothing of reasoning")
    efforts, aliases = levels(said.get("supported_efforts")), _aliases(said.get("aliases"))
    context = next((found for path in _CONTEXTS if (found := count(inside(body, *path)))), None)
    least = count(said.get("think_max_min_context"))
    if least and context and context < least and len(efforts) > 1 and "max" in efforts:
        efforts = tuple(effort for effort in efforts if effort != "max")
        aliases = {**aliases, "max": efforts[-1]}
    default = next((word for name in ("effective_default", "default") if (word := text(said.get(name)))), None)
    facts = LiveFacts(
        control=("effort", "toggle") if efforts else None,
        efforts=efforts or None,
        aliases={name: acts for name, acts in aliases.items() if name != acts} or None,
        default_effort=level(default),
        omit=None if default is None else "off" if default in _OFF else "on",
        off=None if _OFF.isdisjoint(lowered_strings(said.get("supported_efforts"))) else True,
        context=context,
    )
    return {model: facts}


_CONTEXTS = (("n_ctx",), ("context_length",), ("default_generation_settings", "n_ctx"))


def _aliases(said: Any) -> dict[str, Effort]:
    return {name.lower(): acts for name, word in fields(said).items() if (acts := level(word)) is not None}


def read_ollama(answers: Answers, model: str) -> dict[str, LiveFacts]:
    """Read `capabilities`: whether the model thinks. How it is told is said of one family only."""
    body = answers["show"]
    if not isinstance(inside(body, "capabilities"), list):
        raise NotAnAnswer("it lists no capabilities")
    if "thinking" not in lowered_strings(inside(body, "capabilities")):
        return {model: NO_THINKING}
    levelled = _LEVELLED_FAMILY in (
        inside(body, "details", "family"),
        *lowered_strings(inside(body, "details", "families")),
    )
    context = next(
        (n for name, n in fields(inside(body, "model_info")).items() if name.endswith(".context_length")), None
    )
    return {model: LiveFacts(control=("effort",) if levelled else None, omit="on", context=count(context))}


def read_lmstudio(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `capabilities.reasoning`: the allowed options and the default. A model without it does not think."""
    rows = rows_by_id(listed(answers["models"], "models"), "selected_variant", "key")
    return {name: _lmstudio(row) for name, row in rows}


def _lmstudio(row: dict[str, Any]) -> LiveFacts:
    if not isinstance(row.get("capabilities"), dict):
        return LiveFacts()
    said = inside(row, "capabilities", "reasoning")
    if not isinstance(said, dict):
        return NO_THINKING
    options, default = lowered_strings(said.get("allowed_options")), said.get("default")
    efforts = levels(said.get("allowed_options"))
    switched = "on" in options or "off" in options
    return LiveFacts(
        control=(*(("effort",) if efforts else ()), *(("toggle",) if switched else ())) or ("fixed",),
        efforts=efforts or None,
        default_effort=level(default),
        omit="off" if default == "off" else "on" if isinstance(default, str) else None,
        off="off" in options if options else None,
        context=count(row.get("max_context_length")),
    )


def read_vllm(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read whose weights a served name stands for, and the context. Of thinking vLLM says nothing."""
    rows = rows_by_id(listed(answers["models"], "data"), "id")
    return {
        name: LiveFacts(known_as=_base_model(row.get("root"), name), context=count(row.get("max_model_len")))
        for name, row in rows
    }


def read_sglang(answers: Answers, model: str) -> dict[str, LiveFacts]:
    """Read the reasoning parser and whose weights are served. Of levels SGLang says nothing."""
    body = {**fields(answers.get("model")), **fields(answers.get("server"))}
    if not body:
        raise NotAnAnswer("neither its server nor its model info is one")
    name = text(body.get("served_model_name")) or model
    facts = LiveFacts(
        known_as=_base_model(body.get("model_path"), name),
        text_format=text(body.get("reasoning_parser")),
        context=count(body.get("context_length")),
    )
    return {name: facts, model: facts} if model else {name: facts}


def _base_model(weights: Any, name: str) -> str | None:
    """Return whose weights they are where that is not the name itself."""
    said = text(weights)
    return said if said != name else None
