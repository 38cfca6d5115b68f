"""A Request to a Chat Completions body for one provider."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects.asked_thinking import with_own_words
from bardo.dialects.fragments import laid_into
from bardo.dialects.openai_chat.words import NAME
from bardo.dialects.openai_chat.write_messages import MessageWriter
from bardo.values.blocks import fields_for
from bardo.values.degradation import Degradation, DegradationList
from bardo.values.request import OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write a request; what this provider's Chat cannot say is in `degraded`."""
    quirks = row.quirks
    writer = MessageWriter(quirks)
    degraded = writer.degraded
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [written for message in request.messages for written in writer.write(message)],
    }
    tools = [written for tool in request.tools for written in _tool(tool, writer)]
    if tools:
        body["tools"] = tools
        body |= _tool_choice(request.tool_choice)
    if request.max_output_tokens is not None:
        body[quirks.output_limit_field] = request.max_output_tokens
    body |= _sampling(request)
    if request.choices > 1:
        body["n"] = request.choices
    if request.output_format is not None:
        body["response_format"] = _output_format(request.output_format)
    body |= _extra(request, degraded)
    body = laid_into(body, _thinking(request, writer))
    body |= _stream(request, quirks, body.pop("stream_options", None))
    return WireRequest(path="chat/completions", body=msgspec.json.encode(body), degraded=degraded.all)


def _stream(request: Request, quirks: Quirks, asked: Any) -> dict[str, Any]:
    if not request.stream:
        return {}
    options = {**(asked or {}), **({"include_usage": True} if quirks.stream_usage else {})}
    return {"stream": True, "stream_options": options} if options else {"stream": True}


def _tool(tool: Tool, writer: MessageWriter) -> list[dict[str, Any]]:
    if tool.hosted:
        own = fields_for(NAME, tool.carried)
        if own:
            return [own]
        why = "this provider does not run that tool itself"
        writer.degraded.add(Degradation("tools", asked=tool.name, why=why))
        return []
    writer.note_carried(tool.carried)
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return [{"type": "function", "function": function, **fields_for(NAME, tool.carried)}]


def _tool_choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    written: dict[str, Any] = {}
    if choice.mode == "named":
        written["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto" or choice.parallel is None:
        written["tool_choice"] = choice.mode
    if choice.parallel is not None:
        written["parallel_tool_calls"] = choice.parallel
    return written


def _sampling(request: Request) -> dict[str, Any]:
    sampling = msgspec.structs.asdict(request.sampling)
    written = {name: value for name, value in sampling.items() if value is not None and name != "stop"}
    if request.sampling.stop:
        written["stop"] = list(request.sampling.stop)
    return written


def _output_format(wanted: OutputFormat) -> dict[str, Any]:
    if wanted.mode == "json_object":
        return {"type": "json_object"}
    inner: dict[str, Any] = {"name": wanted.name or "answer"}
    if wanted.schema is not None:
        inner["schema"] = wanted.schema
    if wanted.strict is not None:
        inner["strict"] = wanted.strict
    if wanted.description:
        inner["description"] = wanted.description
    return {"type": "json_schema", "json_schema": inner}


def _thinking(request: Request, writer: MessageWriter) -> dict[str, Any]:
    if request.reasoning is not None:
        writer.note_carried(request.reasoning.carried)
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        why = "it goes with words that are not sent to this provider"
        writer.degraded.add(Degradation(path, asked=value, why=why))
    return written


def _extra(request: Request, degraded: DegradationList) -> dict[str, Any]:
    if request.dialect in ("", NAME):
        return request.extra
    for name, value in request.extra.items():
        degraded.add(Degradation(name, asked=value, why="Chat Completions has no such field"))
    return {}
