"""Every format of tool calls and of thinking is read in time that grows with the text, whole and in pieces, whatever a model writes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from bardo.reasoning import ReasoningFormat, ReasoningParser, formats
from bardo.tools import ToolCallFormat, find_tool_call_format, tool_call_formats
from support.growth import check_growth
from support.sampling import NIGHTLY, sample
from tools.support import read

SIZE = 125_000 if NIGHTLY else 2_000
"""Characters of the smaller text; the larger one has eight times as many."""
BY_DAY = 20
COMMON = (
    "a", " ", "\n", "_", "<", "</", "<a>", "<think", "</think>", "```", "{", "[", "(", "|", "=", "'", '"', "\\", "\\u", "\ud800", "\u0301",
    "<tool_call", "<tool_call>", "<|", '{"a":', "[1,", '{"name": "weather", "arguments": {', "weather(", "weather(city=",
)  # fmt: skip
LONGEST_PART = 40


def parts_of(row: ToolCallFormat | ReasoningFormat) -> list[str]:
    """Return what is repeated: what is worst for many, and the texts of the row, each also without its last character."""
    own = {text for text in texts_in(msgspec.to_builtins(row)) if 1 < len(text) <= LONGEST_PART}
    return sorted({*COMMON, *own, *(text[:-1] for text in own)})


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def in_pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


CALLS = [(name, part) for name in tool_call_formats() for part in parts_of(find_tool_call_format(name))]
THINKING = [(name, part) for name, row in formats().items() for part in parts_of(row)]


@pytest.mark.timeout(3_600 if NIGHTLY else 120)
@pytest.mark.parametrize("size", [1_000_000_000, 7], ids=["whole", "in pieces"])
def test_the_time_of_each_format_of_calls_grows_with_the_text(size: int) -> None:
    for name, part in sample(CALLS, BY_DAY, law=f"worst texts of calls {size}"):
        row = find_tool_call_format(name)

        def work(text: str, row: ToolCallFormat = row) -> object:
            return read(row, in_pieces(text, size))

        count = SIZE // len(part)
        check_growth(work, part * count, part * (8 * count), below=24)


@pytest.mark.timeout(3_600 if NIGHTLY else 120)
@pytest.mark.parametrize("size", [1_000_000_000, 7], ids=["whole", "in pieces"])
def test_the_time_of_each_format_of_thinking_grows_with_the_text(size: int) -> None:
    for name, part in sample(THINKING, BY_DAY, law=f"worst texts of thinking {size}"):
        row = formats()[name]

        def work(text: str, row: ReasoningFormat = row) -> object:
            parser = ReasoningParser(format=row)
            return [*map(parser.parse_reasoning_streaming_incremental, in_pieces(text, size)), parser.finish()]

        count = SIZE // len(part)
        check_growth(work, part * count, part * (8 * count), below=24)
