"""A delimiter that cannot be looked for is refused where it is given, by the name of its row and of its field."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.reasoning import ParserConfig, ReasoningFormat, ReasoningParserFactory, formats, open_parser
from bardo.reasoning.formats import MAX_DELIMITER, MAX_SPELLINGS, BadDelimiter, spellings
from bardo.values.errors import ConfigError

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a long opener": ({"start": "<" * 400, "end": ">"}, "start", "400 characters"),
    "a long closer": ({"start": "<", "end": "ab" * 200}, "end", "400 characters"),
    "one of several too long": ({"start": ("<", "x" * 129), "end": ">"}, "start", "129 characters"),
    "an empty opener": ({"start": "", "end": ">"}, "start", "empty"),
    "an empty spelling": ({"start": ("<", ""), "end": ">"}, "start", "empty"),
    "an empty closer": ({"start": "<", "end": ""}, "end", "empty"),
    "equal delimiters": ({"start": "%%", "end": "%%"}, "end", "both '%%'"),
    "one spelling in both": ({"start": ("<a>", "%%"), "end": ("</a>", "%%")}, "end", "both '%%'"),
    "an empty implicit end": ({"start": "<", "end": ">", "implicit_ends": ("",)}, "implicit_ends", "empty"),
    "a long part to drop": ({"start": "<", "end": ">", "dropped": ("d" * 300,)}, "dropped", "300 characters"),
    "equal wrappers": ({"start": "<", "end": ">", "answer_start": "#", "answer_end": "#"}, "answer_end", "both '#'"),
    "equal calls": ({"start": "<", "end": ">", "call_start": "#", "call_end": "#"}, "call_end", "both '#'"),
    "a long turn": ({"start": "<", "end": ">", "turns": ("t" * 300,)}, "turns", "300 characters"),
    "too many spellings": (
        {"start": tuple(f"<{place}>" for place in range(MAX_SPELLINGS + 1)), "end": ">"},
        "start",
        "65 spellings",
    ),
}
each_bad = pytest.mark.parametrize(("fields", "key", "said"), BAD.values(), ids=BAD)


@each_bad
def test_a_row_is_refused_when_it_is_made(fields: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(BadDelimiter, match="format 'lab'") as caught:
        ReasoningFormat(name="lab", **fields)
    assert said in caught.value.message
    assert (caught.value.key, caught.value.param) == (key, key)
    assert isinstance(caught.value, ValueError)
    assert caught.value.hint


@each_bad
def test_a_file_is_refused_at_the_line(fields: dict[str, Any], key: str, said: str) -> None:
    lines = [f"{name} = {_toml(value)}" for name, value in fields.items()]
    text = "\n".join(["[[reasoning_formats]]", 'name = "lab"', *lines])
    with pytest.raises(ConfigError, match="format 'lab'") as caught:
        parse_settings(text)
    line = 3 + [*fields].index(key)
    assert f"line {line}: " in caught.value.message
    assert said in caught.value.message


def _toml(value: str | tuple[str, ...]) -> str:
    return f"'{value}'" if isinstance(value, str) else f"[{', '.join(map(_toml, value))}]"


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ({"think_start_token": ""}, "think_start_token is empty"),
        ({"think_end_token": ""}, "think_end_token is empty"),
        ({"think_start_token": "<" * 400}, "think_start_token has 400"),
        ({"think_end_token": "<think>"}, "both '<think>'"),
    ],
)
def test_a_parser_config_is_refused_when_it_is_made(tokens: dict[str, Any], said: str) -> None:
    with pytest.raises(BadDelimiter, match="ParserConfig") as caught:
        ParserConfig(**tokens)
    assert said in caught.value.message


@pytest.mark.parametrize("shape", ["x" * MAX_DELIMITER, "ab" * (MAX_DELIMITER // 2), "<" + "é" * (MAX_DELIMITER - 1)])
def test_the_longest_delimiters_are_read(shape: str) -> None:
    row = ReasoningFormat(name="lab", start=(shape, shape[:-1] + "!"), end=shape[:-1] + "?")
    factory = ReasoningParserFactory()
    factory.register_format(row)
    for parser in (open_parser(row), open_parser("lab", formats=factory.formats)):
        result = parser.detect_and_parse_reasoning(f"{shape}thought{shape[:-1]}?answer")
        assert (result.reasoning_text, result.normal_text) == ("thought", "answer")


def test_a_format_may_have_neither_opener_nor_closer() -> None:
    assert ReasoningFormat(name="plain").starts == ()


def test_the_built_in_rows_are_well_within_the_bounds() -> None:
    longest = max(len(one) for row in formats().values() for one in (*row.starts, *row.ends, *spellings(row.call_end)))
    assert longest * 2 < MAX_DELIMITER
