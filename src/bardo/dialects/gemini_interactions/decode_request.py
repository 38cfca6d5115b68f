"""A client's interaction to a Request."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.dialects.allowed_tools import with_allowed_tools
from bardo.dialects.gemini_interactions.constants import NAME, SAMPLING
from bardo.dialects.gemini_interactions.decode_input import read_input
from bardo.dialects.jsonfield import decode_object, optional, required, take
from bardo.dialects.options import read_options
from bardo.dialects.sampling import decode_sampling
from bardo.dialects.wire import without
from bardo.values.blocks import Carried, TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Message, OutputFormat, ReasoningPolicy, Request, Tool, ToolChoice
from bardo.values.wire import Arrival

READ = frozenset(("model", "input", "system_instruction", "tools", "generation_config", "stream", "bardo"))
_CONFIG = frozenset(
    (
        "max_output_tokens", "thinking_level", "thinking_summaries", "tool_choice", *SAMPLING.values(),
    )
)  # fmt: skip
_AT = "generation_config."
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "validated": "auto",
    "any": "required",
    "none": "none",
}


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    stream = optional(fields, "stream", bool)
    config = optional(fields, "generation_config", dict) or {}
    choice, kept = _tool_choice(config)
    output_format, shape = _output_format(fields)
    others = {**without(config, *_CONFIG), **kept}
    extra = without(fields, *READ, *(() if shape else ("response_format", "response_mime_type")))
    return Request(
        model=arrival.model or _model(fields),
        messages=(*_system(fields), *_input(fields)),
        tools=_tools(fields),
        tool_choice=choice,
        max_output_tokens=_whole(config, "max_output_tokens"),
        sampling=decode_sampling(config, SAMPLING, _AT),
        reasoning=_reasoning(config),
        output_format=output_format,
        stream=bool(stream if arrival.stream is None else arrival.stream),
        dialect=NAME,
        extra={**extra, **({"generation_config": others} if others else {})},
        body=without(fields, "bardo"),
        body_bytes=raw,
        options=read_options(fields),
    )


def _model(fields: dict[str, Any]) -> str:
    # An agent stands in the place of a model; its field is sent on as it came.
    name = optional(fields, "model", str) or optional(fields, "agent", str)
    return (name or required(fields, "model", str)).removeprefix("models/")


def _system(fields: dict[str, Any]) -> tuple[Message, ...]:
    text = optional(fields, "system_instruction", str)
    return (Message("system", (TextBlock(text),)),) if text else ()


def _input(fields: dict[str, Any]) -> tuple[Message, ...]:
    if fields.get("input") is None and fields.get("continuation_token") is not None:
        return ()
    return read_input(required(fields, "input", (str, dict, list)))


def _whole(config: dict[str, Any], name: str) -> int | None:
    value = optional(config, name, (int, float), _AT)
    if value is None:
        return None
    if value != value or value != value // 1:
        raise InvalidRequest(f"{_AT}{name} must be a whole number", param=f"{_AT}{name}")
    return int(value)


def _reasoning(config: dict[str, Any]) -> ReasoningPolicy | None:
    level = (optional(config, "thinking_level", str, _AT) or "").lower()
    summaries = optional(config, "thinking_summaries", str, _AT)
    if not level and not summaries:
        return None
    visible = None if summaries is None else summaries != "none"
    given = {name: config[name] for name in ("thinking_level", "thinking_summaries") if config.get(name)}
    raw_fields = {"generation_config": given}
    if not level:
        # Who only asks for summaries does not ask for thinking.
        return ReasoningPolicy(mode="auto", visible=visible, enables_thinking=False, raw_fields=raw_fields)
    if level not in EFFORTS:
        hint = f"one of {', '.join(EFFORTS)}"
        raise InvalidRequest(f"unknown thinking_level {level!r:.60}", hint=hint, param=f"{_AT}thinking_level")
    return ReasoningPolicy(mode="effort", effort=level, visible=visible, raw_fields=raw_fields)


def _tool_choice(config: dict[str, Any]) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice, and the field itself where bardo has no word for all of it."""
    given: Any = optional(config, "tool_choice", (str, dict), _AT)
    if given is None:
        return None, {}
    if isinstance(given, str):
        return ToolChoice(mode=_mode(given)), {"tool_choice": given} if given == "validated" else {}
    at = f"{_AT}tool_choice.allowed_tools."
    allowed = optional(given, "allowed_tools", dict, f"{_AT}tool_choice.") or {}
    mode = optional(allowed, "mode", str, at) or "auto"
    listed = optional(allowed, "tools", list, at) or []
    names = [take(name, str, f"{at}tools[{place}]") for place, name in enumerate(listed)]
    if mode == "any" and len(names) == 1:
        return ToolChoice(mode="named", name=names[0]), {}
    return ToolChoice(mode=_mode(mode)), {"tool_choice": given}


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    config = request.extra.get("generation_config")
    given = config.get("tool_choice") if isinstance(config, dict) else None
    allowed = given.get("allowed_tools") if isinstance(given, dict) else None
    if config is None or not isinstance(allowed, dict) or not allowed.get("tools"):
        return request
    plain = with_allowed_tools(request, allowed["tools"], required=_mode(allowed.get("mode") or "auto") == "required")
    if plain is request:
        return request
    kept = {name: value for name, value in config.items() if name != "tool_choice"}
    extra = {name: value for name, value in request.extra.items() if name != "generation_config"}
    return msgspec.structs.replace(plain, extra={**extra, **({"generation_config": kept} if kept else {})})


def _mode(word: str) -> Literal["auto", "none", "required"]:
    if word in _MODES:
        return _MODES[word]
    hint = f"one of {', '.join(_MODES)}"
    raise InvalidRequest(f"unknown tool_choice {word!r:.60}", hint=hint, param=f"{_AT}tool_choice")


def _tools(fields: dict[str, Any]) -> tuple[Tool, ...]:
    given = optional(fields, "tools", list) or []
    return tuple(_tool(take(one, dict, f"tools[{place}]"), f"tools[{place}].") for place, one in enumerate(given))


def _tool(tool: dict[str, Any], at: str) -> Tool:
    kind = required(tool, "type", str, at)
    if kind != "function":
        return Tool(name=kind, carried=Carried(NAME, tool), hosted=True)
    rest = without(tool, "type", "name", "description", "parameters")
    return Tool(
        name=required(tool, "name", str, at),
        description=optional(tool, "description", str, at) or "",
        schema=optional(tool, "parameters", dict, at),
        carried=Carried(NAME, rest) if rest else None,
    )


def _output_format(fields: dict[str, Any]) -> tuple[OutputFormat | None, bool]:
    """Return the shape of the answer, and whether its fields must go on as they came."""
    given: Any = optional(fields, "response_format", (dict, list))
    mime = optional(fields, "response_mime_type", str)
    only = given[0] if isinstance(given, list) and len(given) == 1 else given
    if only is None:
        return (OutputFormat(mode="json_object"), False) if mime == "application/json" else (None, True)
    if not isinstance(only, dict):
        return None, True
    if only.get("type") == "text" and optional(only, "mime_type", str, "response_format.") == "application/json":
        schema = optional(only, "schema", dict, "response_format.")
        mode: Literal["json_object", "json_schema"] = "json_object" if schema is None else "json_schema"
        return OutputFormat(mode=mode, schema=schema), bool(without(only, "type", "mime_type", "schema"))
    if mime == "application/json" and only.get("type") != "text":
        # Before it got types of its own, the field was the bare schema.
        return OutputFormat(mode="json_schema", schema=only), False
    return None, True
