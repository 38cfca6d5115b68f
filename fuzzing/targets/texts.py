"""Targets `reasoning` and `calls`: thinking and tool calls in the text of models, in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count

from bardo.reasoning import formats, splitter_for
from bardo.tools import (
    CallArguments,
    CallEnd,
    CallStart,
    Note,
    Piece,
    Text,
    ToolCallReader,
    find_tool_call_format,
    tool_call_formats,
)
from bardo.tools.pieces import Pieces
from bardo.tools.scanner import shapes_of
from bardo.values.request import Tool
from fuzzing.inputs import Input
from fuzzing.laws import Laws, hold, same
from fuzzing.target import Target

_PROSE = b"The tide turns at noon.\n```\ncode\n``` \xf0\x9f\xa7\xa0 "


def _text(one: Input) -> str:
    return one.body.decode("utf-8", "replace")


@cache
def _delimiters(name: str) -> Sequence[bytes]:
    row = formats()[name]
    marks = (
        *row.starts,
        *row.ends,
        *row.implicit_ends,
        *row.dropped,
        *row.answer_start,
        *row.answer_end,
        *row.call_start,
        *row.call_end,
    )
    parts = {mark[:at] for mark in marks for at in (len(mark), len(mark) - 1, len(mark) // 2)}
    return sorted({part.encode() for part in parts} - {b""}) or [b"<think>"]


def _reasoning_seeds() -> Sequence[Input]:
    return [Input(name, b" ".join([_PROSE, *_delimiters(name), _PROSE])) for name in formats()]


def _split(one: Input, pieces: Iterable[str], *, inside: bool | None) -> list[tuple[str, bool]]:
    splitter = splitter_for(formats()[one.variant], starts_inside=inside)
    found = [segment for piece in pieces for segment in splitter.feed(piece)] + list(splitter.finish())
    same(list(splitter.finish()), [], "nothing is given twice at the end")
    joined: list[tuple[str, bool]] = []
    for segment in found:
        if joined and joined[-1][1] == segment.reasoning:
            joined[-1] = (joined[-1][0] + segment.text, segment.reasoning)
        elif segment.text:
            joined.append((segment.text, segment.reasoning))
    return joined


def _check_reasoning(one: Input, laws: Laws) -> None:
    text = _text(one)
    for inside in laws.some((None, True, False)):
        whole = _split(one, [text], inside=inside)
        for pieces in laws.cuts_of(text):
            same(_split(one, pieces, inside=inside), whole, f"any cut gives the same segments (inside: {inside})")
        kept = sum(len(part) for part, _ in whole)
        restored = len(formats()[one.variant].restores)
        hold(kept <= len(text) + restored, "no text is made up")
        if (
            len(whole) == 1
            and not restored
            and not formats()[one.variant].dropped
            and not any(mark.decode()[:1] in text for mark in _delimiters(one.variant))
        ):
            same(whole[0][0], text, "text without delimiters is given as it is")


REASONING = Target(
    name="reasoning",
    says="thinking in the text of models, in every format",
    seeds=_reasoning_seeds,
    check=_check_reasoning,
    work=lambda one: _split(one, [_text(one)[at : at + 20] for at in range(0, len(_text(one)), 20)], inside=None),
    words=_delimiters,
    per_byte=60,
)

_TOOLS = (
    Tool(
        name="weather",
        schema={
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "exact": {"type": "boolean"},
                "spots": {"type": "array"},
            },
        },
    ),
    Tool(name="clock"),
)
_VALUES = (
    b"weather",
    b"clock",
    b"city",
    b"days",
    b'{"city": "Paris"}',
    b'{"name": "weather", "arguments": {"city": "x"}}',
    b"(city='x')",
    b"3",
    b"true",
)


@cache
def _vocabulary(name: str) -> Sequence[bytes]:
    row = find_tool_call_format(name)
    shapes = shapes_of(row)
    steps = [step for shape in (*shapes.calls, *shapes.parameters) for step in shape]
    literals = [part.text for step in steps for part in (step, *step.group) if part.text]
    return sorted({mark.encode() for mark in (*row.begin, *row.end, *row.leads, *row.inline, *literals)} | set(_VALUES))


def _call_seeds() -> Sequence[Input]:
    return [
        Input(name, body) for name in tool_call_formats() for body in (*_calls(name), _PROSE.join(_vocabulary(name)))
    ]


def _calls(name: str) -> list[bytes]:
    """Return calls as the format's row shows them, with the holes filled in."""
    row = find_tool_call_format(name)
    parameter = "".join(part.removeprefix("?") for part in row.parameters[0]) if row.parameters else ""
    for hole, value in (("key", "city"), ("value", "a<b\n"), ("type", "string"), ("string", "true")):
        parameter = parameter.replace("{" + hole + "}", value)
    holes = {
        "name": "weather",
        "id": "abc",
        "recipient": "functions.weather",
        "identifier": "functions.weather:0",
        "word": "1",
        "arguments": '{"city": "a{\\"", "days": [1, {}]}',
        "parameters": parameter,
        "json": '[{"weather": {"city": "x"}}]'
        if row.name_is_key
        else '[{"name": "weather", "arguments": {"city": "x"}}]',
        "python": "[weather(city='x', days=[1, {'k': None}]), clock()]",
        "call": "weather(city='x')",
        "elements": f"{row.element_mark}<city>x{row.element_mark}</city>",
        "gemma": '{city:<|"|>x<|"|>,days:3}',
    }
    made = []
    for shape in row.shapes:
        text = "\n".join(part.removeprefix("?") for part in shape)
        for hole, value in holes.items():
            text = text.replace("{" + hole + "}", value)
        made.append(f"Before {(row.begin or ('',))[0]}{text}{(row.end or ('',))[0]} after".encode())
    return made


