"""A Cohere v2 chat request, as a client sends it, to a Request."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.dialects.cohere.constants import NAME, SAMPLING
from bardo.dialects.cohere.decode_messages import read_messages
from bardo.dialects.functions import read_tool
from bardo.dialects.jsonfield import decode_object, optional, required
from bardo.dialects.options import read_options
from bardo.dialects.sampling import decode_sampling
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, OutputFormat, ReasoningPolicy, Request, Tool, ToolChoice
from bardo.values.wire import Arrival

READ = frozenset(
    (
        "model", "messages", "tools", "strict_tools", "tool_choice", "max_tokens", "thinking", "reasoning_effort",
        "response_format", "stream", "bardo", *SAMPLING.values(),
    )
)  # fmt: skip
_CHOICES: dict[str, Literal["none", "required"]] = {"NONE": "none", "REQUIRED": "required"}


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    stream = optional(fields, "stream", bool)
    return Request(
        model=arrival.model or required(fields, "model", str),
        messages=read_messages(required(fields, "messages", list)),
        tools=_tools(fields),
        tool_choice=_tool_choice(fields),
        max_output_tokens=_limit(fields),
        sampling=decode_sampling(fields, SAMPLING),
        reasoning=_reasoning(fields),
        output_format=_output_format(fields),
        stream=bool(stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in READ and value is not None},
        body={name: value for name, value in fields.items() if name != "bardo"},
        body_bytes=raw,
        options=read_options(fields),
    )


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    strict = optional(fields, "strict_tools", bool)
    tools = [read_tool(tool, f"tools[{n}]", NAME) for n, tool in enumerate(optional(fields, "tools", list) or ())]
    return tuple(tool if tool.hosted else msgspec.structs.replace(tool, strict=strict) for tool in tools)


def _tool_choice(fields: dict[str, Any]) -> ToolChoice | None:
    choice = optional(fields, "tool_choice", str)
    if choice is None:
        return None
    if choice not in _CHOICES:
        raise InvalidRequest(f"tool_choice is {choice!r}", hint="use REQUIRED or NONE", param="tool_choice")
    return ToolChoice(mode=_CHOICES[choice])


def _limit(fields: dict[str, Any]) -> int | None:
    limit = optional(fields, "max_tokens", int)
    if limit is not None and limit < 1:
        raise InvalidRequest("max_tokens must be at least 1", param="max_tokens")
    return limit


def _reasoning(fields: dict[str, Any]) -> ReasoningPolicy | None:
    """Return how the model should think; what else stands in `thinking` is carried."""
    thinking: dict[str, Any] = optional(fields, "thinking", dict) or {}
    kind = required(thinking, "type", str, "thinking.") if fields.get("thinking") is not None else None
    if kind not in (None, "enabled", "disabled"):
        raise InvalidRequest(f"thinking.type is {kind!r}", hint="use enabled or disabled", param="thinking.type")
    budget = optional(thinking, "token_budget", int, "thinking.")
    if budget is not None and budget < 1:
        raise InvalidRequest("thinking.token_budget must be at least 1", param="thinking.token_budget")
    level = _effort(fields)
    if kind is None and level is None:
        return None
    effort = None if level == "none" else level
    rest = {name: one for name, one in thinking.items() if name not in ("type", "token_budget") and one is not None}
    return ReasoningPolicy(
        mode="off" if kind == "disabled" or (kind is None and level == "none") else _amount(budget, effort),
        budget=budget,
        effort=effort,
        carried=Carried(NAME, {"thinking": rest}) if rest else None,
        raw_fields=_raw_fields(kind, budget, level),
    )


def _amount(budget: int | None, effort: Effort | None) -> Literal["budget", "effort", "auto"]:
    return "budget" if budget is not None else "auto" if effort is None else "effort"


def _raw_fields(kind: str | None, budget: int | None, effort: str | None) -> dict[str, Any]:
    """Return the words that were read, as they stand in the body."""
    thinking = {"type": kind} if budget is None else {"type": kind, "token_budget": budget}
    found = {"thinking": thinking if kind else None, "reasoning_effort": effort}
    return {name: value for name, value in found.items() if value is not None}


def _effort(fields: dict[str, Any]) -> Effort | Literal["none"] | None:
    given = optional(fields, "reasoning_effort", str)
    if given is None or given == "none":
        return None if given is None else "none"
    for level in EFFORTS:
        if given == level:
            return level
    hint = f"use one of none, {', '.join(EFFORTS)}"
    raise InvalidRequest(f"reasoning_effort is {given!r}", hint=hint, param="reasoning_effort")


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    wanted = optional(fields, "response_format", dict)
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") != "json_object":
        hint = "use text or json_object"
        raise InvalidRequest("response_format.type is no such type", hint=hint, param="response_format.type")
    schema = optional(wanted, "json_schema", dict, "response_format.")
    # The older name of the same field.
    schema = optional(wanted, "schema", dict, "response_format.") if schema is None else schema
    if schema is None:
        return OutputFormat(mode="json_object")
    return OutputFormat(mode="json_schema", name="answer", schema=schema, strict=True)
