"""A Request for a provider that speaks Anthropic Messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.dialect_models import dialect_models
from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.constants import FORMAT, MARKER, NAME, SAMPLING, TITLE
from bardo.dialects.anthropic_messages.encode_messages import encode_messages, lacks_thinking
from bardo.dialects.anthropic_messages.encode_thinking import control_fields, own_words, with_thinking
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.losses import Losses
from bardo.dialects.repeated_tools import written_tools
from bardo.dialects.sampling import encode_sampling
from bardo.dialects.wire import without
from bardo.values.request import Request, Tool, ToolChoice

_CHOICES = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
_LIMIT = 8192
"""`max_tokens`, which must be there, where neither the caller nor the control named one."""

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    needs_turn=True,
    own_format=FORMAT,
    # "A maximum of 4 blocks with cache_control may be provided" (Anthropic's answer with status 400).
    markers={MARKER: 4},
    reasoning_why="only thinking that Anthropic signed may be sent back to it",
    expresses=frozenset(
        (
            "tools.strict",
            "tool_choice.parallel",
            "document",
            "document.source",
            "document.name",
            "tool_result.is_error",
            "sampling.top_k",
        )
    ),
    lacks={
        **limitations("Anthropic answers once", "choices", sent=1),
        **limitations(
            "Anthropic has no such parameter",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        ),
        **limitations("Anthropic chooses the detail itself", "image.detail", same=("auto",)),
        **limitations("Anthropic always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Anthropic has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body. What is said of thinking is the request's control, and the caller's own words beside it."""
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
    return merge_fields(merge_fields(body, config), encode_control(request, losses, lacks_thinking=lacks))


def encode_control(request: Request, losses: Losses, *, lacks_thinking: bool = False) -> dict[str, Any]:
    """Return what is written of thinking: the control, and the caller's own words beside it."""
    fields, degraded = with_thinking(control_fields(request), own_words(request), lacks_thinking=lacks_thinking)
    losses.add_all(degraded)
    return fields


def _tools(request: Request, losses: Losses) -> list[dict[str, Any]] | msgspec.Raw:
    strict = _binds_schemas(request.model)

    def write(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
        return [wire for tool in tools if (wire := _tool(tool, losses, strict=strict)) is not None]

    return written_tools(request, losses, write, strict)


def _tool(tool: Tool, losses: Losses, *, strict: bool) -> dict[str, Any] | None:
    own = tool.carried is not None and tool.carried.dialect == NAME
    if tool.hosted:
        if own and tool.carried is not None:
            return tool.carried.fields
        losses.lose_tool(tool)
        return None
    schema = {"type": "object", **(tool.schema or {"properties": {}})}
    wire: dict[str, Any] = {"name": tool.name, "input_schema": schema}
    if tool.description:
        wire["description"] = tool.description
    if tool.strict is not None and (strict or own):
        wire["strict"] = tool.strict
    elif tool.strict:
        losses.lose("tools.strict", True, "this model does not bind tool arguments to their schema")
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


def has_blank_stop(request: Request) -> bool:
    """Whether a stop sequence has nothing but space in it: Anthropic refuses those."""
    return not all(stop.strip() for stop in request.sampling.stop)


def _sampling(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    wire = encode_sampling(sampling, SAMPLING)
    stops = [stop for stop in sampling.stop if stop.strip()]
    if has_blank_stop(request):
        losses.lose("stop", list(sampling.stop), "stop sequences of nothing but space are not accepted", sent=stops)
    return {**without(wire, "stop_sequences"), **({"stop_sequences": stops} if stops else {})}


def _output_format(request: Request, losses: Losses) -> dict[str, Any]:
    shape = request.output_format
    if shape is None:
        return {}
    if shape.mode == "json_object":
        losses.lose("response_format", "json_object", "Anthropic needs a schema to promise JSON")
        return {}
    if request.dialect != NAME and not _binds_schemas(request.model):
        losses.lose("response_format", shape.name or "json_schema", "this model has no structured output")
        return {}
    return {"format": {"type": "json_schema", "schema": shape.schema}}


def _binds_schemas(model: str) -> bool:
    """Whether a model has structured output."""
    return dialect_models(NAME, model).binds_schemas
