"""Readers of the facts that servers state: hosted providers' lists of models, llama-server, and other local servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from bardo.catalog.models import Control
from bardo.reasoning.registry import builtin_formats
from bardo.services.facts.introspect.answer_values import (
    Answers,
    NotAnAnswer,
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
    text,
)
from bardo.services.facts.introspect.live import NO_THINKING, LiveFacts
from bardo.values.request import EFFORTS, Effort


def read_openrouter(answers: Answers, model: str = "") -> dict[str, LiveFacts]:
    """Read `reasoning` of every model: whether it must think, its levels (null: all), its default, whether it takes a budget."""
    rows = listed(answers["models"], "data")
    return {name: _openrouter(row) for name, row in rows_by_id(rows, "canonical_slug", "id")}


def _openrouter(row: dict[str, Any]) -> LiveFacts:
    reasoning = row.get("reasoning")
    if not isinstance(reasoning, dict):
        parameters = row.get("supported_parameters")
        silent = not isinstance(parameters, list) or {"reasoning", "reasoning_effort"} & {
            str(parameter) for parameter in parameters
        }
        return LiveFacts() if silent else NO_THINKING
    efforts = reasoning.get("supported_efforts", ())
    offered = EFFORTS if efforts is None else levels(efforts)
    mandatory, enabled = flag(reasoning.get("mandatory")), flag(reasoning.get("default_enabled"))
    budget = flag(reasoning.get("supports_max_tokens"))
    return LiveFacts(
        control=_control(effort=bool(offered), budget=bool(budget), toggle=mandatory is False),
        efforts=_with_none(offered, efforts) or None,
        default_effort=level(reasoning.get("default_effort")),
        omit="on" if mandatory or enabled else "off" if enabled is False else None,
        off=None if mandatory is None else not mandatory,
        output_limit=count(inside(row, "top_provider", "max_completion_tokens")),
        shutdown=day(row.get("expiration_date")),
        context=count(row.get("context_length")),
    )


def _with_none(offered: tuple[str, ...], options: Any) -> tuple[str, ...]:
    """Keep `none` where it is listed among the levels: off is said by it then."""
    return ("none", *offered) if offered and isinstance(options, list) and "none" in options else offered


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
    words = {*lowered_strings(features), *lowered_strings(parameters)}
    limits = LiveFacts(output_limit=count(row.get("max_output_length")), context=count(row.get("context_length")))
    if not isinstance(features, list) or {"reasoning", "reasoning_effort"} & words:
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
    words = inside(can, "reasoningEffortOptions")
    default = inside(can, "defaultReasoningEffort")
    return LiveFacts(
        control=("effort",),
        efforts=_with_none(levels(words), words) or None,
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


def _may_think(thinking: Any, context: Any) -> LiveFacts:
    return NO_THINKING if flag(thinking) is False else LiveFacts(context=count(context))


def _control(*, effort: bool, budget: bool, toggle: bool) -> tuple[Control, ...] | None:
    controls: dict[Control, bool] = {"effort": effort, "budget": budget, "toggle": toggle}
    return tuple(name for name, holds in controls.items() if holds) or None


# Templates that are switched by a sentence in the conversation: that the kwargs move nothing does not mean there is no off.
_SPOKEN_SWITCH = re.compile(r"/no_?think|detailed thinking")
_TAIL = 64


def read_llama_server(answers: Answers, model: str) -> dict[str, LiveFacts]:
    """Read `/props` and the renderings of `/apply-template`, as far as there are any."""
    props = answers["props"]
    template = text(inside(props, "chat_template"))
    if template is None and not isinstance(inside(props, "default_generation_settings"), dict):
        raise NotAnAnswer("it is not what llama-server's /props says")
    prompts = {name: prompt for name, body in answers.items() if (prompt := text(inside(body, "prompt")))}
    opened = _opens_thinking(prompts.get("unsaid"))
    switch = _switch_of(prompts)
    if switch == "thinking":
        prompts |= {"on": prompts["thinking_on"], "off": prompts["thinking_off"]}
    budgeted = switch is None and _differ(prompts, "unsaid", "budget")
    listens, levelled = switch is not None, _levelled(props, prompts)
    offered = _levels_of(template or "")
    parser = text(inside(props, "default_generation_settings", "params", "reasoning_format"))
    alias = text(inside(props, "model_alias"))
    # A model whose thinking the server can see takes the server's own budget; where nothing differs, nothing is known.
    # `budgeted`: the template itself reads a budget, 0 for no thinking.
    control: list[Control] = ["effort"] if levelled else []
    control += ["budget"] if listens or opened or budgeted else []
    control += ["toggle"] if listens else []
    facts = LiveFacts(
        control=tuple(control) or None,
        efforts=offered if levelled and len(offered) > 1 else None,
        default_effort=_default_of(template or "") if levelled else None,
        omit=_omit(prompts, listens=listens, opened=opened),
        switch=None if switch == "enable_thinking" and not _same(prompts, "thinking_on", "thinking_off") else switch,
        form="template-budget" if budgeted else None,
        off=True
        if listens or budgeted
        else False
        if opened and not _SPOKEN_SWITCH.search(template or "") and "off" in prompts
        else None,
        starts_inside=opened,
        starts_inside_on=_opens_thinking(prompts.get("on")),
        starts_inside_off=_opens_thinking(prompts.get("off")),
        text_format=parser,
        known_as=None if alias == model else alias,
        context=count(inside(props, "default_generation_settings", "n_ctx")),
    )
    return {model: facts}


def _switch_of(prompts: dict[str, str]) -> str | None:
    """Return the variable that turns the template's thinking on and off, or None if none does."""
    if _differ(prompts, "on", "off"):
        return "enable_thinking"
    return "thinking" if _differ(prompts, "thinking_on", "thinking_off") else None


