"""A Request for a server that speaks Ollama's own API."""

from __future__ import annotations

from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.functions import write_tool
from bardo.dialects.losses import Losses
from bardo.dialects.ollama.constants import NAME, SAMPLING, TITLE
from bardo.dialects.ollama.encode_messages import encode_messages
from bardo.dialects.sampling import encode_sampling
from bardo.values.request import Control, OutputFormat, Request, Tool, ToolChoice

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    expresses=frozenset(
        (
            "sampling.top_k",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations("Ollama takes text and pictures", "document"),
        **limitations("Ollama answers once", "choices", sent=1),
        **limitations("Ollama leaves the choice of tools to the model", "tool_choice.parallel", same=(True,)),
        **limitations("Ollama does not bind tool arguments to their schema", "tools.strict", same=(False,)),
        **limitations("Ollama does not tell a failed tool from another", "tool_result.is_error"),
        **limitations("Ollama chooses the detail itself", "image.detail", same=("auto",)),
        **limitations("Ollama always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Ollama has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body."""
    extra = dict(losses.own_extra(request))
    body: dict[str, Any] = {"model": request.model, "messages": encode_messages(request, losses)}
    tools = [wire for tool in _offered(request, losses) for wire in write_tool(tool, losses)]
    if tools:
        body["tools"] = tools
    options = {**_object(extra.pop("options", None)), **_options(request)}
    if options:
        body["options"] = options
    body |= _format(request.output_format)
    # Silence means a stream here.
    body["stream"] = request.stream
    return merge_fields({**body, **extra}, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control."""
    return (request.control or Control()).fields


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _offered(request: Request, losses: Losses) -> tuple[Tool, ...]:
    """Return the tools that may be called: Ollama has no field that chooses among them."""
    choice = request.tool_choice or ToolChoice()
    why = "Ollama leaves the choice of tools to the model"
    if choice.mode == "none" and request.tools:
        losses.lose("tool_choice", "none", f"{why}, so none is offered", sent="no tools")
        return ()
    if choice.mode == "required":
        losses.lose("tool_choice", "required", why)
    if choice.mode != "named":
        return request.tools
    losses.lose("tool_choice", choice.name, f"{why}, so only that one is offered")
    return tuple(tool for tool in request.tools if tool.name == choice.name)


def _options(request: Request) -> dict[str, Any]:
    options = encode_sampling(request.sampling, SAMPLING)
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    return options


def _format(output_format: OutputFormat | None) -> dict[str, Any]:
    if output_format is None:
        return {}
    return {
        "format": "json"
        if output_format.mode == "json_object" or output_format.schema is None
        else output_format.schema
    }
