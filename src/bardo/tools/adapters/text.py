"""Adapters for models that read tools in their prompt and write calls in their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.tools.adapters.base import MakeId, numbered_ids, text_of
from bardo.tools.adapters.structured import OpenAIToolAdapter
from bardo.tools.formats import ToolCallFormat, find_tool_call_format
from bardo.tools.pieces import CallArguments, CallStart
from bardo.tools.reader import ToolCallReader
from bardo.values.blocks import ToolCallBlock, ToolResultBlock
from bardo.values.request import Tool
from bardo.values.response import ToolInvocation

HERMES_PROMPT = (
    "You may call functions to help with the user's request. Their signatures are within <tools></tools> tags:\n"
    "<tools>\n{tools}\n</tools>\n"
    "For each call return a JSON object with the function's name and its arguments within <tool_call></tool_call> tags:\n"
    '<tool_call>\n{{"name": <function-name>, "arguments": <arguments-object>}}\n</tool_call>'
)
JSON_PROMPT = (
    "You may call these functions:\n{tools}\n"
    "To call one, answer with nothing but a JSON object such as\n"
    '{{"name": <function-name>, "arguments": <arguments-object>}}\n'
    "or a list of such objects to call several. Otherwise answer in words."
)


class TextToolAdapter:
    """Speaks of tools in the text of any format. `tools` give types to parameters, and `make_id` names the calls of each reply."""

    prompt = HERMES_PROMPT

    def __init__(
        self,
        format: ToolCallFormat | str,  # noqa: A002
        *,
        tools: Sequence[Tool] = (),
        make_ids: Callable[[], MakeId] = numbered_ids,
    ) -> None:
        self._format = find_tool_call_format(format) if isinstance(format, str) else format
        self._tools = tools
        self._make_ids = make_ids

    def format_tools(self, tools: Sequence[Tool]) -> str:
        """Return text for the system prompt, with one signature a line; nothing without tools."""
        lines = [_json(tool) for tool in OpenAIToolAdapter().format_tools(tools)]
        return self.prompt.format(tools="\n".join(lines)) if lines else ""

    def parse_tool_calls(self, reply: Any) -> list[ToolInvocation]:
        """Return the calls in a reply's text; none where it is no text."""
        if not isinstance(reply, str):
            return []
        reader = ToolCallReader(self._format, tools=self._tools, make_id=self._make_ids())
        started: list[CallStart] = []
        arguments: list[str] = []
        for piece in [*reader.feed(reply), *reader.finish()]:
            if isinstance(piece, CallStart):
                started.append(piece)
                arguments.append("")
            elif isinstance(piece, CallArguments):
                arguments[-1] += piece.text
        return [
            ToolInvocation.of(ToolCallBlock(id=call.id, name=call.name, arguments=text))
            for call, text in zip(started, arguments, strict=True)
        ]

    def format_tool_results(self, results: Sequence[ToolResultBlock]) -> str:
        """Return text for the next turn, each result within its own tags."""
        return "\n".join(f"<tool_response>\n{self._result(result)}\n</tool_response>" for result in results)

    def _result(self, result: ToolResultBlock) -> str:
        return text_of(result)


class HermesToolAdapter(TextToolAdapter):
    """`<tool_call>` with JSON; results say which function they are from."""

    def __init__(self, *, tools: Sequence[Tool] = (), make_ids: Callable[[], MakeId] = numbered_ids) -> None:
        super().__init__("hermes", tools=tools, make_ids=make_ids)

    def _result(self, result: ToolResultBlock) -> str:
        return _json({"name": result.name, "content": text_of(result)})


class QwenToolAdapter(TextToolAdapter):
    """`<tool_call>` with JSON, or with the tags of Qwen3-Coder; results are plain."""

    def __init__(self, *, tools: Sequence[Tool] = (), make_ids: Callable[[], MakeId] = numbered_ids) -> None:
        super().__init__("qwen", tools=tools, make_ids=make_ids)


class JsonToolAdapter(TextToolAdapter):
    """The whole reply is the JSON of a call, or of a list of calls; results are JSON too."""

    prompt = JSON_PROMPT

    def __init__(self, *, tools: Sequence[Tool] = (), make_ids: Callable[[], MakeId] = numbered_ids) -> None:
        super().__init__("json", tools=tools, make_ids=make_ids)

    def format_tool_results(self, results: Sequence[ToolResultBlock]) -> str:
        """Return one JSON object a line."""
        return "\n".join(_json(_told(result)) for result in results)


def _told(result: ToolResultBlock) -> dict[str, Any]:
    told: dict[str, Any] = {"id": result.call_id, "name": result.name, "result": text_of(result)}
    return {**told, "is_error": True} if result.is_error else told


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
