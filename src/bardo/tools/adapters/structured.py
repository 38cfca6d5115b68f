"""Adapters for APIs that keep calls apart from text: Anthropic's blocks and OpenAI's `tool_calls`.

They read one whole body, and write the pieces of one. Requests and streams go through `bardo.dialects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.tools.adapters.base import (
    field,
    invocation,
    numbered_ids,
    objects,
    own_tools,
    schema_of,
    text_field,
    text_of,
)
from bardo.values.blocks import ToolResultBlock
from bardo.values.request import Tool
from bardo.values.response import ToolInvocation


class AnthropicToolAdapter:
    """`tool_use` and `tool_result` blocks."""

    def format_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Return the `tools` of a request."""
        return [
            {"name": tool.name}
            | ({"description": tool.description} if tool.description else {})
            | {"input_schema": schema_of(tool)}
            for tool in own_tools(tools)
        ]

    def parse_tool_calls(self, reply: Any) -> list[ToolInvocation]:
        """Return the calls of a message, or of its `content`."""
        content = field(reply, "content") if isinstance(reply, dict) else reply
        return [
            invocation(text_field(block, "id"), text_field(block, "name"), block.get("input"))
            for block in objects(content)
            if block.get("type") == "tool_use"
        ]

    def format_tool_results(self, results: Sequence[ToolResultBlock]) -> dict[str, Any]:
        """Return one user message with all results."""
        return {"role": "user", "content": [_result_block(result) for result in results]}


def _result_block(result: ToolResultBlock) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id, "content": text_of(result)}
    return {**block, "is_error": True} if result.is_error else block


class OpenAIToolAdapter:
    """`tool_calls` of a message, and the older `function_call`."""

    def format_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Return the `tools` of a request."""
        return [{"type": "function", "function": _function(tool)} for tool in own_tools(tools)]

    def parse_tool_calls(self, reply: Any) -> list[ToolInvocation]:
        """Return the calls of a body's first choice, or of a message."""
        choices = objects(field(reply, "choices"))
        message = field(choices[0], "message") if choices else reply
        calls = objects(field(message, "tool_calls"))
        if not calls and isinstance(old := field(message, "function_call"), dict):
            calls = [{"id": "", "function": old}]
        make_id = numbered_ids()
        return [
            invocation(
                text_field(call, "id") or make_id(),
                text_field(call["function"], "name"),
                call["function"].get("arguments"),
            )
            for call in calls
            if isinstance(call.get("function"), dict)
        ]

    def format_tool_results(self, results: Sequence[ToolResultBlock]) -> list[dict[str, Any]]:
        """Return one `tool` message for each result."""
        return [{"role": "tool", "tool_call_id": result.call_id, "content": text_of(result)} for result in results]


def _function(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    strict = {} if tool.strict is None else {"strict": tool.strict}
    return {"name": tool.name, **described, "parameters": schema_of(tool), **strict}
