"""Tools in the form OpenAI gave them, which several dialects share: `{"type": "function", "function": {…}}`."""

from __future__ import annotations

from typing import Any

from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.losses import Losses
from bardo.dialects.wire import without
from bardo.values.blocks import Carried, fields_for
from bardo.values.request import Tool


def read_tool(value: Any, at: str, dialect: str) -> Tool:
    """Return one tool. Raises InvalidRequest naming the field; a tool that is no function is carried whole."""
    tool = take(value, dict, at)
    kind = optional(tool, "type", str, f"{at}.") or "function"
    if kind != "function":
        return Tool(name=kind, carried=Carried(dialect, tool), hosted=True)
    function = required(tool, "function", dict, f"{at}.")
    rest = without(tool, "type", "function")
    if more := without(function, "name", "description", "parameters"):
        rest["function"] = more
    return Tool(
        name=required(function, "name", str, f"{at}.function."),
        description=optional(function, "description", str, f"{at}.function.") or "",
        schema=optional(function, "parameters", dict, f"{at}.function."),
        carried=Carried(dialect, rest) if rest else None,
    )


def write_tool(tool: Tool, losses: Losses) -> list[dict[str, Any]]:
    """Return the tool, or nothing where only its own provider runs it."""
    if tool.hosted:
        own = fields_for(losses.dialect, tool.carried)
        if not own:
            losses.lose_tool(tool)
        return [own] if own else []
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.schema or {"type": "object", "properties": {}}
    own = dict(losses.own_fields(tool.carried))
    return [{"type": "function", "function": {**function, **own.pop("function", {})}, **own}]
