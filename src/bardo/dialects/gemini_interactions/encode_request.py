"""A Request as the body of an interaction, for one provider.

Nothing is stored for a client of another dialect, which knows nothing of interactions that go on; Google's default is to store.
"""

from __future__ import annotations

from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.gemini_interactions.constants import NAME, SAMPLING, TITLE
from bardo.dialects.gemini_interactions.encode_input import write_messages
from bardo.dialects.losses import Losses
from bardo.dialects.sampling import encode_sampling
from bardo.values.request import Control, OutputFormat, Request, Tool, ToolChoice

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    needs_turn=True,
    expresses=frozenset(
        (
            "document",
            "document.source",
            "tool_result.is_error",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations(f"{TITLE} gives one answer", "choices", sent=1),
        **limitations(
            f"{TITLE} has no such field",
            "sampling.top_k",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "output_format.description",
        ),
        **limitations(f"{TITLE} has no such field", "tools.strict", same=(False,)),
        **limitations(f"{TITLE} has no such field", "tool_choice.parallel", same=(True,)),
        **limitations(f"{TITLE} has no such field", "image.detail", same=("auto",)),
        **limitations("Gemini takes a document without its name", "document.name"),
        **limitations("Gemini always holds to the schema", "output_format.strict", same=(True,)),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body."""
    extra = dict(losses.own_extra(request))
    system, steps = write_messages(request.messages, losses)
    held = extra.pop("generation_config", None)
    body = {
        **extra,
        "model": None if "agent" in extra else request.model,
        "input": steps or None,
        "system_instruction": system or None,
        "tools": _tools(request.tools, losses) or None,
        "response_format": extra.get("response_format") or _output_format(request.output_format),
        "generation_config": {**_config(request), **(held if isinstance(held, dict) else {})} or None,
        "stream": True if request.stream else None,
        "store": extra.get("store", None if request.dialect == NAME else False),
    }
    written = {name: value for name, value in body.items() if value is not None}
    return merge_fields(written, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control."""
    return (request.control or Control()).fields


def _config(request: Request) -> dict[str, Any]:
    config = {
        **encode_sampling(request.sampling, SAMPLING),
        "max_output_tokens": request.max_output_tokens,
        "tool_choice": _tool_choice(request.tool_choice),
    }
    return {name: value for name, value in config.items() if value is not None}


def _tool_choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.mode == "named":
        return {"allowed_tools": {"mode": "any", "tools": [choice.name]}}
    return "any" if choice.mode == "required" else choice.mode


def _tools(tools: tuple[Tool, ...], losses: Losses) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for tool in tools:
        if tool.hosted and (tool.carried is None or tool.carried.dialect != NAME):
            losses.lose_tool(tool)
            continue
        fields = losses.own_fields(tool.carried)
        written.append(fields if tool.hosted else {**_function(tool), **fields})
    return written


def _function(tool: Tool) -> dict[str, Any]:
    function = {
        "type": "function",
        "name": tool.name,
        "description": tool.description or None,
        "parameters": tool.schema,
    }
    return {name: value for name, value in function.items() if value is not None}


def _output_format(output_format: OutputFormat | None) -> dict[str, Any] | None:
    if output_format is None:
        return None
    shape: dict[str, Any] = {"type": "text", "mime_type": "application/json"}
    return shape if output_format.schema is None else {**shape, "schema": output_format.schema}
