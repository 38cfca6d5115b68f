"""What holds for every text in every format: no cut matters, nothing is lost, little is held, nothing raises."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bardo.tools import (
    CallArguments,
    CallEnd,
    CallStart,
    Note,
    Text,
    ToolCallFormat,
    ToolCallReader,
    find_tool_call_format,
    tool_call_formats,
)
from bardo.tools.scanner import shapes_of
from tools.support import TOOLS, joined, read, text_of

NAMES = sorted(tool_call_formats())
WORDS = (
    *("weather", "clock", "magic", "city", "days", "spots", "true", "false", "null", "3", "-1.5e3", "Paris", "é🧠"),
    *("{", "}", "[", "]", "(", ")", '"', "'", "\\", ":", ",", "=", "<", ">", "/", ";", "\n", "\r\n", " ", "\n```\n"),
    *(
        '{"name": "weather", "arguments": ',
        '{"city": "Paris"}',
        '"name": "clock"',
        '"parameters": {}',
        "(city='x'",
        'city="x"',
    ),
)


@cache
def vocabulary(name: str) -> list[str]:
    row = find_tool_call_format(name)
    shapes = shapes_of(row)
    steps = [step for shape in (*shapes.calls, *shapes.parameters) for step in shape]
    literals = [part.text for step in steps for part in (step, *step.group) if part.text]
    markers = [*row.begin, *row.end, *row.leads, *row.inline, *literals]
    parts = [marker[:at] for marker in markers for at in (1, len(marker) // 2, len(marker) - 1)]
    return sorted({*markers, *parts, *WORDS} - {""})


@cache
def calls(name: str) -> list[str]:
    """Calls as the format's row shows them, with the holes filled in."""
    row = find_tool_call_format(name)
    parameters = "".join(filled(row.parameters[0], value) for value in ("city", "unit")) if row.parameters else ""
    shapes = [
        # Arguments in JSON that may be missing stand in place of parameters.
        "\n".join(
            part.removeprefix("?")
            for part in shape
            if not (part[0] == "?" and ("{arguments}" in part or "{empty}" in part))
        )
        for shape in row.shapes
    ]
    holes = {
        "name": "weather",
        "id": "abc",
        "recipient": "functions.weather",
        "identifier": "functions.weather:0",
        "word": "1",
        "arguments": '{"city": "a{\\"", "days": [1, {}]}',
        "parameters": parameters,
        "json": '[{"weather": {"city": "x"}}, {"clock": {}}]'
        if row.name_is_key
        else '[{"name": "weather", "arguments": {"city": "x"}}, {"arguments": {}, "name": "clock"}]',
        "objects": '{"name": "weather", "arguments": {"city": "x"}}',
        "python": "[weather(city='x', days=[1, {'k': None}]), clock()]",
        "call": "weather(city='x')",
        "elements": "".join(
            f"{row.element_mark}<{tag}" for tag in ("city>x", "/city>", "unit>", "c>y", "/c>", "/unit>")
        ),
        "gemma": '{city:<|"|>x<|"|>,days:3}',
    }
    for hole, value in holes.items():
        shapes = [shape.replace("{" + hole + "}", value) for shape in shapes]
    begin, end = (row.begin[0] if row.begin else ""), (row.end[0] if row.end else "")
    # A marker that is a part of its call stands there already.
    return [shape if begin and shape.startswith(row.begin) else f"{begin}{shape}{end}" for shape in shapes]


def filled(parts: tuple[str, ...], key: str) -> str:
    text = "".join(part.removeprefix("?") for part in parts)
    return (
        text.replace("{key}", key).replace("{value}", "a<b\n").replace("{type}", "string").replace("{string}", "true")
    )


def texts(name: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from([*vocabulary(name), *calls(name), *calls(name)]), max_size=12).map("".join)


def cut(data: st.DataObject, text: str) -> list[str]:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


@settings(max_examples=200)
@given(st.data(), st.sampled_from(NAMES))
def test_any_cut_says_the_same(data: st.DataObject, name: str) -> None:
    text = data.draw(texts(name))
    tools = data.draw(st.sampled_from([(), TOOLS]))
    hold = data.draw(st.sampled_from([65_536, 256]))
    whole = read(name, [text], tools=tools, hold=hold)
    assert read(name, list(text), tools=tools, hold=hold) == whole
    assert read(name, cut(data, text), tools=tools, hold=hold) == whole


