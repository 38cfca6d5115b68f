"""A Chat Completions request, as a client sends it, to a Request."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.allowed_tools import with_allowed_tools
from bardo.dialects.jsonfield import decode_object, optional, required, take
from bardo.dialects.openai_chat.constants import NAME
from bardo.dialects.openai_chat.messages import decode_message
from bardo.dialects.options import read_options
from bardo.dialects.reasoning_fields import read_thinking, without_thinking
from bardo.dialects.repeated_items import read_messages, read_once, without_own
from bardo.dialects.repeated_tools import REPEATED_TOOLS
from bardo.dialects.sampling import OPENAI_SAMPLING, decode_sampling
from bardo.dialects.wire import without
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import OutputFormat, Request, Tool, ToolChoice

READ = frozenset(
    {
        "model", "messages", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "n", "stream",
        "max_tokens", "max_completion_tokens", "stream_options", "response_format", "bardo", *OPENAI_SAMPLING.values(),
    }
)  # fmt: skip


_TOOL_FIELDS = frozenset({"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls"})
# All that most requests hold.
_COMMON = frozenset(
    {"model", "messages", "stream", "max_tokens", "max_completion_tokens", "stream_options", *OPENAI_SAMPLING.values()}
    | _TOOL_FIELDS
)


def decode_request(body: bytes) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    messages = required(fields, "messages", list)
    # Most requests lack most fields: what none of them names is not looked for one by one.
    stream_options = (optional(fields, "stream_options", dict) or {}) if "stream_options" in fields else {}
    limit = _count(fields, "max_completion_tokens") if "max_completion_tokens" in fields else None
    if limit is None and "max_tokens" in fields:
        limit = _count(fields, "max_tokens")
    request = Request(
        model=required(fields, "model", str),
        messages=tuple(read_messages(messages, "messages", NAME, decode_message)),
        max_output_tokens=limit,
        sampling=decode_sampling(fields, OPENAI_SAMPLING, one_stop=True),
        stream="stream" in fields and bool(optional(fields, "stream", bool)),
        stream_usage=bool(stream_options and optional(stream_options, "include_usage", bool, "stream_options.")),
        dialect=NAME,
        extra=_stream_extra(stream_options) if stream_options else {},
        body=fields,
        body_bytes=body,
    )
    if not _TOOL_FIELDS.isdisjoint(fields):
        request = _with_tools(request, fields)
    return request if fields.keys() <= _COMMON else _with_others(request, fields)


def _with_tools(request: Request, fields: dict[str, Any]) -> Request:
    choice, unusual = _tool_choice(fields)
    extra = {**request.extra, **unusual} if unusual else request.extra
    return msgspec.structs.replace(request, tools=_tools(fields), tool_choice=choice, extra=extra)


def _with_others(request: Request, fields: dict[str, Any]) -> Request:
    """Return the request with all that its less common fields say."""
    options, asked = read_options(fields), read_thinking(fields, NAME)
    if asked.omit:
        options = msgspec.structs.replace(options, omit_reasoning=True)
    return msgspec.structs.replace(
        request,
        reasoning=asked.policy,
        output_format=_output_format(fields),
        choices=_count(fields, "n") or 1,
        extra={**_extra(fields), **request.extra},
        body=without_own(fields),
        options=options,
    )


def _count(fields: dict[str, Any], name: str) -> int | None:
    count = optional(fields, name, int)
    if count is not None and count < 1:
        raise InvalidRequest(f"{name} must be at least 1", param=name)
    return count


def _extra(fields: dict[str, Any]) -> dict[str, Any]:
    return without_thinking({name: value for name, value in fields.items() if name not in READ and value is not None})


def _stream_extra(stream_options: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in stream_options.items() if name != "include_usage" and value is not None}
    return {"stream_options": rest} if rest else {}


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    tools = REPEATED_TOOLS.read(optional(fields, "tools", list) or [], NAME, _read_tools)
    older = optional(fields, "functions", list) or []
    if not older:
        return tools
    return (*tools, *[_function(function, f"functions[{place}]", {}) for place, function in enumerate(older)])


def _read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    return tuple([decode_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)])


def decode_tool(value: Any, at: str) -> Tool:
    """Return one tool. Raises InvalidRequest naming the field; a tool that is no function is carried whole."""
    tool = take(value, dict, at)
    kind = optional(tool, "type", str, f"{at}.") or "function"
    if kind != "function":
        return Tool(name=kind, carried=Carried(NAME, tool), hosted=True)
    rest = {name: held for name, held in tool.items() if name not in ("type", "function")}
    return _function(required(tool, "function", dict, f"{at}."), f"{at}.function", rest)


def _function(value: Any, at: str, rest: dict[str, Any]) -> Tool:
    function = take(value, dict, at)
    if more := without(function, "name", "description", "parameters", "strict"):
        rest = {**rest, "function": more}
    return Tool(
        name=required(function, "name", str, f"{at}."),
        description=optional(function, "description", str, f"{at}.") or "",
        schema=optional(function, "parameters", dict, f"{at}."),
        strict=optional(function, "strict", bool, f"{at}."),
        carried=Carried(NAME, rest) if rest else None,
    )


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    choice = request.extra.get("tool_choice")
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if not isinstance(allowed, dict):
        return request
    named = [_tool_name(tool) for tool in allowed.get("tools") or () if isinstance(tool, dict)]
    plain = with_allowed_tools(request, [name for name in named if name], required=allowed.get("mode") == "required")
    if plain is request:
        return request
    extra = {name: value for name, value in request.extra.items() if name != "tool_choice"}
    return msgspec.structs.replace(plain, extra=extra)


def _tool_name(tool: dict[str, Any]) -> str:
    """Return the name of a tool that a choice lists, empty where it has none."""
    inner = tool.get(str(tool.get("type")))
    name = inner.get("name") if isinstance(inner, dict) else tool.get("name")
    return name if isinstance(name, str) else ""


def _tool_choice(fields: dict[str, Any]) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice, and one of a form that only this dialect has."""
    choice = fields.get("tool_choice")
    if choice is None:
        # The field of older clients: a word, or the name alone.
        older = fields.get("function_call")
        choice = {"function": older} if isinstance(older, dict) else older
    parallel = optional(fields, "parallel_tool_calls", bool)
    if choice is None:
        return (ToolChoice(parallel=parallel) if parallel is not None else None), {}
    if choice in ("auto", "none", "required"):
        return ToolChoice(mode=choice, parallel=parallel), {}
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        name = required(choice["function"], "name", str, "tool_choice.function.")
        return ToolChoice(mode="named", name=name, parallel=parallel), {}
    if isinstance(choice, dict) and choice.get("type") in ("allowed_tools", "custom"):
        return (ToolChoice(parallel=parallel) if parallel is not None else None), {"tool_choice": choice}
    raise InvalidRequest(
        "tool_choice must be auto, none, required, or name a function",
        hint='{"type": "function", "function": {"name": …}}',
        param="tool_choice",
    )


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    field = "output_config" if fields.get("response_format") is None else "response_format"
    return read_once(fields, field, f"{NAME}.format", lambda: _read_format(fields))


def _read_format(fields: dict[str, Any]) -> OutputFormat | None:
    wanted = optional(fields, "response_format", dict)
    config = optional(fields, "output_config", dict) or {}
    if wanted is None and config.get("format") is not None:
        # Anthropic's form of it: the schema stands in the object itself.
        own = required(config, "format", dict, "output_config.")
        wanted = {"type": own.get("type"), "json_schema": {"schema": own.get("schema")}}
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") == "json_object":
        return OutputFormat(mode="json_object")
    if wanted.get("type") != "json_schema":
        raise InvalidRequest(
            "response_format.type must be text, json_object or json_schema", param="response_format.type"
        )
    inner = required(wanted, "json_schema", dict, "response_format.")
    return OutputFormat(
        mode="json_schema",
        name=optional(inner, "name", str, "response_format.json_schema.") or "answer",
        schema=optional(inner, "schema", (dict, bool), "response_format.json_schema."),
        strict=optional(inner, "strict", bool, "response_format.json_schema."),
        description=optional(inner, "description", str, "response_format.json_schema.") or "",
    )
