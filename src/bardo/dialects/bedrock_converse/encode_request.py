"""A Request for Bedrock's Converse."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bardo.catalog.rows import ProviderRow
from bardo.dialects.bedrock_converse.claude import Controls, claude_controls
from bardo.dialects.bedrock_converse.encode_messages import MessageWriter, named_tools
from bardo.dialects.bedrock_converse.families import (
    Family,
    at_path,
    family_of,
    reasoning_fields,
    told_controls,
)
from bardo.dialects.bedrock_converse.losses import Losses
from bardo.dialects.bedrock_converse.words import NAME, joined, write_json
from bardo.values.request import OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

ADDITIONAL = "additionalModelRequestFields"
_UNSAID = ("min_p", "frequency_penalty", "presence_penalty", "seed")
_CHOICES = {"auto": "auto", "required": "any"}


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write path and body. What Converse cannot say to this model is in `degraded`."""
    losses = Losses()
    body = encode_body(request, row, losses)
    return WireRequest(path=path_of(request, "converse", "converse-stream"), body=write_json(body), degraded=losses.all)


def path_of(request: Request, whole: str, streamed: str) -> str:
    """Return the path: model ids hold colons, and those of inference profiles are ARNs with slashes."""
    return f"model/{quote(request.model, safe='')}/{streamed if request.stream else whole}"


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body as an object."""
    family, own = family_of(request.model), request.dialect == NAME
    writer = MessageWriter(losses, own=own, claude=family.claude, unsigned=family.unsigned)
    system, turns = writer.write(request)
    controls = claude_controls(request, turns, row) if family.claude else None
    extra = _extra(request, losses)
    told = told_controls(request, family)
    additional, config = _controls(request, family, controls, told, losses)
    given = extra.pop(ADDITIONAL, None)
    additional = joined(given if isinstance(given, dict) else {}, additional)
    body = {
        "messages": turns,
        "system": system,
        "inferenceConfig": joined(_object(extra, "inferenceConfig"), config),
        "toolConfig": _tool_config(request, turns, controls, losses),
        ADDITIONAL: additional,
        "outputConfig": joined(_object(extra, "outputConfig"), _output_format(request.output_format, losses)),
    }
    if request.choices > 1:
        losses.lose("n", request.choices, "Converse answers once", sent=1)
    return {**extra, **{name: value for name, value in body.items() if value or name == "messages"}}


def _controls(
    request: Request, family: Family, controls: Controls | None, told: dict[str, Any] | None, losses: Losses
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what goes to the model in its own words, and the inference configuration."""
    for name in _UNSAID:
        if (value := getattr(request.sampling, name)) is not None:
            losses.lose(name, value, "Converse has no such parameter")
    if request.reasoning is not None and request.dialect != NAME:
        losses.own_fields(request.reasoning.carried)
    config = _inference_config(request)
    if controls is None:
        additional = told if told is not None else reasoning_fields(request.reasoning, family, losses)
        return joined(additional, _top_k(request, family, losses)), _within(config, additional, family, losses)
    if told is not None:
        return joined(told, _top_k(request, family, losses)), config
    losses.add_all(controls.degraded)
    for theirs, ours in (("temperature", "temperature"), ("top_p", "topP")):
        config.pop(ours, None)
        if theirs in controls.fields:
            config[ours] = controls.fields[theirs]
    return controls.some("thinking", "output_config", "top_k"), config


def _inference_config(request: Request) -> dict[str, Any]:
    sampling = request.sampling
    config = {
        "maxTokens": request.max_output_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": list(sampling.stop) or None,
    }
    return {name: value for name, value in config.items() if value is not None}


def _within(config: dict[str, Any], additional: dict[str, Any], family: Family, losses: Losses) -> dict[str, Any]:
    """Leave out what the family refuses beside its highest effort."""
    if family.unlimited_at is None or additional != at_path(family.effort, family.unlimited_at, family.beside):
        return config
    why = f"this model takes none at effort {family.unlimited_at}"
    for name in ("maxTokens", "temperature", "topP"):
        if name in config:
            losses.lose(name, config[name], why)
    return {name: value for name, value in config.items() if name == "stopSequences"}


def _top_k(request: Request, family: Family, losses: Losses) -> dict[str, Any]:
    top_k = request.sampling.top_k
    if top_k is None:
        return {}
    path = family.top_k or (("top_k",) if request.dialect == NAME else ())
    if not path:
        losses.lose("top_k", top_k, "this model has no such parameter on Converse")
        return {}
    return at_path(path, top_k)


def _tool_config(
    request: Request, turns: list[dict[str, Any]], controls: Controls | None, losses: Losses
) -> dict[str, Any]:
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
    return {"tools": tools, **_tool_choice(choice, controls, losses)}


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
    return joined({"toolSpec": spec}, losses.own_fields(tool.carried))


def _tool_choice(choice: ToolChoice | None, controls: Controls | None, losses: Losses) -> dict[str, Any]:
    if choice is None:
        return {}
    if choice.parallel is False:
        losses.lose("parallel_tool_calls", False, "Converse has no such field")
    if choice.mode == "none":
        return {}
    wanted = "tool" if choice.mode == "named" else _CHOICES[choice.mode]
    told = controls.fields.get("tool_choice", {}) if controls is not None else {}
    if told.get("type") == "auto":
        wanted = "auto"
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


def _extra(request: Request, losses: Losses) -> dict[str, Any]:
    if request.dialect == NAME:
        return dict(request.extra)
    for name, value in request.extra.items():
        losses.lose(name, value, "Converse has no such field")
    return {}


def _object(extra: dict[str, Any], name: str) -> dict[str, Any]:
    value = extra.pop(name, None)
    return value if isinstance(value, dict) else {}
