"""A Request for Bedrock's Converse."""

from __future__ import annotations

from typing import Any

from bardo.catalog.dialect_models import dialect_models
from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.encode_thinking import control_fields, with_thinking
from bardo.dialects.bedrock_converse.constants import FORMAT, NAME, SAMPLING, TITLE, unknown_fields, with_cache_points
from bardo.dialects.bedrock_converse.decode_controls import ADDITIONAL, AMOUNTS
from bardo.dialects.bedrock_converse.encode_messages import MessageWriter, lacks_thinking, named_tools
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.losses import Losses
from bardo.dialects.sampling import encode_sampling
from bardo.dialects.url_paths import path_segment
from bardo.dialects.wire import write_json
from bardo.values.request import OutputFormat, Request, Tool, ToolChoice

_CHOICES = {"auto": "auto", "required": "any"}

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    needs_turn=True,
    own_format=FORMAT,
    reasoning_why="only thinking that Bedrock signed may be sent back to it",
    own=frozenset({"sampling.top_k"}),
    expresses=frozenset(
        (
            "tools.strict",
            "output_format.description",
            "document",
            "document.source",
            "document.name",
            "tool_result.is_error",
        )
    ),
    lacks={
        **limitations("Converse answers once", "choices", sent=1),
        **limitations(
            "Converse has no such parameter",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        ),
        **limitations("Converse has no such field", "tool_choice.parallel", same=(True,)),
        **limitations("Converse has no such field", "image.detail", same=("auto",)),
        **limitations("Converse always holds to the schema", "output_format.strict", same=(True,)),
    },
)


def request_path(request: Request) -> str:
    """Return the path of a call to Converse."""
    return path_of(request, "converse", "converse-stream")


def path_of(request: Request, whole: str, streamed: str) -> str:
    """Return the path: model ids hold colons, and those of inference profiles are ARNs with slashes."""
    return f"model/{path_segment(request.model)}/{streamed if request.stream else whole}"


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body for the request's model."""
    takes = dialect_models(NAME, request.model).earlier_reasoning
    writer = MessageWriter(
        losses, own=request.dialect == NAME, needs_signatures=takes == "signed", takes_unsigned=takes == "unsigned"
    )
    system, turns = writer.write(request)
    body = {
        **losses.own_extra(request),
        "messages": turns,
        "system": system,
        "toolConfig": _tool_config(request, turns, losses),
    }
    sampling = {"inferenceConfig": _inference_config(request), ADDITIONAL: _top_k(request)}
    body = merge_fields(merge_fields(body, sampling), {"outputConfig": _output_format(request.output_format, losses)})
    body = merge_fields(body, encode_control(request, losses, lacks_thinking=lacks_thinking(turns)))
    return {name: value for name, value in body.items() if value or name == "messages"}


def encode_control(request: Request, losses: Losses, *, lacks_thinking: bool = False) -> dict[str, Any]:
    """Return the control's fields, and beside them the caller's own words that Converse hands on to the model."""
    fields = control_fields(request)
    told = _own_words(request)
    additional = fields.get(ADDITIONAL, {})
    for name in [name for name in told if name != "thinking"]:
        if isinstance(additional.get(name), dict):
            additional = merge_fields({name: told[name]}, additional)
        else:
            losses.lose(name, told[name], "this model is told how to think in other words")
    additional, degraded = with_thinking(additional, told.get("thinking", {}), lacks_thinking=lacks_thinking)
    losses.add_all(degraded)
    return {**fields, ADDITIONAL: additional} if additional else fields


def _own_words(request: Request) -> dict[str, Any]:
    """Return what the caller said of thinking beside modes, levels and budgets; words of another dialect are lost."""
    policy = request.reasoning
    if policy is None or request.dialect != NAME:
        return {}
    return unknown_fields(policy.raw_fields.get(ADDITIONAL, {}), AMOUNTS)


def _inference_config(request: Request) -> dict[str, Any]:
    limit = {} if request.max_output_tokens is None else {"maxTokens": request.max_output_tokens}
    return {**limit, **encode_sampling(request.sampling, SAMPLING)}


def _top_k(request: Request) -> dict[str, Any]:
    top_k = request.sampling.top_k
    return {"top_k": top_k} if top_k is not None and request.dialect == NAME else {}


def _tool_config(request: Request, turns: list[dict[str, Any]], losses: Losses) -> dict[str, Any]:
    tools = with_cache_points(wire for tool in request.tools if (wire := _tool(tool, losses)) is not None)
    called = named_tools(turns)
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        if not called:
            return {}
        losses.lose("tool_choice", "none", "Converse needs tools where calls stand in the conversation", sent="auto")
    if not any("toolSpec" in tool or "systemTool" in tool for tool in tools):
        if not called:
            _lose_choice(choice, losses)
            return {}
        why = "Converse needs the tools whose calls stand in the conversation"
        losses.lose("tools", None, why, sent=called)
        tools = [{"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in called]
    return {"tools": tools, **_tool_choice(choice)}


def _tool(tool: Tool, losses: Losses) -> dict[str, Any] | None:
    if tool.hosted:
        if tool.carried is not None and tool.carried.dialect == NAME:
            return tool.carried.fields
        losses.lose_tool(tool)
        return None
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": {"type": "object", **(tool.schema or {"properties": {}})}}
    if tool.strict is not None:
        spec["strict"] = tool.strict
    return merge_fields({"toolSpec": spec}, losses.own_fields(tool.carried))


def _tool_choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    if choice.mode == "none":
        return {}
    output_format = "tool" if choice.mode == "named" else _CHOICES[choice.mode]
    return {"toolChoice": {output_format: {"name": choice.name} if output_format == "tool" else {}}}


def _lose_choice(choice: ToolChoice | None, losses: Losses) -> None:
    if choice is not None and choice.mode in ("required", "named"):
        losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")


def _output_format(output_format: OutputFormat | None, losses: Losses) -> dict[str, Any]:
    if output_format is None:
        return {}
    if output_format.mode == "json_object":
        losses.lose("response_format", "json_object", "Converse needs a schema to promise JSON")
        return {}
    schema: dict[str, Any] = {"schema": write_json(output_format.schema).decode()}
    if output_format.name:
        schema["name"] = output_format.name
    if output_format.description:
        schema["description"] = output_format.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
