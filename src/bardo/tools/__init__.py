"""Tool calls in text: the formats in which models write them, and the reader that finds them."""

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
    "CallArguments",
    "CallEnd",
    "CallStart",
    "InlineToolCalls",
    "Note",
    "Piece",
    "Text",
    "ToolCallFormat",
    "ToolCallReader",
    "UnknownToolFormat",
    "find_tool_call_format",
    "tool_call_format_for_model",
    "tool_call_formats",
]
