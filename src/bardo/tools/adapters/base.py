"""What an adapter does, and the little that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

import msgspec

from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import Unsupported
from bardo.values.request import Tool
from bardo.values.response import ToolInvocation

MakeId = Callable[[], str]


class ToolAdapter(Protocol):
    """Speaks of tools as one model family does: JSON values, or text for a prompt."""

    def format_tools(self, tools: Sequence[Tool]) -> Any:
        """Return the tools as a request declares them. Raises Unsupported for a tool that its own provider runs."""

    def parse_tool_calls(self, reply: Any) -> list[ToolInvocation]:
        """Return the calls of a whole reply, in order; what is not like a call is passed over."""

    def format_tool_results(self, results: Sequence[ToolResultBlock]) -> Any:
        """Return results as the next turn carries them. Raises Unsupported for content that is not text."""


def numbered_ids() -> MakeId:
    """Return a maker of ids that are unique within one reply: `call_1`, `call_2` …"""
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"


def own_tools(tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return the tools. Raises Unsupported for one that its own provider runs."""
    for tool in tools:
        if tool.hosted:
            raise Unsupported(
                f"{tool.name} is run by its own provider", hint="declare it in a request of that provider's dialect"
            )
    return tools


def schema_of(tool: Tool) -> dict[str, Any]:
    """Return the tool's JSON Schema; one without parameters takes an empty object."""
    return tool.schema or {"type": "object", "properties": {}}


def text_of(result: ToolResultBlock) -> str:
    """Return the text of a result. Raises Unsupported for anything else."""
    if any(not isinstance(block, TextBlock) for block in result.content):
        raise Unsupported(
            f"the result of call {result.call_id} is more than text",
            hint="send it in a request of a dialect that takes it",
        )
    return result.text


def invocation(call_id: str, name: str, arguments: Any) -> ToolInvocation:
    """Return a call whose arguments are JSON text, or an object that is already parsed."""
    raw = (
        arguments
        if isinstance(arguments, str)
        else msgspec.json.encode({} if arguments is None else arguments).decode()
    )
    return ToolInvocation.of(ToolCallBlock(id=call_id, name=name, arguments=raw))


def field(value: Any, name: str) -> Any:
    """Return a member of an object, or None."""
    return value.get(name) if isinstance(value, dict) else None


def text_field(value: Any, name: str) -> str:
    """Return a member that is text, or nothing."""
    found = field(value, name)
    return found if isinstance(found, str) else ""


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