@given(st.data(), st.sampled_from(NAMES))
def test_text_comes_out_in_order_and_all_of_it_where_there_is_no_call(data: st.DataObject, name: str) -> None:
    text = data.draw(texts(name))
    pieces = read(name, [text])
    outside = text_of(pieces)
    assert is_what_deleting_leaves(outside, text)
    if not any(isinstance(piece, CallStart) for piece in pieces):
        assert outside == text


def is_what_deleting_leaves(rest: str, text: str) -> bool:
    characters = iter(text)
    return all(character in characters for character in rest)


@given(st.data(), st.sampled_from(NAMES))
def test_words_around_calls_stay_where_they_are(data: st.DataObject, name: str) -> None:
    row = find_tool_call_format(name)
    call = data.draw(st.sampled_from(calls(name)))
    before = "" if row.bare or row.opens == "start" else "Before, "
    pieces = read(row, [f"{before}{call} after."])
    assert any(isinstance(piece, CallStart) for piece in pieces)
    assert text_of(pieces) == f"{before} after."
    assert not any(isinstance(piece, Note) for piece in pieces)


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_of_whole_calls_are_json(name: str) -> None:
    for call in calls(name):
        pieces = read(name, [call])
        started = [piece.name for piece in pieces if isinstance(piece, CallStart)]
        arguments = [json.loads(piece.text) for piece in pieces if isinstance(piece, CallArguments)]
        assert started[0] == "weather"
        assert len(started) == len(arguments)
        assert all(isinstance(each, dict) for each in arguments)


@given(st.text(max_size=60), st.sampled_from(NAMES))
def test_text_of_any_kind_never_raises(text: str, name: str) -> None:
    row = find_tool_call_format(name)
    for begin in ("", *row.begin):
        pieces = read(row, [begin + text])
        assert is_what_deleting_leaves(text_of(pieces), begin + text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=5), each, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_any_json_is_passed_on_as_it_was_written(value: object) -> None:
    for written in (json.dumps({"a": value}), json.dumps({"a": value}, indent=1, ensure_ascii=False)):
        start, arguments, end = read("hermes", [f'<tool_call>{{"name": "clock", "arguments": {written}}}</tool_call>'])
        assert isinstance(start, CallStart)
        assert arguments == CallArguments(0, written)
        assert end == CallEnd(0)


@given(VALUES)
def test_any_python_literal_becomes_the_same_value_in_json(value: object) -> None:
    pieces = read("lfm2", [f"<|tool_call_start|>[clock(a={value!r})]<|tool_call_end|>"])
    (arguments,) = [piece.text for piece in pieces if isinstance(piece, CallArguments)]
    assert json.loads(arguments) == {"a": value}


def reader(name: str, *, hold: int = 65_536) -> ToolCallReader:
    return ToolCallReader(find_tool_call_format(name), tools=TOOLS, make_id=lambda: "#", hold=hold)


HUGE = {
    "json": ("hermes", '<tool_call>{"name": "clock", "arguments": {"a": "', '"}}</tool_call>'),
    "parameters": (
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>",
        "</parameter></function></tool_call>",
    ),
    "python": ("lfm2", "<|tool_call_start|>[clock(a='", "')]<|tool_call_end|>"),
    "gemma": ("gemma4", '<|tool_call>call:clock{a:<|"|>', '<|"|>}<tool_call|>'),
}


@pytest.mark.parametrize(("name", "begin", "end"), HUGE.values(), ids=HUGE.keys())
def test_huge_arguments_go_on_as_they_arrive_and_nothing_is_kept(name: str, begin: str, end: str) -> None:
    reading = reader(name)
    reading.feed(begin + "x")
    for at in range(2000):
        piece = f"{at:04}" * 50
        assert reading.feed(piece) == [CallArguments(0, piece)]
        assert len(reading._scanner.unread) == 0
        assert reading._scanner._record is None
    assert isinstance(joined([*reader(name).feed(begin + "x" * 200_000 + end)])[-1], CallEnd)
    assert [type(piece) for piece in reading.feed(end)] == [CallArguments, CallEnd]


