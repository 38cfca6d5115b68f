"""What a request says beside its messages: tools, output format, and how to think in the words of one model family."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.bedrock_converse.constants import NAME, unknown_fields
from bardo.dialects.bedrock_converse.decode_messages import carried
from bardo.dialects.jsonfield import optional, required, take
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, OutputFormat, ReasoningPolicy, Tool, ToolChoice

ADDITIONAL = "additionalModelRequestFields"
AMOUNTS: dict[str, Any] = {
    "thinking": {"type": None, "budget_tokens": None},
    "output_config": {"effort": None},
    "reasoning_effort": None,
    "reasoning": {"effort": None},
    "reasoning_config": {"type": None, "budget_tokens": None},
    "reasoningConfig": {"type": None, "maxReasoningEffort": None},
}
"""The additional fields that say how to think, in all families, and which of their words say how much."""
_READ = {**AMOUNTS, "thinking": {**AMOUNTS["thinking"], "display": None}}
_SPEC: dict[str, Any] = {"toolSpec": {"name": None, "description": None, "inputSchema": {"json": None}, "strict": None}}


def read_tool(value: Any, at: str) -> Tool:
    """Return a function, or an entry of another kind (a system tool, a cache point), which is carried whole."""
    tool = take(value, dict, at)
    if tool.get("toolSpec") is None:
        system = optional(tool, "systemTool", dict, f"{at}.") or {}
        name = optional(system, "name", str, f"{at}.systemTool.") or next(iter(tool), "")
        return Tool(name=name, hosted=True, carried=Carried(NAME, tool))
    spec = take(tool["toolSpec"], dict, f"{at}.toolSpec")
    at = f"{at}.toolSpec."
    return Tool(
        name=required(spec, "name", str, at),
        description=optional(spec, "description", str, at) or "",
        schema=optional(required(spec, "inputSchema", dict, at), "json", dict, f"{at}inputSchema."),
        strict=optional(spec, "strict", bool, at),
        carried=carried(unknown_fields(tool, _SPEC)),
    )


def read_tool_choice(tools: dict[str, Any]) -> ToolChoice | None:
    """Return which tools may be called."""
    choice = optional(tools, "toolChoice", dict, "toolConfig.")
    if choice is None:
        return None
    at = "toolConfig.toolChoice."
    if (named := optional(choice, "tool", dict, at)) is not None:
        return ToolChoice(mode="named", name=required(named, "name", str, f"{at}tool."))
    if choice.get("any") is not None:
        return ToolChoice(mode="required")
    if choice.get("auto") is not None:
        return ToolChoice(mode="auto")
    raise InvalidRequest(f"{at[:-1]} is none of auto, any and tool", hint="use one of them", param=at[:-1])


def read_output_format(output: dict[str, Any]) -> OutputFormat | None:
    """Return the shape of the answer."""
    found = optional(output, "textFormat", dict, "outputConfig.")
    if found is None:
        return None
    at = "outputConfig.textFormat."
    kind = required(found, "type", str, at)
    if kind != "json_schema":
        raise InvalidRequest(f"{at}type is {kind!r}", hint="use json_schema", param=f"{at}type")
    structure = required(found, "structure", dict, at)
    at += "structure."
    given = required(structure, "jsonSchema", dict, at)
    at += "jsonSchema."
    return OutputFormat(
        mode="json_schema",
        name=optional(given, "name", str, at) or "",
        schema=_schema(required(given, "schema", str, at), f"{at}schema"),
        strict=True,
        description=optional(given, "description", str, at) or "",
    )


def _schema(text: str, param: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise InvalidRequest(f"{param} is not JSON: {problem}", param=param) from problem


def read_additional(additional: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """Return `top_k`, wherever its family has it, and the fields that are left."""
    left = {name: value for name, value in additional.items() if name not in (*AMOUNTS, "top_k")}
    top_k = optional(additional, "top_k", int, f"{ADDITIONAL}.")
    nested = left.get("inferenceConfig")
    if top_k is None and isinstance(nested, dict) and nested.keys() <= {"topK"}:
        top_k = optional(nested, "topK", int, f"{ADDITIONAL}.inferenceConfig.")
        del left["inferenceConfig"]
    return top_k, left


def read_reasoning(additional: dict[str, Any]) -> ReasoningPolicy | None:
    """Return how the model should think. What else stands in the fields that say it is carried."""
    fields = {name: additional[name] for name in AMOUNTS if additional.get(name) is not None}
    if not fields:
        return None
    at = f"{ADDITIONAL}."
    effort = _effort(fields, at)
    thinking = optional(fields, "thinking", dict, at)
    if thinking is None and isinstance(fields.get("reasoning_config"), dict):
        thinking = fields["reasoning_config"]
    config = optional(fields, "reasoningConfig", dict, at) or {}
    kind = _kind(thinking or config, at)
    budget = optional(thinking or {}, "budget_tokens", int, f"{at}thinking.")
    display = optional(thinking or {}, "display", str, f"{at}thinking.")
    if effort == "none" or kind == "disabled":
        mode = ReasoningPolicy(mode="off", effort=None if effort == "none" else _parse_effort(effort, at))
    elif kind == "enabled" and budget is not None:
        mode = ReasoningPolicy(mode="budget", budget=budget, effort=_parse_effort(effort, at))
    elif effort:
        mode = ReasoningPolicy(mode="effort", effort=_parse_effort(effort, at))
    else:
        mode = ReasoningPolicy(mode="auto")
    rest = unknown_fields(fields, _READ)
    return msgspec.structs.replace(
        mode,
        visible=None if display is None else display != "omitted",
        enables_thinking=fields.keys() != {"output_config"},
        between_tools=kind == "between_tools",
        carried=Carried(NAME, rest) if rest else None,
        raw_fields={ADDITIONAL: fields},
    )


def _kind(fields: dict[str, Any], at: str) -> str:
    return optional(fields, "type", str, at) or ""


def _effort(fields: dict[str, Any], at: str) -> str:
    """Return the level, from whichever field has it."""
    nested = (("output_config", "effort"), ("reasoning", "effort"), ("reasoningConfig", "maxReasoningEffort"))
    for outer, inner in nested:
        found = optional(optional(fields, outer, dict, at) or {}, inner, str, f"{at}{outer}.")
        if found:
            return found
    if isinstance(fields.get("reasoning_config"), dict):
        return optional(fields, "reasoning_effort", str, at) or ""
    return optional(fields, "reasoning_effort", str, at) or optional(fields, "reasoning_config", str, at) or ""


def _parse_effort(word: str, at: str) -> Effort | None:
    if not word:
        return None
    for effort in EFFORTS:
        if effort == word:
            return effort
    raise InvalidRequest(f"{at[:-1]} asks for effort {word!r}", hint=f"use {', '.join(EFFORTS)}", param=at[:-1])
