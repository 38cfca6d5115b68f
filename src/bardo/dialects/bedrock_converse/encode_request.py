"""A Request for Bedrock's Converse."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.encode_thinking import control_fields, with_thinking
from bardo.dialects.bedrock_converse.decode_controls import ADDITIONAL, AMOUNTS
from bardo.dialects.bedrock_converse.encode_messages import MessageWriter, lacks_thinking, named_tools
from bardo.dialects.bedrock_converse.families import is_claude, takes_unsigned
from bardo.dialects.bedrock_converse.words import FORMAT, NAME, TITLE, beyond
from bardo.dialects.fragments import laid_into
from bardo.dialects.losses import Losses
from bardo.dialects.wire import write_json
from bardo.values.degradation import Degradation
from bardo.values.request import OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

_UNSAID = ("min_p", "frequency_penalty", "presence_penalty", "seed")
_CHOICES = {"auto": "auto", "required": "any"}


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write path and body. What Converse cannot say to this model is in `degraded`."""
    body, degraded = encode_body(request)
    return WireRequest(path=path_of(request, "converse", "converse-stream"), body=write_json(body), degraded=degraded)


def path_of(request: Request, whole: str, streamed: str) -> str:
    """Return the path: model ids hold colons, and those of inference profiles are ARNs with slashes."""
    return f"model/{quote(request.model, safe='')}/{streamed if request.stream else whole}"


def encode_body(request: Request) -> tuple[dict[str, Any], tuple[Degradation, ...]]:
    """Return the body as an object, and what Converse cannot say to this model."""
    losses = Losses(
        NAME, TITLE, own_format=FORMAT, reasoning_why="only thinking that Bedrock signed may be sent back to it"
    )
    own, claude = request.dialect == NAME, is_claude(request.model)
    writer = MessageWriter(losses, own=own, claude=claude, unsigned=takes_unsigned(request.model))
    system, turns = writer.write(request)
    body = {
        **losses.own_extra(request),
        "messages": turns,
        "system": system,
        "toolConfig": _tool_config(request, turns, losses),
    }
    sampling = {"inferenceConfig": _inference_config(request, losses), ADDITIONAL: _top_k(request, losses)}
    body = laid_into(laid_into(body, sampling), {"outputConfig": _output_format(request.output_format, losses)})
    body = laid_into(body, _control_fields(request, turns, losses))
    if request.choices > 1:
        losses.lose("n", request.choices, "Converse answers once", sent=1)
    return {name: value for name, value in body.items() if value or name == "messages"}, losses.all


def _control_fields(request: Request, turns: list[dict[str, Any]], losses: Losses) -> dict[str, Any]:
    """Return the control's fields, and beside them the caller's own words that Converse hands on to the model."""
    fields = control_fields(request)
    told = _own_words(request, losses)
    additional = fields.get(ADDITIONAL, {})
    for name in [name for name in told if name != "thinking"]:
        if isinstance(additional.get(name), dict):
            additional = laid_into({name: told[name]}, additional)
        else:
            losses.lose(name, told[name], "this model is told how to think in other words")
    additional, degraded = with_thinking(additional, told.get("thinking", {}), lacks_thinking=lacks_thinking(turns))
    losses.add_all(degraded)
    return {**fields, ADDITIONAL: additional} if additional else fields


def _own_words(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what the caller said of thinking beside modes, levels and budgets; words of another dialect are lost."""
    policy = request.reasoning
    if policy is None:
        return {}
    if request.dialect != NAME:
        losses.own_fields(policy.carried)
        return {}
    return beyond(policy.told.get(ADDITIONAL, {}), AMOUNTS)


def _inference_config(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    for name in _UNSAID:
        if (value := getattr(sampling, name)) is not None:
            losses.lose(name, value, "Converse has no such parameter")
    config = {
        "maxTokens": request.max_output_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": list(sampling.stop) or None,
    }
    return {name: value for name, value in config.items() if value is not None}


def _top_k(request: Request, losses: Losses) -> dict[str, Any]:
    top_k = request.sampling.top_k
    if top_k is None:
        return {}
    if request.dialect == NAME:
        return {"top_k": top_k}
    losses.lose("top_k", top_k, "Converse has no such parameter")
    return {}


def _tool_config(request: Request, turns: list[dict[str, Any]], losses: Losses) -> dict[str, Any]:
    tools = [wire for tool in request.tools if (wire := _tool(tool, losses)) is not None]
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
    return {"tools": tools, **_tool_choice(choice, losses)}


def _tool(tool: Tool, losses: Losses) -> dict[str, Any] | None:
    if tool.hosted:
        if tool.carried is not None and tool.carried.dialect == NAME:
            return tool.carried.fields
        losses.lose(f"tool {tool.name}", tool.name, "a tool only its own provider runs")
        return None
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": {"type": "object", **(tool.schema or {"properties": {}})}}
    if tool.strict is not None:
        spec["strict"] = tool.strict
    return laid_into({"toolSpec": spec}, losses.own_fields(tool.carried))


def _tool_choice(choice: ToolChoice | None, losses: Losses) -> dict[str, Any]:
    if choice is None:
        return {}
    if choice.parallel is False:
        losses.lose("parallel_tool_calls", False, "Converse has no such field")
    if choice.mode == "none":
        return {}
    wanted = "tool" if choice.mode == "named" else _CHOICES[choice.mode]
    return {"toolChoice": {wanted: {"name": choice.name} if wanted == "tool" else {}}}


def _lose_choice(choice: ToolChoice | None, losses: Losses) -> None:
    if choice is not None and choice.mode in ("required", "named"):
        losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")


def _output_format(wanted: OutputFormat | None, losses: Losses) -> dict[str, Any]:
    if wanted is None:
        return {}
    if wanted.mode == "json_object":
        losses.lose("response_format", "json_object", "Converse needs a schema to promise JSON")
        return {}
    if wanted.strict is False:
        losses.lose("response_format.strict", False, "Converse always holds to the schema")
    schema: dict[str, Any] = {"schema": write_json(wanted.schema).decode()}
    if wanted.name:
        schema["name"] = wanted.name
    if wanted.description:
        schema["description"] = wanted.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
