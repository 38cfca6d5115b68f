"""A client's request, read and checked.

Fields that bardo has a word for become values; the rest stays in `extra`, and goes to providers of this dialect as it came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.jsonfield import decode_object, optional, required, take
from bardo.dialects.openai_responses.input_items import decode_input
from bardo.dialects.openai_responses.state import NAME
from bardo.dialects.options import read_options
from bardo.dialects.reasoning_fields import read_thinking, without_thinking
from bardo.dialects.repeated_items import read_once, without_own
from bardo.dialects.repeated_tools import REPEATED_TOOLS
from bardo.dialects.sampling import OPENAI_SAMPLING, decode_sampling
from bardo.values.blocks import Carried, TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import Arrival


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest, naming the field."""
    fields = decode_object(body)
    options = read_options(fields)
    asked = read_thinking(fields, NAME)
    if asked.omit:
        options = msgspec.structs.replace(options, omit_reasoning=True)
    stream = optional(fields, "stream", bool) or False
    return Request(
        model=_model(fields, arrival),
        messages=_messages(fields),
        tools=REPEATED_TOOLS.read(optional(fields, "tools", list) or [], NAME, _tools),
        tool_choice=_tool_choice(fields),
        max_output_tokens=_output_limit(fields),
        sampling=decode_sampling(fields, OPENAI_SAMPLING, one_stop=True),
        reasoning=asked.policy,
        output_format=read_once(fields, "text", f"{NAME}.format", lambda: _output_format(fields)),
        stream=stream if arrival.stream is None else arrival.stream,
        dialect=NAME,
        extra=_extra(fields),
        body=without_own(fields),
        body_bytes=body,
        options=options,
    )


def _model(fields: dict[str, Any], arrival: Arrival) -> str:
    model = arrival.model or required(fields, "model", str)
    if not model:
        raise InvalidRequest("model is required", param="model")
    return model


def _messages(fields: dict[str, Any]) -> tuple[Message, ...]:
    instructions = optional(fields, "instructions", str)
    leading = read_once(fields, "instructions", f"{NAME}.system", lambda: _leading(instructions))
    value: Any = optional(fields, "input", (str, list))
    if value is None and not any(fields.get(name) is not None for name in _STORED):
        raise InvalidRequest("input is required", param="input", hint="give a string, or a list of input items")
    if isinstance(value, str):
        return (*leading, Message("user", (TextBlock(value),)))
    return (*leading, *decode_input(value or [], "input"))


def _leading(instructions: str | None) -> tuple[Message, ...]:
    return (Message("system", (TextBlock(instructions),)),) if instructions else ()


_STORED = ("prompt", "previous_response_id", "conversation")


def _tools(values: list[Any]) -> tuple[Tool, ...]:
    return tuple(_tool(take(value, dict, f"tools[{index}]"), f"tools[{index}].") for index, value in enumerate(values))


def _tool(value: dict[str, Any], at: str) -> Tool:
    kind = required(value, "type", str, at)
    if kind != "function":
        name = value.get("name")
        return Tool(name=name if isinstance(name, str) else kind, hosted=True, carried=Carried(NAME, value))
    additional = {name: one for name, one in value.items() if name not in _FUNCTION}
    return Tool(
        name=required(value, "name", str, at),
        description=optional(value, "description", str, at) or "",
        schema=optional(value, "parameters", dict, at),
        strict=optional(value, "strict", bool, at),
        carried=Carried(NAME, additional) if additional else None,
    )


_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})


def _tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    value: Any = optional(fields, "tool_choice", (str, dict))
    parallel = optional(fields, "parallel_tool_calls", bool)
    if isinstance(value, str):
        if value not in ("auto", "none", "required"):
            raise InvalidRequest("tool_choice must be auto, none, required or an object", param="tool_choice")
        return ToolChoice(mode=value, parallel=parallel)  # type: ignore[arg-type]
    if value is not None and value.get("type") == "function" and "namespace" not in value:
        return ToolChoice(mode="named", name=required(value, "name", str, "tool_choice."), parallel=parallel)
    return None if parallel is None else ToolChoice(parallel=parallel)


def _output_limit(fields: dict[str, Any]) -> int | None:
    limit = optional(fields, "max_output_tokens", int)
    if limit is not None and limit < 1:
        raise InvalidRequest("max_output_tokens must be at least 1", param="max_output_tokens")
    return limit


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    value = optional(optional(fields, "text", dict) or {}, "format", dict, "text.") or {}
    kind = optional(value, "type", str, "text.format.") or "text"
    if kind == "text":
        return None
    if kind == "json_object":
        return OutputFormat(mode="json_object")
    if kind != "json_schema":
        raise InvalidRequest("text.format.type must be text, json_object or json_schema", param="text.format.type")
    return OutputFormat(
        mode="json_schema",
        name=optional(value, "name", str, "text.format.") or "",
        schema=required(value, "schema", dict, "text.format."),
        strict=optional(value, "strict", bool, "text.format."),
        description=optional(value, "description", str, "text.format.") or "",
    )


def _extra(fields: dict[str, Any]) -> dict[str, Any]:
    extra = without_thinking({name: one for name, one in fields.items() if name not in READ and one is not None})
    text = {name: value for name, value in (fields.get("text") or {}).items() if name != "format" and value is not None}
    if text:
        extra["text"] = text
    choice = fields.get("tool_choice")
    if isinstance(choice, dict) and (choice.get("type") != "function" or "namespace" in choice):
        extra["tool_choice"] = choice
    return extra


READ = frozenset(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "text",
        "stream",
        "bardo",
        *OPENAI_SAMPLING.values(),
    }
)
