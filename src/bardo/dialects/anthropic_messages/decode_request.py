"""A client's Messages request (or `count_tokens` request) to a Request."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.anthropic_messages.constants import NAME, SAMPLING
from bardo.dialects.anthropic_messages.decode_controls import (
    read_output_format,
    read_reasoning,
    read_tool,
    read_tool_choice,
)
from bardo.dialects.anthropic_messages.decode_messages import read_message, read_system, with_tool_names
from bardo.dialects.jsonfield import decode_object, optional, required
from bardo.dialects.options import read_options
from bardo.dialects.repeated_items import read_messages, read_once, without_own
from bardo.dialects.repeated_tools import REPEATED_TOOLS
from bardo.dialects.sampling import decode_sampling
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions, Message, OutputFormat, Request, Tool
from bardo.values.wire import Arrival

READ = frozenset(
    (
        "model",
        "messages",
        "system",
        "max_tokens",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "output_format",
        *SAMPLING.values(),
        "stream",
        "bardo",
    )
)


# All that most requests hold.
_COMMON = frozenset(("model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice", *SAMPLING.values()))

_UNASKED = BardoOptions(omit_unasked=True)


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field; one that is only counted needs no `max_tokens`."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    stream = optional(fields, "stream", bool)
    request = Request(
        model=arrival.model or required(fields, "model", str),
        messages=_messages(fields),
        tools=_tools(fields) if "tools" in fields else (),
        tool_choice=read_tool_choice(fields) if "tool_choice" in fields else None,
        max_output_tokens=_limit(fields, arrival.counting),
        sampling=decode_sampling(fields, SAMPLING),
        stream=bool(stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        body=fields,
        body_bytes=raw,
        options=_UNASKED,
    )
    return request if fields.keys() <= _COMMON else _with_others(request, fields)


def _with_others(request: Request, fields: dict[str, Any]) -> Request:
    """Return the request with all that its less common fields say."""
    config = optional(fields, "output_config", dict) or {}
    left = {name: value for name, value in config.items() if name not in ("effort", "format")}
    return msgspec.structs.replace(
        request,
        reasoning=read_reasoning(fields, config),
        output_format=_output_format(fields, config),
        extra={name: value for name, value in fields.items() if name not in READ}
        | ({"output_config": left} if left else {}),
        body=without_own(fields),
        options=_options(fields),
    )


def _output_format(fields: dict[str, Any], config: dict[str, Any]) -> OutputFormat | None:
    # The older name counts only where the newer says nothing, so one value of the two is all that is read.
    field = "output_format" if config.get("format") is None else "output_config"
    return read_once(fields, field, f"{NAME}.format", lambda: read_output_format(fields, config))


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    return REPEATED_TOOLS.read(optional(fields, "tools", list) or [], NAME, _read_tools)


def _read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    return tuple([read_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)])


def _options(fields: dict[str, Any]) -> BardoOptions:
    """Return the options. Clients that do not ask for thinking read `content[0].text`, so they get none unless they say `include`."""
    options = read_options(fields)
    asked = fields.get("thinking") or {"type": "disabled"}
    said = (fields.get("bardo") or {}).get("reasoning")
    unasked = asked.get("type") == "disabled" and said is None
    return msgspec.structs.replace(options, omit_unasked=True) if unasked else options


def _messages(fields: dict[str, Any]) -> tuple[Message, ...]:
    messages = read_messages(required(fields, "messages", list), "messages", NAME, read_message)
    if "system" not in fields:
        return with_tool_names(messages)
    system = read_once(fields, "system", f"{NAME}.system", lambda: read_system(fields.get("system")))
    return with_tool_names((*system, *messages))


def _limit(fields: dict[str, Any], counting: bool) -> int | None:
    limit = optional(fields, "max_tokens", int) if counting else required(fields, "max_tokens", int)
    # 0 fills the prompt cache without an answer: anthropic 2.12.0, message_create_params.py.
    if limit is not None and limit < 0:
        raise InvalidRequest("max_tokens must not be negative", param="max_tokens")
    return limit
