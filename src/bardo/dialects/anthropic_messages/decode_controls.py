"""What a request says beside its messages: tools, thinking, output format, sampling."""

from __future__ import annotations

from typing import Any, Literal

from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.constants import NAME
from bardo.dialects.anthropic_messages.decode_messages import carried
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.structs import read
from bardo.dialects.wire import without
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, OutputFormat, ReasoningPolicy, Tool, ToolChoice

_CHOICES: dict[str, Literal["auto", "none", "required", "named"]] = {
    "auto": "auto",
    "any": "required",
    "none": "none",
    "tool": "named",
}
_DISPLAYS = {"summarized": True, "omitted": False, "updates": True}
_KNOWN_DISPLAYS = ("summarized", "omitted")
"""What other dialects can say too."""


def read_tool(value: Any, at: str) -> Tool:
    """Return a function, or a tool that Anthropic defines itself (it has a `type`), which is carried whole."""
    fields = take(value, dict, at)
    kind = optional(fields, "type", str, f"{at}.") or "custom"
    if kind != "custom":
        name = optional(fields, "name", str, f"{at}.") or kind
        return Tool(name=name, hosted=True, carried=Carried(NAME, fields))
    tool = read(fields, wire.Tool, at)
    return Tool(
        name=tool.name,
        description=tool.description or "",
        schema=tool.input_schema,
        strict=tool.strict,
        carried=carried(tool),
    )


def read_tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    """Return which tools may be called."""
    value = fields.get("tool_choice")
    if value is None:
        return None
    choice = read(value, wire.ToolChoice, "tool_choice")
    if choice.type not in _CHOICES:
        raise InvalidRequest(
            f"tool_choice.type is {choice.type!r}", hint=f"use {', '.join(_CHOICES)}", param="tool_choice.type"
        )
    named = choice.type == "tool"
    if named and choice.name is None:
        raise InvalidRequest("tool_choice.name is required", param="tool_choice.name")
    one_at_a_time = choice.disable_parallel_tool_use
    return ToolChoice(
        mode=_CHOICES[choice.type],
        name=choice.name or "" if named else "",
        parallel=None if one_at_a_time is None else not one_at_a_time,
    )


def read_reasoning(fields: dict[str, Any], config: dict[str, Any]) -> ReasoningPolicy | None:
    """Return how the model should think. What else stands in the `thinking` object is carried."""
    thinking = optional(fields, "thinking", dict)
    effort = _effort(config)
    if thinking is None:
        told = {"output_config": {"effort": effort}}
        return (
            None
            if effort is None
            else ReasoningPolicy(mode="effort", effort=effort, enables_thinking=False, raw_fields=told)
        )
    kind = required(thinking, "type", str, "thinking.")
    display = optional(thinking, "display", str, "thinking.")
    if display is not None and display not in _DISPLAYS:
        raise InvalidRequest(
            f"thinking.display is {display!r}", hint=f"use {', '.join(_DISPLAYS)}", param="thinking.display"
        )
    rest = without(thinking, "type", "budget_tokens", "display" if display in _KNOWN_DISPLAYS else "")
    read = without(thinking, *rest)
    return ReasoningPolicy(
        mode=_mode(kind, effort),
        effort=effort,
        budget=_budget(thinking) if kind == "enabled" else None,
        visible=None if display is None else _DISPLAYS[display],
        between_tools=kind == "between_tools",
        carried=Carried(NAME, {"thinking": rest}) if rest else None,
        raw_fields={"thinking": read, **({"output_config": {"effort": effort}} if effort else {})},
    )


def _mode(kind: str, effort: Effort | None) -> Literal["off", "effort", "budget", "auto"]:
    if kind == "disabled":
        return "off"
    if kind == "enabled":
        return "budget"
    if kind in ("adaptive", "between_tools"):
        return "auto" if effort is None else "effort"
    hint = "use enabled, adaptive, disabled or between_tools"
    raise InvalidRequest(f"thinking.type is {kind!r}", hint=hint, param="thinking.type")


def _budget(thinking: dict[str, Any]) -> int:
    budget = required(thinking, "budget_tokens", int, "thinking.")
    if budget < 1:
        raise InvalidRequest("thinking.budget_tokens must be at least 1", param="thinking.budget_tokens")
    return budget


def _effort(config: dict[str, Any]) -> Effort | None:
    word = optional(config, "effort", str, "output_config.")
    if word is None:
        return None
    for effort in EFFORTS:
        if effort == word:
            return effort
    raise InvalidRequest(
        f"output_config.effort is {word!r}", hint=f"use {', '.join(EFFORTS)}", param="output_config.effort"
    )


def read_output_format(fields: dict[str, Any], config: dict[str, Any]) -> OutputFormat | None:
    """Return the shape of the answer, from `output_config.format` or its older place, `output_format`."""
    found, at = optional(config, "format", dict, "output_config."), "output_config.format."
    if found is None:
        found, at = optional(fields, "output_format", dict), "output_format."
    if found is None:
        return None
    kind = required(found, "type", str, at)
    if kind != "json_schema":
        raise InvalidRequest(f"{at}type is {kind!r}", hint="use json_schema", param=f"{at}type")
    return OutputFormat(mode="json_schema", schema=required(found, "schema", dict, at), strict=True)
