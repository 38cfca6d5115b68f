"""A choice among some of the tools, for a target of another dialect: only these tools are sent.

The model could call no other, so the request means the same. A provider's cache of the prompt does not hold where the choice changes.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

import msgspec

from bardo.values.degradation import Degradation
from bardo.values.request import Request, Tool, ToolChoice

_WHY = "the target has no choice among some of the tools: only these are sent"


def with_allowed_tools(request: Request, names: Collection[str], *, required: bool) -> Request:
    """Return the request with the tools of these names alone, one of which must be called where it is `required`.

    A request that has none of them is returned itself. What says so in `extra` is the caller's to take out.
    """
    known = frozenset(name for name in names if isinstance(name, str))
    tools = tuple(tool for tool in request.tools if is_named(tool, known))
    if not tools:
        return request
    choice = request.tool_choice or ToolChoice()
    if required and len(tools) == 1 and not tools[0].hosted:
        choice = msgspec.structs.replace(choice, mode="named", name=tools[0].name)
    else:
        choice = msgspec.structs.replace(choice, mode="required" if required else "auto", name="")
    lost = Degradation("tool_choice.allowed_tools", asked=sorted(known), sent="tools", why=_WHY)
    return msgspec.structs.replace(request, tools=tools, tool_choice=choice, degraded=(*request.degraded, lost))


def is_named(tool: Tool, names: AbstractSet[str]) -> bool:
    """Whether a tool has one of these names; one that its provider runs itself may be named by its type."""
    kind = tool.carried.fields.get("type") if tool.hosted and tool.carried is not None else None
    return tool.name in names or (isinstance(kind, str) and kind in names)
