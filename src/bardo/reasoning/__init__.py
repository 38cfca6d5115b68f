"""Reasoning in the text of replies: its formats, the splitter that reads them, and parsers by format or model."""

from bardo.reasoning.factory import ReasoningParserFactory, open_parser
from bardo.reasoning.formats import ReasoningFormat, UnknownFormat, find_format, format_for_model, formats
from bardo.reasoning.machines import lacks_opener, split, splitter_for
from bardo.reasoning.parser import ParserConfig, ParserResult, ReasoningParser
from bardo.reasoning.splitter import Segment, Splitter
from bardo.reasoning.utf8 import Utf8Feed

__all__ = [
    "ParserConfig",
    "ParserResult",
    "ReasoningFormat",
    "ReasoningParser",
    "ReasoningParserFactory",
    "Segment",
    "Splitter",
    "UnknownFormat",
    "Utf8Feed",
    "find_format",
    "format_for_model",
    "formats",
    "lacks_opener",
    "open_parser",
    "split",
    "splitter_for",
]
