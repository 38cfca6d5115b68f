"""A Request for Cohere's v2 chat."""

from __future__ import annotations

from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.cohere.encode_messages import encode_messages
from bardo.dialects.cohere.words import NAME, TITLE
from bardo.dialects.fragments import laid_into
from bardo.dialects.functions import write_tool
from bardo.dialects.losses import Losses
from bardo.dialects.wire import write_json
from bardo.values.request import Control, Request, Sampling, Tool, ToolChoice
from bardo.values.wire import WireRequest

_NAMES = {
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
}


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
    body |= _response_format(request, losses, tools=bool(tools))
    if request.choices > 1:
        losses.lose("n", request.choices, "Cohere answers once", sent=1)
    if request.stream:
        body["stream"] = True
    body |= losses.own_extra(request)
    control = request.control or Control()
    written = laid_into(laid_into(body, _own_words(request, control, losses)), control.fields)
    return WireRequest(path="chat", body=write_json(written), degraded=losses.all)


def _own_words(request: Request, control: Control, losses: Losses) -> dict[str, Any]:
    """Return what a Cohere client said of thinking beside what the control says; it stands in the object that says whether to think."""
    words = losses.own_fields(request.reasoning.carried) if request.reasoning is not None else {}
    if words and "thinking" not in control.fields:
        losses.lose("thinking", words["thinking"], "it goes only beside a type of thinking")
        return {}
    return words


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
    if sampling.min_p is not None:
        losses.lose("min_p", sampling.min_p, "Cohere has no such parameter")
    said = {wire: getattr(sampling, name) for name, wire in _NAMES.items()}
    written = {wire: value for wire, value in said.items() if value is not None}
    return {**written, **({"stop_sequences": list(sampling.stop)} if sampling.stop else {})}


def _response_format(request: Request, losses: Losses, *, tools: bool) -> dict[str, Any]:
    wanted = request.output_format
    if wanted is None:
        return {}
    if tools and request.dialect != NAME:
        losses.lose("response_format", wanted.name or wanted.mode, "Cohere takes no format beside tools")
        return {}
    schema = {"json_schema": wanted.schema} if wanted.mode == "json_schema" and wanted.schema is not None else {}
    return {"response_format": {"type": "json_object", **schema}}
