"""A Request for a server that speaks Ollama's own API."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.fragments import laid_into
from bardo.dialects.functions import write_tool
from bardo.dialects.losses import Losses
from bardo.dialects.ollama.encode_messages import encode_messages
from bardo.dialects.ollama.words import NAME, TITLE
from bardo.dialects.wire import write_json
from bardo.values.request import Control, OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write the request; what Ollama cannot say is in `degraded`."""
    losses = Losses(NAME, TITLE)
    extra = dict(losses.own_extra(request))
    body: dict[str, Any] = {"model": request.model, "messages": encode_messages(request, losses)}
    tools = [wire for tool in _offered(request, losses) for wire in _tool(tool, losses)]
    if tools:
        body["tools"] = tools
    options = {**_object(extra.pop("options", None)), **_options(request)}
    if options:
        body["options"] = options
    body |= _format(request.output_format)
    if request.reasoning is not None:
        losses.own_fields(request.reasoning.carried)
    if request.choices > 1:
        losses.lose("n", request.choices, "Ollama answers once", sent=1)
    # Silence means a stream here.
    body["stream"] = request.stream
    written = laid_into({**body, **extra}, (request.control or Control()).fields)
    return WireRequest(path="chat", body=write_json(written), degraded=losses.all)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _offered(request: Request, losses: Losses) -> tuple[Tool, ...]:
    """Return the tools that may be called: Ollama has no field that chooses among them."""
    choice = request.tool_choice or ToolChoice()
    why = "Ollama leaves the choice of tools to the model"
    if choice.parallel is False and request.tools:
        losses.lose("parallel_tool_calls", False, why)
    if choice.mode == "none" and request.tools:
        losses.lose("tool_choice", "none", f"{why}, so none is offered", sent="no tools")
        return ()
    if choice.mode == "required":
        losses.lose("tool_choice", "required", why)
    if choice.mode != "named":
        return request.tools
    losses.lose("tool_choice", choice.name, f"{why}, so only that one is offered")
    return tuple(tool for tool in request.tools if tool.name == choice.name)


def _tool(tool: Tool, losses: Losses) -> list[dict[str, Any]]:
    if tool.strict:
        losses.lose("strict", True, "Ollama does not bind tool arguments to their schema")
    return write_tool(tool, losses)


def _options(request: Request) -> dict[str, Any]:
    sampling = msgspec.structs.asdict(request.sampling)
    options = {name: value for name, value in sampling.items() if value is not None and name != "stop"}
    if request.sampling.stop:
        options["stop"] = list(request.sampling.stop)
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    return options


def _format(wanted: OutputFormat | None) -> dict[str, Any]:
    if wanted is None:
        return {}
    return {"format": "json" if wanted.mode == "json_object" or wanted.schema is None else wanted.schema}
