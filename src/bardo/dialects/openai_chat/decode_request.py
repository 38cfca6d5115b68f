"""A Chat Completions request, as a client sends it, to a Request."""

from __future__ import annotations

from typing import Any, get_args

from bardo.dialects.jsonfield import decode_object, number, optional, required, take
from bardo.dialects.openai_chat.choice import NAME
from bardo.dialects.openai_chat.messages import read_message
from bardo.dialects.options import read_options
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    BardoOptions,
    Effort,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Sampling,
    Tool,
    ToolChoice,
)

_READ = frozenset(
    {
        "model", "messages", "tools", "functions", "tool_choice", "parallel_tool_calls", "max_tokens", "n", "stream",
        "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
        "seed", "stop", "stream_options", "reasoning_effort", "reasoning", "response_format", "bardo",
    }
)  # fmt: skip


def decode_request(body: bytes) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    options = read_options(fields)
    messages = required(fields, "messages", list)
    reasoning, excluded = _reasoning(fields)
    if excluded:
        options = BardoOptions(include=options.include, omit_reasoning=True)
    stream_options = optional(fields, "stream_options", dict) or {}
    return Request(
        model=required(fields, "model", str),
        messages=tuple(read_message(message, f"messages[{place}]") for place, message in enumerate(messages)),
        tools=_tools(fields),
        tool_choice=_tool_choice(fields),
        max_output_tokens=optional(fields, "max_completion_tokens", int) or optional(fields, "max_tokens", int),
        sampling=_sampling(fields),
        reasoning=reasoning,
        output_format=_output_format(fields),
        choices=optional(fields, "n", int) or 1,
        stream=bool(optional(fields, "stream", bool)),
        stream_usage=bool(optional(stream_options, "include_usage", bool, "stream_options.")),
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in _READ and value is not None},
        body={name: value for name, value in fields.items() if name != "bardo"},
        options=options,
    )


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    tools = optional(fields, "tools", list) or []
    older = optional(fields, "functions", list) or []
    return tuple(
        [read_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)]
        + [_function(function, f"functions[{place}]", {}) for place, function in enumerate(older)]
    )


def read_tool(value: Any, at: str) -> Tool:
    """Return one tool definition. Raises InvalidRequest naming the field."""
    tool = take(value, dict, at)
    if tool.get("type", "function") != "function" or "function" not in tool:
        return Tool(name=str(tool.get("type", "")), carried=Carried(NAME, tool), hosted=True)
    rest = {name: held for name, held in tool.items() if name not in ("type", "function")}
    return _function(tool["function"], f"{at}.function", rest)


def _function(value: Any, at: str, rest: dict[str, Any]) -> Tool:
    function = take(value, dict, at)
    return Tool(
        name=required(function, "name", str, f"{at}."),
        description=optional(function, "description", str, f"{at}.") or "",
        schema=optional(function, "parameters", dict, f"{at}."),
        strict=optional(function, "strict", bool, f"{at}."),
        carried=Carried(NAME, rest) if rest else None,
    )


def _tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    choice = fields.get("tool_choice")
    parallel = optional(fields, "parallel_tool_calls", bool)
    if choice is None:
        return ToolChoice(parallel=parallel) if parallel is not None else None
    if choice in ("auto", "none", "required"):
        return ToolChoice(mode=choice, parallel=parallel)
    function = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(function, dict):
        name = required(function, "name", str, "tool_choice.function.")
        return ToolChoice(mode="named", name=name, parallel=parallel)
    raise InvalidRequest(
        "tool_choice must be auto, none, required, or name a function",
        hint='{"type": "function", "function": {"name": …}}',
        param="tool_choice",
    )


def _sampling(fields: dict[str, Any]) -> Sampling:
    stop = fields.get("stop")
    stops = [stop] if isinstance(stop, str) else optional(fields, "stop", list) or []
    return Sampling(
        temperature=number(fields, "temperature"),
        top_p=number(fields, "top_p"),
        top_k=optional(fields, "top_k", int),
        min_p=number(fields, "min_p"),
        frequency_penalty=number(fields, "frequency_penalty"),
        presence_penalty=number(fields, "presence_penalty"),
        seed=optional(fields, "seed", int),
        stop=tuple(take(one, str, f"stop[{place}]") for place, one in enumerate(stops)),
    )


def _reasoning(fields: dict[str, Any]) -> tuple[ReasoningPolicy | None, bool]:
    """Return the policy of `reasoning_effort` or of OpenRouter's `reasoning`, and whether the reply is to leave it out."""
    nested = optional(fields, "reasoning", dict) or {}
    excluded = bool(optional(nested, "exclude", bool, "reasoning."))
    effort = optional(fields, "reasoning_effort", str) or optional(nested, "effort", str, "reasoning.")
    budget = optional(nested, "max_tokens", int, "reasoning.")
    enabled = optional(nested, "enabled", bool, "reasoning.")
    visible = False if excluded else None
    if effort == "none" or enabled is False:
        return ReasoningPolicy(mode="off", visible=visible), excluded
    if budget is not None:
        if budget < 0:
            raise InvalidRequest("reasoning.max_tokens must not be negative", param="reasoning.max_tokens")
        return ReasoningPolicy(mode="budget", budget=budget, visible=visible), excluded
    if effort is not None:
        return ReasoningPolicy(mode="effort", effort=_level(effort), visible=visible), excluded
    if enabled or nested:
        return ReasoningPolicy(mode="auto", visible=visible), excluded
    return None, excluded


def _level(effort: str) -> Effort:
    for level in get_args(Effort):
        if effort == level:
            return effort  # type: ignore[return-value]
    known = ", ".join(("none", *get_args(Effort)))
    raise InvalidRequest(f"unknown effort {effort!r}", hint=f"use one of {known}", param="reasoning_effort")


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    wanted = optional(fields, "response_format", dict)
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") == "json_object":
        return OutputFormat(mode="json_object")
    if wanted.get("type") != "json_schema":
        raise InvalidRequest(
            "response_format.type must be text, json_object or json_schema", param="response_format.type"
        )
    inner = required(wanted, "json_schema", dict, "response_format.")
    return OutputFormat(
        mode="json_schema",
        name=optional(inner, "name", str, "response_format.json_schema.") or "answer",
        schema=inner.get("schema"),
        strict=optional(inner, "strict", bool, "response_format.json_schema."),
        description=optional(inner, "description", str, "response_format.json_schema.") or "",
    )
