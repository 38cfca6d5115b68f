"""A Request for a provider that speaks Anthropic Messages."""

from __future__ import annotations

from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.encode_messages import encode_messages, lacks_thinking
from bardo.dialects.anthropic_messages.encode_reasoning import Thinking, encode_reasoning, without_thinking
from bardo.dialects.anthropic_messages.losses import Losses
from bardo.dialects.anthropic_messages.models import Traits, traits_of
from bardo.dialects.anthropic_messages.words import NAME, write_json
from bardo.values.request import Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

_CHOICES = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
_UNSAID = ("min_p", "frequency_penalty", "presence_penalty", "seed")


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write the request. `max_tokens`, which must be there, is the caller's, or 8192 and what the thinking may take."""
    traits = traits_of(request.model)
    losses = Losses()
    said = encode_messages(request, losses)
    tools = _tools(request, traits, losses)
    thought = _thinking(request, traits, said, bool(tools))
    for degradation in thought.degraded:
        losses.add(degradation, degradation.why)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": thought.max_tokens,
        **said,
        **({"tools": tools} if tools else {}),
        **_tool_choice(request.tool_choice, bool(tools), traits, losses),
        **({"thinking": thought.thinking} if thought.thinking else {}),
        **_sampling(request, thought, traits, losses),
        **({"stream": True} if request.stream else {}),
    }
    config = _output_config(request, thought, traits, losses)
    _add_extra(body, config, request, losses)
    if request.choices > 1:
        losses.lose("n", request.choices, "Anthropic answers once", sent=1)
    return WireRequest(path="messages", body=write_json(body), degraded=losses.all)


def _thinking(request: Request, traits: Traits, said: dict[str, Any], tools: bool) -> Thinking:
    """Return the thinking, without what Anthropic answers 400 to: a budget and a forced tool, or turns whose thinking is lost."""
    sent = encode_reasoning(request.reasoning, traits, request.max_output_tokens)
    if not sent.budgeted or not traits.known:
        return sent
    forced = tools and request.tool_choice is not None and request.tool_choice.mode in ("required", "named")
    if forced:
        return without_thinking(sent, "a forced tool cannot be called while thinking within a budget")
    if lacks_thinking(said["messages"]):
        return without_thinking(sent, "the thinking that led to the tool calls is not at hand")
    return sent


def _tools(request: Request, traits: Traits, losses: Losses) -> list[dict[str, Any]]:
    return [wire for tool in request.tools if (wire := _tool(tool, traits, losses)) is not None]


def _tool(tool: Tool, traits: Traits, losses: Losses) -> dict[str, Any] | None:
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
    if tool.strict is not None and (traits.structured or own):
        wire["strict"] = tool.strict
    elif tool.strict:
        losses.lose("strict", True, "this model does not bind tool arguments to their schema")
    return {**wire, **losses.own_fields(tool.carried)}


def _tool_choice(choice: ToolChoice | None, tools: bool, traits: Traits, losses: Losses) -> dict[str, Any]:
    if choice is None:
        return {}
    if not tools:
        if choice.mode in ("required", "named"):
            losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")
        return {}
    wire: dict[str, Any] = {"type": _CHOICES[choice.mode]}
    if choice.mode in ("required", "named") and not traits.forced_tool:
        wire["type"] = "auto"
        losses.lose("tool_choice", choice.name or choice.mode, "this model cannot be made to call a tool", sent="auto")
    elif choice.mode == "named":
        wire["name"] = choice.name
    if choice.parallel is not None and choice.mode != "none":
        wire["disable_parallel_tool_use"] = not choice.parallel
    return {"tool_choice": wire}


def _sampling(request: Request, thought: Thinking, traits: Traits, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    for name in _UNSAID:
        if (value := getattr(sampling, name)) is not None:
            losses.lose(name, value, "Anthropic has no such parameter")
    wire: dict[str, Any] = {
        name: value for name in ("temperature", "top_p", "top_k") if (value := getattr(sampling, name)) is not None
    }
    if sampling.temperature is not None and sampling.temperature > 1:
        wire["temperature"] = 1.0
        losses.lose("temperature", sampling.temperature, "Anthropic's range ends at 1", sent=1.0)
    _restrict(wire, thought, traits, losses)
    stops = [stop for stop in sampling.stop if stop.strip()]
    if len(stops) < len(sampling.stop):
        losses.lose("stop", list(sampling.stop), "stop sequences of nothing but space are not accepted", sent=stops)
    return {**wire, **({"stop_sequences": stops} if stops else {})}


def _restrict(wire: dict[str, Any], thought: Thinking, traits: Traits, losses: Losses) -> None:
    """Take out what a model that thinks, or a newer one at all, refuses; a default says nothing and is no loss."""
    thinks = thought.thinking is not None and thought.thinking.get("type") in ("enabled", "adaptive")
    if traits.sampling and not thinks:
        if not traits.both and "temperature" in wire and "top_p" in wire:
            losses.lose("top_p", wire.pop("top_p"), "this model takes temperature or top_p, not both")
        return
    why = "not accepted while the model thinks" if traits.sampling else "this model does not let it be set"
    for name in ("temperature", "top_p", "top_k"):
        if name not in wire or (name == "top_p" and traits.sampling and 0.95 <= wire[name] <= 1):
            continue
        value = wire.pop(name)
        if value != 1 or name == "top_k":
            losses.lose(name, value, why)


def _output_config(request: Request, thought: Thinking, traits: Traits, losses: Losses) -> dict[str, Any]:
    config: dict[str, Any] = {"effort": thought.effort} if thought.effort else {}
    shape = request.output_format
    if shape is None:
        return config
    if shape.mode == "json_object":
        losses.lose("response_format", "json_object", "Anthropic needs a schema to promise JSON")
    elif not traits.structured and request.dialect != NAME:
        losses.lose("response_format", shape.name or "json_schema", "this model has no structured output")
    else:
        config["format"] = {"type": "json_schema", "schema": shape.schema}
    return config


def _add_extra(body: dict[str, Any], config: dict[str, Any], request: Request, losses: Losses) -> None:
    if request.dialect == NAME:
        given = request.extra.get("output_config")
        config = {**(given if isinstance(given, dict) else {}), **config}
        body.update({name: value for name, value in request.extra.items() if name != "output_config"})
    else:
        for name, value in request.extra.items():
            losses.lose(name, value, "Anthropic Messages has no such field")
    if config:
        body["output_config"] = config