def test_text_goes_on_at_once_but_for_what_may_begin_a_marker() -> None:
    reading = reader("hermes")
    assert [list(reading.feed(piece)) for piece in ("Hi", " <", "tool_", "box>", "<")] == [
        [Text("Hi")],
        [Text(" ")],
        [],
        [Text("<tool_box>")],
        [],
    ]
    assert reading.finish() == [Text("<")]


def test_a_name_is_told_before_the_arguments_have_come() -> None:
    reading = reader("hermes")
    assert reading.feed('<tool_call>{"name": "clock", "arg') == []
    assert reading.feed('uments": {') == [CallStart(0, "#", "clock"), CallArguments(0, "{")]
    assert reading.feed('"a": "x') == [CallArguments(0, '"a": "x')]
    assert reading.calls == 1


def test_what_cannot_be_decided_within_the_limit_is_text() -> None:
    begin = '<tool_call>{"arguments": {"a": "'
    text = begin + "x" * 400 + '"}, "name": "clock"}</tool_call>'
    pieces = read("hermes", [text], hold=300)
    assert text_of(pieces) == text
    assert [piece.raw for piece in pieces if isinstance(piece, Note)] == [text[:200]]
    assert any(isinstance(piece, CallStart) for piece in read("hermes", [text]))


def test_a_value_too_long_to_be_converted_stays_text() -> None:
    text = "<tool_call>weather<arg_key>spots</arg_key><arg_value>[" + "1," * 200 + "1]</arg_value></tool_call>"
    whole = "".join(piece.text for piece in read("glm45", [text]) if isinstance(piece, CallArguments))
    assert json.loads(whole) == {"spots": [1] * 201}
    pieces = read("glm45", [text], hold=256)
    cut_short = "".join(piece.text for piece in pieces if isinstance(piece, CallArguments))
    assert json.loads(cut_short) == {"spots": "[" + "1," * 200 + "1]"}
    assert [piece.index for piece in pieces if isinstance(piece, Note)] == [0]


@pytest.mark.parametrize("open_bracket", ["[", '{"a":'])
def test_arguments_nested_without_end_are_bounded(open_bracket: str) -> None:
    arguments = '{"a":' + open_bracket * 100_000
    pieces = read("hermes", [f'<tool_call>{{"name": "clock", "arguments": {arguments}</tool_call>'])
    assert [piece.text for piece in pieces if isinstance(piece, CallArguments)] == [arguments]
    assert any(isinstance(piece, Note) for piece in pieces)


@pytest.mark.parametrize(("open_bracket", "name"), [("[", "lfm2"), ("{'a':", "lfm2"), ("[", "gemma4")])
def test_literals_nested_without_end_are_bounded(open_bracket: str, name: str) -> None:
    begin = "<|tool_call_start|>[clock(a=" if name == "lfm2" else "<|tool_call>call:clock{a:"
    pieces = read(name, [begin + open_bracket * 100_000])
    assert any(isinstance(piece, Note) for piece in pieces)


MARKERS = st.lists(st.text("ab<\n`", min_size=1, max_size=4), max_size=3).map(tuple)
SHAPES = st.lists(
    st.lists(
        st.sampled_from(["a", "<b", "{name}", "{id}", "{json}", "{arguments}", "{parameters}", "{python}", "?<"]),
        min_size=1,
        max_size=4,
    ).map(tuple),
    min_size=1,
    max_size=2,
).map(tuple)
ODD_FORMATS = st.builds(
    ToolCallFormat,
    name=st.just("odd"),
    begin=MARKERS,
    end=MARKERS,
    shapes=SHAPES,
    parameters=st.sampled_from([(), (("<a", "{key}", ">", "{value}", "b"),)]),
    bare=st.booleans(),
    opens=st.sampled_from(["anywhere", "start"]),
    separators=st.sampled_from([(), (";", "a")]),
    trims_newlines=st.booleans(),
)


@given(ODD_FORMATS, st.lists(st.sampled_from([*WORDS, "a", "b", "<", "<a", "<b", "`"]), max_size=20), st.data())
def test_formats_may_be_as_odd_as_they_like(row: ToolCallFormat, parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    whole = read(row, [text])
    assert read(row, list(text)) == whole
    assert read(row, cut(data, text)) == whole
    assert is_what_deleting_leaves(text_of(whole), text)
