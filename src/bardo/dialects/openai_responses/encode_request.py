"""A request for a provider of this dialect.

By default nothing is stored, and the ciphertext of reasoning is asked for, so that a conversation can go on anywhere.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.asked_thinking import with_own_words
from bardo.dialects.fragments import laid_into
from bardo.dialects.openai_responses.notes import Notes
from bardo.dialects.openai_responses.output_items import write_input
from bardo.dialects.openai_responses.state import NAME
from bardo.values.blocks import fields_for
from bardo.values.request import OutputFormat, Request, Tool
from bardo.values.wire import WireRequest

ENCRYPTED = "reasoning.encrypted_content"
_UNSUPPORTED = ("top_k", "min_p", "frequency_penalty", "presence_penalty", "seed", "stop")
# Fields that rest on what the provider stored, or ask it to store: then the caller's silence on `store` stays silence.
_STORED = ("previous_response_id", "conversation", "background", "prompt")


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write the request; what the dialect cannot say is in `degraded`."""
    notes = Notes()
    instructions, items = write_input(request, row, notes)
    body: dict[str, Any] = {"model": request.model, "input": items}
    if instructions:
        body["instructions"] = instructions
    body |= _tools(request, notes)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    body |= _sampling(request, notes)
    body |= _text(request)
    if request.choices > 1:
        notes.add("n", asked=request.choices, sent=1, why=f"{NAME} gives one answer a call")
    if request.stream:
        body["stream"] = True
    _add_extra(body, request, notes)
    body = laid_into(body, _thinking(request, notes))
    _add_storage(body)
    return WireRequest(path="responses", body=msgspec.json.encode(body), degraded=notes.found)


def _tools(request: Request, notes: Notes) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    tools = [written for tool in request.tools if (written := _tool(tool, request, notes)) is not None]
    if tools:
        fields["tools"] = tools
    choice = request.tool_choice
    if choice is not None and (tools or choice.mode != "auto"):
        fields["tool_choice"] = {"type": "function", "name": choice.name} if choice.mode == "named" else choice.mode
    if choice is not None and choice.parallel is not None:
        fields["parallel_tool_calls"] = choice.parallel
    return fields


def _tool(tool: Tool, request: Request, notes: Notes) -> dict[str, Any] | None:
    own = fields_for(NAME, tool.carried)
    if tool.hosted:
        if not own:
            notes.once("tools", asked=tool.name, why=f"{NAME} has no such tool of its own")
        return own or None
    notes.foreign(tool.carried)
    written: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "parameters": {"type": "object", "properties": {}} if tool.schema is None else tool.schema,
    }
    if tool.description:
        written["description"] = tool.description
    # Left out, strict would be on here, and off in the other dialects.
    if tool.strict is not None or request.dialect != NAME:
        written["strict"] = bool(tool.strict)
    return {**written, **own}


def _sampling(request: Request, notes: Notes) -> dict[str, Any]:
    sampling = request.sampling
    fields: dict[str, Any] = {}
    for name in ("temperature", "top_p"):
        if (value := getattr(sampling, name)) is not None:
            fields[name] = value
    for name in _UNSUPPORTED:
        value = getattr(sampling, name)
        if value is None or value == ():
            continue
        # A caller who writes this dialect means a server that knows more of it than OpenAI.
        if request.dialect == NAME:
            fields[name] = list(value) if name == "stop" else value
        else:
            notes.add(name, asked=value, why=f"{NAME} has no such field")
    return fields


def _text(request: Request) -> dict[str, Any]:
    text = dict(request.extra.get("text") or {}) if request.dialect == NAME else {}
    if request.output_format is not None:
        text["format"] = _format(request.output_format)
    return {"text": text} if text else {}


def _format(wanted: OutputFormat) -> dict[str, Any]:
    if wanted.mode == "json_object":
        return {"type": "json_object"}
    written = {"type": "json_schema", "name": wanted.name or "answer", "schema": wanted.schema}
    if wanted.strict is not None:
        written["strict"] = wanted.strict
    if wanted.description:
        written["description"] = wanted.description
    return written


def _thinking(request: Request, notes: Notes) -> dict[str, Any]:
    if request.reasoning is not None:
        notes.foreign(request.reasoning.carried)
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        notes.add(path, asked=value, why="it goes with words that are not sent to this provider")
    return written


def _add_extra(body: dict[str, Any], request: Request, notes: Notes) -> None:
    for name, value in request.extra.items():
        if request.dialect != NAME:
            notes.add(name, asked=value, why=f"{NAME} has no such field")
        elif name != "text":
            body[name] = value


def _add_storage(body: dict[str, Any]) -> None:
    if "store" not in body and not any(body.get(name) for name in _STORED):
        body["store"] = False
    if "include" not in body and body.get("store") is False:
        body["include"] = [ENCRYPTED]
