"""A Request to a Chat Completions body for one provider."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_chat.choice import NAME
from bardo.dialects.openai_chat.write_messages import MessageWriter
from bardo.values.blocks import fields_for
from bardo.values.degradation import Degradation, distinct
from bardo.values.request import Effort, OutputFormat, ReasoningPolicy, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

# The documents' portable budgets, read backwards: the nearest tier, ties up.
_TIERS: tuple[tuple[int, Effort], ...] = ((2048, "low"), (8192, "medium"), (32768, "high"))


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write a request; what this provider's Chat cannot say is in `degraded`."""
    quirks = row.quirks
    writer = MessageWriter(quirks)
    degraded = writer.degraded
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [written for message in request.messages for written in writer.write(message)],
    }
    if request.tools:
        body["tools"] = [tool for one in request.tools for tool in _tool(one, degraded)]
    body |= _tool_choice(request.tool_choice)
    if request.max_output_tokens is not None:
        body[quirks.output_limit_field] = request.max_output_tokens
    body |= _sampling(request)
    if request.choices > 1:
        body["n"] = request.choices
    if request.output_format is not None:
        body["response_format"] = _output_format(request.output_format)
    body |= _reasoning(request.reasoning, quirks.effort_form, degraded)
    if request.stream:
        body["stream"] = True
        if quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}
    body |= _extra(request, degraded)
    return WireRequest(path="chat/completions", body=msgspec.json.encode(body), degraded=distinct(degraded))


def _tool(tool: Tool, degraded: list[Degradation]) -> list[dict[str, Any]]:
    if tool.hosted:
        own = fields_for(NAME, tool.carried)
        if own:
            return [own]
        degraded.append(Degradation("tools", asked=tool.name, why="this provider does not run that tool itself"))
        return []
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return [{"type": "function", "function": function, **fields_for(NAME, tool.carried)}]


def _tool_choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    written: dict[str, Any] = {}
    if choice.mode == "named":
        written["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto" or choice.parallel is None:
        written["tool_choice"] = choice.mode
    if choice.parallel is not None:
        written["parallel_tool_calls"] = choice.parallel
    return written


def _sampling(request: Request) -> dict[str, Any]:
    sampling = msgspec.structs.asdict(request.sampling)
    written = {name: value for name, value in sampling.items() if value is not None and name != "stop"}
    if request.sampling.stop:
        written["stop"] = list(request.sampling.stop)
    return written


def _output_format(wanted: OutputFormat) -> dict[str, Any]:
    if wanted.mode == "json_object":
        return {"type": "json_object"}
    inner: dict[str, Any] = {"name": wanted.name or "answer", "schema": wanted.schema}
    if wanted.strict is not None:
        inner["strict"] = wanted.strict
    if wanted.description:
        inner["description"] = wanted.description
    return {"type": "json_schema", "json_schema": inner}


def _reasoning(policy: ReasoningPolicy | None, form: str, degraded: list[Degradation]) -> dict[str, Any]:
    if policy is None or (policy.mode == "auto" and form != "reasoning"):
        return {}
    if form == "none":
        why = "this provider has no field for it"
        degraded.append(Degradation("reasoning", asked=policy.effort or policy.budget or policy.mode, why=why))
        return {}
    if form == "reasoning":
        return {"reasoning": _reasoning_object(policy)}
    effort = "none" if policy.mode == "off" else policy.effort or nearest_effort(policy.budget or 0)
    if policy.budget is not None:
        why = "this provider takes levels, not budgets"
        degraded.append(Degradation("reasoning.budget", asked=policy.budget, sent=effort, why=why))
    return {"reasoning_effort": effort}


def _reasoning_object(policy: ReasoningPolicy) -> dict[str, Any]:
    if policy.mode == "off":
        return {"enabled": False}
    if policy.budget is not None:
        return {"max_tokens": policy.budget}
    return {"effort": policy.effort} if policy.effort else {"enabled": True}


def nearest_effort(budget: int) -> Effort:
    """Return the level whose portable budget is nearest, ties up."""
    return min(_TIERS, key=lambda tier: (abs(tier[0] - budget), -tier[0]))[1]


def _extra(request: Request, degraded: list[Degradation]) -> dict[str, Any]:
    if request.dialect in ("", NAME):
        return request.extra
    for name, value in request.extra.items():
        degraded.append(Degradation(name, asked=value, why="Chat Completions has no such field"))
    return {}
