"""A Request for Cohere's v2 chat."""

from __future__ import annotations

from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.cohere.encode_messages import encode_messages
from bardo.dialects.cohere.encode_reasoning import encode_reasoning
from bardo.dialects.cohere.words import NAME, TITLE, write_json
from bardo.dialects.functions import write_tool
from bardo.dialects.losses import Losses
from bardo.values.request import Request, Sampling, Tool, ToolChoice
from bardo.values.wire import WireRequest

# Cohere's names and ranges. Source: its API reference of 2026-11.
_RANGES: dict[str, tuple[str, float, float]] = {
    "temperature": ("temperature", 0.0, float("inf")),
    "top_p": ("p", 0.01, 0.99),
    "top_k": ("k", 0, 500),
    "frequency_penalty": ("frequency_penalty", 0.0, 1.0),
    "presence_penalty": ("presence_penalty", 0.0, 1.0),
}
_MOST_STOPS = 5


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write the request; what Cohere cannot say is in `degraded`."""
    losses = Losses(NAME, TITLE)
    body: dict[str, Any] = {"model": request.model, "messages": encode_messages(request, losses)}
    offered, choice = _offered(request, losses)
    tools = [wire for tool in offered for wire in write_tool(tool, losses)]
    if tools:
        body |= {"tools": tools, **choice, **_strict(offered, losses)}
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    body |= _sampling(request.sampling, losses)
    body |= encode_reasoning(request.reasoning, request.max_output_tokens, losses)
    body |= _response_format(request, losses, tools=bool(tools))
    if request.choices > 1:
        losses.lose("n", request.choices, "Cohere answers once", sent=1)
    if request.stream:
        body["stream"] = True
    return WireRequest(path="chat", body=write_json({**body, **losses.own_extra(request)}), degraded=losses.all)


def _offered(request: Request, losses: Losses) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """Return the tools, and which may be called: Cohere cannot name one, but one alone needs no name."""
    choice = request.tool_choice or ToolChoice()
    if choice.parallel is False and request.tools:
        losses.lose("parallel_tool_calls", False, "Cohere leaves the number of calls to the model")
    if choice.mode in ("none", "required"):
        return request.tools, {"tool_choice": choice.mode.upper()}
    if choice.mode != "named":
        return request.tools, {}
    losses.lose("tool_choice", choice.name, "Cohere cannot name a tool, so only that one is offered", sent="REQUIRED")
    return tuple(tool for tool in request.tools if tool.name == choice.name), {"tool_choice": "REQUIRED"}


def _strict(tools: tuple[Tool, ...], losses: Losses) -> dict[str, Any]:
    said = {tool.strict for tool in tools if not tool.hosted}
    if len(said) > 1:
        asked = [tool.name for tool in tools if tool.strict]
        losses.lose("strict", asked, "Cohere is strict with all tools or with none", sent=True in said)
    if True in said:
        return {"strict_tools": True}
    return {"strict_tools": False} if said == {False} else {}


def _sampling(sampling: Sampling, losses: Losses) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name, (wire, least, most) in _RANGES.items():
        asked = getattr(sampling, name)
        if asked is None:
            continue
        sent = written[wire] = min(max(asked, least), most)
        if sent != asked:
            losses.lose(name, asked, f"Cohere's range is {least:g} to {most:g}", sent=sent)
    if sampling.seed is not None:
        written["seed"] = sampling.seed
    if sampling.min_p is not None:
        losses.lose("min_p", sampling.min_p, "Cohere has no such parameter")
    stops = list(sampling.stop)
    if len(stops) > _MOST_STOPS:
        losses.lose("stop", stops, f"Cohere takes {_MOST_STOPS} at most", sent=stops[:_MOST_STOPS])
    return {**written, **({"stop_sequences": stops[:_MOST_STOPS]} if stops else {})}


def _response_format(request: Request, losses: Losses, *, tools: bool) -> dict[str, Any]:
    wanted = request.output_format
    if wanted is None:
        return {}
    if tools and request.dialect != NAME:
        losses.lose("response_format", wanted.name or wanted.mode, "Cohere takes no format beside tools")
        return {}
    schema = {"json_schema": wanted.schema} if wanted.mode == "json_schema" and wanted.schema is not None else {}
    return {"response_format": {"type": "json_object", **schema}}
