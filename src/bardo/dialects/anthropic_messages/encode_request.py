"""A Request for a provider that speaks Anthropic Messages."""

from __future__ import annotations

from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.encode_messages import encode_messages, lacks_thinking
from bardo.dialects.anthropic_messages.encode_thinking import control_fields, own_words, with_thinking
from bardo.dialects.anthropic_messages.models import binds_schemas
from bardo.dialects.anthropic_messages.words import FORMAT, NAME, TITLE
from bardo.dialects.fragments import laid_into
from bardo.dialects.losses import Losses
from bardo.dialects.wire import write_json
from bardo.values.request import Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

_CHOICES = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
_UNSAID = ("min_p", "frequency_penalty", "presence_penalty", "seed")
_LIMIT = 8192
"""`max_tokens`, which must be there, where neither the caller nor the control named one."""


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write the request. What is said of thinking is the request's control, and the caller's own words beside it."""
    losses = Losses(
        NAME, TITLE, own_format=FORMAT, reasoning_why="only thinking that Anthropic signed may be sent back to it"
    )
    said = encode_messages(request, losses)
    tools = _tools(request, losses)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or _LIMIT,
        **said,
        **({"tools": tools} if tools else {}),
        **_tool_choice(request.tool_choice, bool(tools), losses),
        **_sampling(request, losses),
        **({"stream": True} if request.stream else {}),
        **losses.own_extra(request),
    }
    config = {"output_config": shape} if (shape := _output_format(request, losses)) else {}
    lacks = lacks_thinking(said["messages"])
    fields, degraded = with_thinking(control_fields(request), own_words(request), lacks_thinking=lacks)
    losses.add_all(degraded)
    if request.choices > 1:
        losses.lose("n", request.choices, "Anthropic answers once", sent=1)
    body = laid_into(laid_into(body, config), fields)
    return WireRequest(path="messages", body=write_json(body), degraded=losses.all)


def _tools(request: Request, losses: Losses) -> list[dict[str, Any]]:
    strict = binds_schemas(request.model)
    return [wire for tool in request.tools if (wire := _tool(tool, losses, strict=strict)) is not None]


def _tool(tool: Tool, losses: Losses, *, strict: bool) -> dict[str, Any] | None:
    own = tool.carried is not None and tool.carried.dialect == NAME
    if tool.hosted:
        if own and tool.carried is not None:
            return tool.carried.fields
        losses.lose(f"tool {tool.name}", tool.name, "a tool only its own provider runs")
        return None
    schema = {"type": "object", **(tool.schema or {"properties": {}})}
    wire: dict[str, Any] = {"name": tool.name, "input_schema": schema}
    if tool.description:
        wire["description"] = tool.description
    if tool.strict is not None and (strict or own):
        wire["strict"] = tool.strict
    elif tool.strict:
        losses.lose("strict", True, "this model does not bind tool arguments to their schema")
    return {**wire, **losses.own_fields(tool.carried)}


def _tool_choice(choice: ToolChoice | None, tools: bool, losses: Losses) -> dict[str, Any]:
    if choice is None:
        return {}
    if not tools:
        if choice.mode in ("required", "named"):
            losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")
        return {}
    wire: dict[str, Any] = {"type": _CHOICES[choice.mode]}
    if choice.mode == "named":
        wire["name"] = choice.name
    if choice.parallel is not None and choice.mode != "none":
        wire["disable_parallel_tool_use"] = not choice.parallel
    return {"tool_choice": wire}


def _sampling(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    for name in _UNSAID:
        if (value := getattr(sampling, name)) is not None:
            losses.lose(name, value, "Anthropic has no such parameter")
    wire: dict[str, Any] = {
        name: value for name in ("temperature", "top_p", "top_k") if (value := getattr(sampling, name)) is not None
    }
    stops = [stop for stop in sampling.stop if stop.strip()]
    if len(stops) < len(sampling.stop):
        losses.lose("stop", list(sampling.stop), "stop sequences of nothing but space are not accepted", sent=stops)
    return {**wire, **({"stop_sequences": stops} if stops else {})}


def _output_format(request: Request, losses: Losses) -> dict[str, Any]:
    shape = request.output_format
    if shape is None:
        return {}
    if shape.mode == "json_object":
        losses.lose("response_format", "json_object", "Anthropic needs a schema to promise JSON")
        return {}
    if request.dialect != NAME and not binds_schemas(request.model):
        losses.lose("response_format", shape.name or "json_schema", "this model has no structured output")
        return {}
    return {"format": {"type": "json_schema", "schema": shape.schema}}
