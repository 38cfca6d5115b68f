"""Tool calls: the text formats models write them in, the reader that finds them, and adapters for each family."""

from bardo.tools.adapters import (
    AnthropicToolAdapter,
    HermesToolAdapter,
    JsonToolAdapter,
    OpenAIToolAdapter,
    QwenToolAdapter,
    TextToolAdapter,
    ToolAdapter,
)
from bardo.tools.formats import (
    ToolCallFormat,
    UnknownToolFormat,
    find_tool_call_format,
    tool_call_format_for_model,
    tool_call_formats,
)
from bardo.tools.pieces import CallArguments, CallEnd, CallStart, Note, Piece, Text
from bardo.tools.reader import ToolCallReader
from bardo.tools.stage import InlineToolCalls

__all__ = [
    "AnthropicToolAdapter",
    "CallArguments",
    "CallEnd",
    "CallStart",
    "HermesToolAdapter",
    "InlineToolCalls",
    "JsonToolAdapter",
    "Note",
    "OpenAIToolAdapter",
    "Piece",
    "QwenToolAdapter",
    "Text",
    "TextToolAdapter",
    "ToolAdapter",
    "ToolCallFormat",
    "ToolCallReader",
    "UnknownToolFormat",
    "find_tool_call_format",
    "tool_call_format_for_model",
    "tool_call_formats",
]