def _omit(prompts: dict[str, str], *, listens: bool, opened: bool | None) -> Any:
    if not listens:
        return "on" if opened else None
    return "off" if prompts.get("unsaid") == prompts["off"] else "on"


def _differ(prompts: dict[str, str], one: str, other: str) -> bool:
    return one in prompts and other in prompts and prompts[one] != prompts[other]


def _same(prompts: dict[str, str], one: str, other: str) -> bool:
    return one in prompts and other in prompts and prompts[one] == prompts[other]


def _levelled(props: Any, prompts: dict[str, str]) -> bool:
    """Whether the template listens to a level: newer servers say so, and two levels render differently."""
    flagged = flag(inside(props, "chat_template_caps", "supports_reasoning_effort"))
    return bool(flagged) or any(_differ(prompts, "low", other) for other in ("high", "unsaid"))


def _opens_thinking(prompt: str | None) -> bool | None:
    """Whether the rendered prompt ends with the opener of a block of thinking, or None if there is no prompt."""
    if prompt is None:
        return None
    tail = prompt.rstrip()[-_TAIL:]
    return any(tail.endswith(opener) for opener in _openers())


@cache
def _openers() -> tuple[str, ...]:
    """Every opener of a known format that is a tag by itself."""
    rows = builtin_formats().rows.values()
    return tuple({opener.rstrip() for row in rows for opener in row.starts if len(opener.strip()) > 3})


def _levels_of(template: str) -> tuple[Effort, ...]:
    """Return the levels a template compares with, in rising order: quoted words in the statements that name the effort."""
    statements = re.findall(r"\{[%{](?:(?!\{[%{]).)*?[%}]\}", template, re.DOTALL)
    quoted = {word for tag in statements if "reasoning_effort" in tag for word in re.findall(r"['\"](\w+)['\"]", tag)}
    return tuple(effort for effort in EFFORTS if effort in quoted)


def _default_of(template: str) -> Effort | None:
    """Return the level a template sets where none was said."""
    match = re.search(r"set\s+reasoning_effort\s*=\s*['\"](\w+)['\"]", template)
    match = match or re.search(r"reasoning_effort\s*\|\s*default\(\s*['\"](\w+)['\"]", template)
    return level(match[1]) if match else None


# Ollama's one family that is told a level and ignores true and false.
_LEVELLED_FAMILY = "gptoss"
# The levels by which ds4 says that a model does not think.
_OFF = frozenset(("none", "off"))


def read_ds4(answers: Answers, model: str) -> dict[str, LiveFacts]:
    """Read `reasoning`: levels, which acts as which, the default. In too small a context `max` acts as the level below."""
    body = answers["props"]
    reasoning = inside(body, "reasoning")
    if not isinstance(reasoning, dict):
        raise NotAnAnswer("it says nothing of reasoning")
    efforts, aliases = levels(reasoning.get("supported_efforts")), _aliases(reasoning.get("aliases"))
    context = next((number for path in _CONTEXTS if (number := count(inside(body, *path)))), None)
    least = count(reasoning.get("think_max_min_context"))
    if least and context and context < least and len(efforts) > 1 and "max" in efforts:
        efforts = tuple(effort for effort in efforts if effort != "max")
        aliases = {**aliases, "max": efforts[-1]}
    default = next((word for name in ("effective_default", "default") if (word := text(reasoning.get(name)))), None)
    facts = LiveFacts(
        control=("effort", "toggle") if efforts else None,
        efforts=efforts or None,
        aliases={name: acts for name, acts in aliases.items() if name != acts} or None,
        default_effort=level(default),
        omit=None if default is None else "off" if default in _OFF else "on",
        off=None if _OFF.isdisjoint(lowered_strings(reasoning.get("supported_efforts"))) else True,
        context=context,
    )
    return {model: facts}


_CONTEXTS = (("n_ctx",), ("context_length",), ("default_generation_settings", "n_ctx"))


def _aliases(aliases: Any) -> dict[str, Effort]:
    return {name.lower(): acts for name, word in fields(aliases).items() if (acts := level(word)) is not None}


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
    reasoning = inside(row, "capabilities", "reasoning")
    if not isinstance(reasoning, dict):
        return NO_THINKING
    options, default = lowered_strings(reasoning.get("allowed_options")), reasoning.get("default")
    efforts = levels(reasoning.get("allowed_options"))
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
    base = text(weights)
    return base if base != name else None


Reader = Callable[[Answers, str], dict[str, LiveFacts]]
"""Takes the answers by question and the model asked for, and returns facts by model id. Raises NotAnAnswer."""

READERS: Mapping[str, Reader] = {
    "anthropic": read_anthropic,
    "blockrun": read_blockrun,
    "cerebras": read_cerebras,
    "ds4": read_ds4,
    "gemini": read_gemini,
    "llama-server": read_llama_server,
    "lmstudio": read_lmstudio,
    "mistral": read_mistral,
    "moonshot": read_moonshot,
    "ollama": read_ollama,
    "openai": read_openai,
    "openrouter": read_openrouter,
    "sglang": read_sglang,
    "venice": read_venice,
    "vllm": read_vllm,
}

__all__ = [
    "READERS",
    "Reader",
    "read_anthropic",
    "read_blockrun",
    "read_cerebras",
    "read_ds4",
    "read_gemini",
    "read_llama_server",
    "read_lmstudio",
    "read_mistral",
    "read_moonshot",
    "read_ollama",
    "read_openai",
    "read_openrouter",
    "read_sglang",
    "read_venice",
    "read_vllm",
]
