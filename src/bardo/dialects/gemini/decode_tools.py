"""A client's `tools` and `toolConfig`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.dialects.allowed_tools import with_allowed_tools
from bardo.dialects.gemini.constants import NAME, camel, split_fields
from bardo.dialects.gemini.schema import json_schema
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.repeated_tools import REPEATED_TOOLS
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request, Tool, ToolChoice

_CALLING = "toolConfig.functionCallingConfig"
_DECLARATION = ("name", "description", "parameters", "parametersJsonSchema")
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "": "auto",
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "required",
    "NONE": "none",
}


def decode_tools(value: Any) -> tuple[Tool, ...]:
    """Read function declarations, and the tools that Google itself runs as `hosted`."""
    listed: Any = take(value, (list, dict), "tools") if value is not None else []
    return REPEATED_TOOLS.read([listed] if isinstance(listed, dict) else listed, NAME, _read_tools)


def _read_tools(listed: list[Any]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for index, entry in enumerate(listed):
        at = f"tools[{index}]"
        for name, held in take(entry, dict, at).items():
            if held is None:
                continue
            if camel(name) == "functionDeclarations":
                tools += _declarations(held, f"{at}.functionDeclarations")
            else:
                tools.append(Tool(name=camel(name), hosted=True, carried=Carried(NAME, {camel(name): held})))
    return tuple(tools)


def decode_tool_choice(value: Any) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice, and what of `toolConfig` bardo has no word for, in its own shape."""
    if value is None:
        return None, {}
    known, others = split_fields(take(value, dict, "toolConfig"), ("functionCallingConfig",))
    if "functionCallingConfig" not in known:
        return None, others
    names = ("mode", "allowedFunctionNames")
    fields, rest = split_fields(take(known["functionCallingConfig"], dict, _CALLING), names)
    mode = (optional(fields, "mode", str, f"{_CALLING}.") or "").upper()
    if mode not in _MODES:
        raise InvalidRequest(
            f"unknown function calling mode {mode!r:.60}", hint="AUTO, ANY or NONE", param=f"{_CALLING}.mode"
        )
    allowed = _allowed(fields)
    if mode == "ANY" and len(allowed) == 1:
        choice = ToolChoice(mode="named", name=allowed[0])
    else:
        choice = ToolChoice(mode=_MODES[mode])
        rest |= {"allowedFunctionNames": allowed} if allowed else {}
        rest |= {"mode": mode} if mode == "VALIDATED" else {}
    return choice, others | ({"functionCallingConfig": rest} if rest else {})


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    config = request.extra.get("toolConfig")
    calling = config.get("functionCallingConfig") if isinstance(config, dict) else None
    names = calling.get("allowedFunctionNames") if isinstance(calling, dict) else None
    if not names or calling is None or config is None:
        return request
    required = request.tool_choice is not None and request.tool_choice.mode == "required"
    plain = with_allowed_tools(request, names, required=required)
    if plain is request:
        return request
    rest = {name: value for name, value in calling.items() if name != "allowedFunctionNames"}
    others = {name: value for name, value in config.items() if name != "functionCallingConfig"}
    kept = {**others, **({"functionCallingConfig": rest} if rest else {})}
    extra = {name: value for name, value in request.extra.items() if name != "toolConfig"}
    return msgspec.structs.replace(plain, extra={**extra, **({"toolConfig": kept} if kept else {})})


def _allowed(fields: dict[str, Any]) -> list[str]:
    names = optional(fields, "allowedFunctionNames", list, f"{_CALLING}.") or []
    return [take(name, str, f"{_CALLING}.allowedFunctionNames[{index}]") for index, name in enumerate(names)]


def _declarations(value: Any, at: str) -> list[Tool]:
    listed = take(value, (list, dict), at)
    entries = [listed] if isinstance(listed, dict) else listed
    return [_declaration(take(one, dict, f"{at}[{index}]"), f"{at}[{index}].") for index, one in enumerate(entries)]


def _declaration(value: dict[str, Any], at: str) -> Tool:
    fields, others = split_fields(value, _DECLARATION)
    schema = optional(fields, "parametersJsonSchema", dict, at)
    parameters = optional(fields, "parameters", dict, at)
    if schema is None and parameters is not None:
        schema = json_schema(parameters)
        if schema != parameters:
            # Older models know only Google's own schema words: an unchanged tool goes back in them.
            others["parameters"] = parameters
    return Tool(
        name=required(fields, "name", str, at),
        description=optional(fields, "description", str, at) or "",
        schema=schema,
        carried=Carried(NAME, others) if others else None,
    )
