"""A Request as the body of an interaction, for one provider.

Nothing is stored for a client of another dialect, which knows nothing of interactions that go on; Google's default is to store.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.fragments import laid_into
from bardo.dialects.gemini_interactions.encode_input import write_messages
from bardo.dialects.gemini_interactions.words import NAME, TITLE
from bardo.dialects.losses import Losses
from bardo.dialects.wire import encode_json
from bardo.values.errors import InvalidRequest
from bardo.values.request import Control, OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

_NO_FIELD = f"{TITLE} has no such field"


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write path and body. What the dialect cannot say is in `degraded`."""
    losses = Losses(NAME, TITLE)
    extra = dict(losses.own_extra(request))
    system, steps = write_messages(request.messages, losses)
    held = extra.pop("generation_config", None)
    body = {
        **extra,
        "model": None if "agent" in extra else request.model,
        "input": steps or None,
        "system_instruction": system or None,
        "tools": _tools(request.tools, losses) or None,
        "response_format": extra.get("response_format") or _output_format(request.output_format, losses),
        "generation_config": {**_config(request, losses), **(held if isinstance(held, dict) else {})} or None,
        "stream": True if request.stream else None,
        "store": extra.get("store", None if request.dialect == NAME else False),
    }
    if request.reasoning is not None:
        losses.own_fields(request.reasoning.carried)
    said = {name: value for name, value in body.items() if value is not None}
    try:
        written = encode_json(laid_into(said, (request.control or Control()).fields))
    except (RecursionError, msgspec.MsgspecError) as problem:
        raise InvalidRequest("the request cannot be written as JSON") from problem
    return WireRequest(path="interactions", body=written, degraded=losses.all)


def _config(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    for name in ("top_k", "min_p", "frequency_penalty", "presence_penalty"):
        if getattr(sampling, name) is not None:
            losses.lose(name, getattr(sampling, name), _NO_FIELD)
    if request.choices > 1:
        losses.lose("choices", request.choices, f"{TITLE} gives one answer", sent=1)
    config = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop_sequences": list(sampling.stop) or None,
        "max_output_tokens": request.max_output_tokens,
        "tool_choice": _tool_choice(request.tool_choice, losses),
    }
    return {name: value for name, value in config.items() if value is not None}


def _tool_choice(choice: ToolChoice | None, losses: Losses) -> Any:
    if choice is None:
        return None
    if choice.parallel is False:
        losses.lose("parallel_tool_calls", False, _NO_FIELD)
    if choice.mode == "named":
        return {"allowed_tools": {"mode": "any", "tools": [choice.name]}}
    return "any" if choice.mode == "required" else choice.mode


def _tools(tools: tuple[Tool, ...], losses: Losses) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for tool in tools:
        if tool.hosted and (tool.carried is None or tool.carried.dialect != NAME):
            losses.lose(f"tool {tool.name}", tool.name, "a tool only its own provider runs")
            continue
        fields = losses.own_fields(tool.carried)
        written.append(fields if tool.hosted else {**_function(tool, losses), **fields})
    return written


def _function(tool: Tool, losses: Losses) -> dict[str, Any]:
    if tool.strict:
        losses.lose("tools.strict", True, _NO_FIELD)
    function = {
        "type": "function",
        "name": tool.name,
        "description": tool.description or None,
        "parameters": tool.schema,
    }
    return {name: value for name, value in function.items() if value is not None}


def _output_format(wanted: OutputFormat | None, losses: Losses) -> dict[str, Any] | None:
    if wanted is None:
        return None
    if wanted.strict is False:
        losses.lose("response_format.strict", False, "Gemini always holds to the schema")
    shape: dict[str, Any] = {"type": "text", "mime_type": "application/json"}
    return shape if wanted.schema is None else {**shape, "schema": wanted.schema}