def _read(one: Input, pieces: Iterable[str], *, limit: int = 65_536) -> list[Piece]:
    numbers = count(1)
    reader = ToolCallReader(
        find_tool_call_format(one.variant), tools=_TOOLS, make_id=lambda: f"#{next(numbers)}", hold=limit
    )
    found = [piece for part in pieces for piece in reader.feed(part)] + list(reader.finish())
    same(list(reader.finish()), [], "nothing is given twice at the end")
    return _joined(found)


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Join neighbours of one kind, and check that calls begin and end in order."""
    out = Pieces()
    for piece in pieces:
        match piece:
            case Text(text=text):
                hold(bool(text) and not out.open, "text is not empty, and stands outside calls")
                out.text(text)
            case CallStart(id=call_id, name=name):
                hold(bool(name) and not out.open, "a call has a name, and none begins inside another")
                out.start(call_id, name)
            case CallArguments(text=text):
                hold(out.open, "arguments belong to an open call")
                out.arguments(text)
            case CallEnd():
                hold(out.open, "an open call ends")
                out.end()
            case Note(why=why, raw=raw, index=index):
                hold(bool(why), "a note says why")
                out.note(why, raw, index=index)
    hold(not out.open, "every call ends")
    return out.take()


def _check_calls(one: Input, laws: Laws) -> None:
    text = _text(one)
    for limit in laws.some((65_536, 256)):
        whole = _read(one, [text], limit=limit)
        for pieces in laws.cuts_of(text):
            same(_read(one, pieces, limit=limit), whole, f"any cut gives the same pieces (hold: {limit})")
        outside = "".join(piece.text for piece in whole if isinstance(piece, Text))
        characters = iter(text)
        hold(all(character in characters for character in outside), "text comes out in order, and none is made up")
        if not any(isinstance(piece, CallStart) for piece in whole):
            same(outside, text, "a text without calls comes out whole")


CALLS = Target(
    name="calls",
    says="tool calls in the text of models, in every format",
    seeds=_call_seeds,
    check=_check_calls,
    work=lambda one: _read(one, [_text(one)[at : at + 20] for at in range(0, len(_text(one)), 20)]),
    words=_vocabulary,
    per_byte=150,
)
