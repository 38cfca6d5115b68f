"""Reasoning in the text of replies: its formats, the splitter that reads them, and parsers by format or model."""

from bardo.reasoning.factory import ReasoningParserFactory, open_parser
from bardo.reasoning.formats import ReasoningFormat, format_of_template
from bardo.reasoning.machines import lacks_opener, split, splitter_for
from bardo.reasoning.parser import ParserConfig, ParserResult, ReasoningParser, Utf8Feed
from bardo.reasoning.registry import (
    FormatChoice,
    FormatRegistry,
    UnknownFormat,
    builtin_formats,
    find_format,
    format_for_model,
    formats,
)
from bardo.reasoning.splitter import Segment, Splitter
from bardo.reasoning.starting import Start, explain_start, starting_state
from bardo.reasoning.steps import segment_steps

__all__ = [
    "FormatChoice",
    "FormatRegistry",
    "ParserConfig",
    "ParserResult",
    "ReasoningFormat",
    "ReasoningParser",
    "ReasoningParserFactory",
    "Segment",
    "Splitter",
    "Start",
    "UnknownFormat",
    "Utf8Feed",
    "builtin_formats",
    "explain_start",
    "find_format",
    "format_for_model",
    "format_of_template",
    "formats",
    "lacks_opener",
    "open_parser",
    "segment_steps",
    "split",
    "splitter_for",
    "starting_state",
]
