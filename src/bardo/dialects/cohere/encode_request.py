"""A Request for Cohere's v2 chat."""

from __future__ import annotations

from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.cohere.constants import NAME, SAMPLING, TITLE
from bardo.dialects.cohere.encode_messages import encode_messages
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.functions import write_tool
from bardo.dialects.losses import Losses
from bardo.dialects.sampling import encode_sampling
from bardo.values.request import Control, Request, Tool, ToolChoice

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    expresses=frozenset(
        (
            "tools.strict",
            "image.detail",
            "sampling.top_k",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations("Cohere takes no such documents", "document"),
        **limitations("Cohere answers once", "choices", sent=1),
        **limitations("Cohere has no such parameter", "sampling.min_p", "sampling.repetition_penalty"),
        **limitations("Cohere leaves the number of calls to the model", "tool_choice.parallel", same=(True,)),
        **limitations("Cohere does not tell a failed tool from another", "tool_result.is_error"),
        **limitations("Cohere always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Cohere has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body."""
    body: dict[str, Any] = {"model": request.model, "messages": encode_messages(request, losses)}
    offered, choice = _offered(request, losses)
    tools = [wire for tool in offered for wire in write_tool(tool, losses)]
    if tools:
        body |= {"tools": tools, **choice, **_strict(offered, losses)}
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    body |= encode_sampling(request.sampling, SAMPLING)
    body |= _response_format(request, losses, tools=bool(tools))
    if request.stream:
        body["stream"] = True
    body |= losses.own_extra(request)
    return merge_fields(body, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control, and a Cohere client's own words in the object that says whether to think."""
    control = request.control or Control()
    words = losses.own_fields(request.reasoning.carried) if request.reasoning is not None else {}
    if words and "thinking" not in control.fields:
        losses.lose("thinking", words["thinking"], "it goes only beside a type of thinking")
        words = {}
    return merge_fields(words, control.fields)


def _offered(request: Request, losses: Losses) -> tuple[tuple[Tool, ...], dict[str, Any]]:
    """Return the tools, and which may be called: Cohere cannot name one, but one alone needs no name."""
    choice = request.tool_choice or ToolChoice()
    if choice.mode in ("none", "required"):
        return request.tools, {"tool_choice": choice.mode.upper()}
    if choice.mode != "named":
        return request.tools, {}
    losses.lose("tool_choice", choice.name, "Cohere cannot name a tool, so only that one is offered", sent="REQUIRED")
    return tuple(tool for tool in request.tools if tool.name == choice.name), {"tool_choice": "REQUIRED"}


def _strict(tools: tuple[Tool, ...], losses: Losses) -> dict[str, Any]:
    values = {tool.strict for tool in tools if not tool.hosted}
    if len(values) > 1:
        asked = [tool.name for tool in tools if tool.strict]
        losses.lose("tools.strict", asked, "Cohere is strict with all tools or with none", sent=True in values)
    if True in values:
        return {"strict_tools": True}
    return {"strict_tools": False} if values == {False} else {}


def _response_format(request: Request, losses: Losses, *, tools: bool) -> dict[str, Any]:
    wanted = request.output_format
    if wanted is None:
        return {}
    if tools and request.dialect != NAME:
        losses.lose("response_format", wanted.name or wanted.mode, "Cohere takes no format beside tools")
        return {}
    schema = {"json_schema": wanted.schema} if wanted.mode == "json_schema" and wanted.schema is not None else {}
    return {"response_format": {"type": "json_object", **schema}}
