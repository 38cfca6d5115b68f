"""Read texts in any cut, and show what came out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from bardo.tools import (
    CallArguments,
    CallEnd,
    CallStart,
    Note,
    Piece,
    Text,
    ToolCallFormat,
    ToolCallReader,
    find_tool_call_format,
)
from bardo.tools.pieces import Pieces
from bardo.values.request import Tool

WEATHER = Tool(
    name="weather",
    schema={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "exact": {"type": "boolean"},
            "spots": {"type": "array"},
            "note": {"type": ["string", "null"]},
            "near": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/place"}]},
            "unit": {"enum": ["c", "f"]},
        },
        "$defs": {"place": {"type": "object"}},
    },
)
CLOCK = Tool(name="clock")
TOOLS = (WEATHER, CLOCK)


def read(
    row: ToolCallFormat | str, pieces: Iterable[str], *, tools: Sequence[Tool] = TOOLS, hold: int = 65_536
) -> list[Piece]:
    """Return all pieces of a text that arrives in `pieces`, neighbours joined. Generated ids are #1, #2 …"""
    numbers = count(1)
    chosen = find_tool_call_format(row) if isinstance(row, str) else row
    reader = ToolCallReader(chosen, tools=tools, make_id=lambda: f"#{next(numbers)}", hold=hold)
    fed = [piece for part in pieces for piece in reader.feed(part)]
    return joined([*fed, *reader.finish()])


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Join neighbours of one kind, and check that calls are begun and ended in order."""
    out = Pieces()
    for piece in pieces:
        match piece:
            case Text(text=text):
                assert text
                assert not out.open
                out.text(text)
            case CallStart(index=index, id=call_id, name=name):
                assert not out.open
                assert name
                out.start(call_id, name)
                assert out.index == index
            case CallArguments(index=index, text=text):
                assert out.open
                assert index == out.index
                out.arguments(text)
            case CallEnd(index=index):
                assert out.open
                assert index == out.index
                out.end()
            case Note(why=why, raw=raw, index=index):
                assert why
                assert index is None or index == out.index
                out.note(why, raw, index=index)
    assert not out.open
    return out.take()


def show(pieces: Iterable[Piece]) -> str:
    """Write pieces in one line: calls as ‹name id arguments›, a note as †, or as †…† where it holds lost text."""
    return "".join(map(_shown, pieces))


def _shown(piece: Piece) -> str:
    match piece:
        case Text(text=text) | CallArguments(text=text):
            return text
        case CallStart(id=call_id, name=name):
            return f"‹{name} {call_id} "
        case CallEnd():
            return "›"
        case Note(raw=raw, index=index):
            return f"†{raw}†" if raw and index is not None else "†"


def text_of(pieces: Iterable[Piece]) -> str:
    """Return all that stands outside calls."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def cuts(text: str) -> Iterator[list[str]]:
    """Every cut in two, and one character at a time."""
    yield from ([text[:at], text[at:]] for at in range(len(text) + 1))
    yield list(text)
