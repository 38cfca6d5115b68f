"""Every format, held against the list of formats and against the laws of cutting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import ParserResult, ReasoningFormat, ReasoningParser, find_format, format_for_model, formats
from support.offenders import each_case

LIST = Path(__file__).resolve().parents[3] / "shared" / "parser_formats.json"
LISTED: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8")) if LIST.is_file() else []
listed = each_case("row", LISTED, optional=True, ids=lambda row: str(row["name"]))
BY_NAME_ONLY = "minimax_m2_append_think"
# The list has later Qwen models under the Thinking ones; here they have a row of their own, as they can be turned off.
SPLIT = {"qwen35": "qwen3_thinking"}


def spelled(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


@pytest.mark.skipif(not LISTED, reason="no list of formats here")
class TestTheListOfFormats:
    def test_all_are_there(self) -> None:
        assert len(LISTED) == 59
        assert {row["name"] for row in LISTED} <= set(formats())

    @listed
    def test_its_delimiters_are_read(self, row: dict[str, Any]) -> None:
        known = find_format(row["name"])
        for start in spelled(row["start"]):
            for end in spelled(row["end"]):
                assert both(known, f"{start}a{end}b", inside=False) == ParserResult("b", "a")
                assert both(known, f"a{end}b", inside=True) == ParserResult("b", "a")

    @listed
    def test_its_implicit_ends_end_a_block(self, row: dict[str, Any]) -> None:
        known = find_format(row["name"])
        for marker in row["implicit_end_tokens"]:
            kept = "" if marker in known.dropped else marker
            assert both(known, f"a{marker}b", inside=True) == ParserResult(f"{kept}b", "a")

    @listed
    def test_it_begins_where_the_list_says(self, row: dict[str, Any]) -> None:
        # Thinking-2507 and QwQ always begin inside, and nothing but the name is known of them here.
        expected = True if row["name"] == "qwen3_thinking" else row["implicit_start"]
        assert find_format(row["name"]).starts_inside == expected

    @listed
    def test_its_models_have_it(self, row: dict[str, Any]) -> None:
        for pattern in row["model_patterns"] if row["name"] != BY_NAME_ONLY else ():
            found = format_for_model(f"vendor/{pattern.replace('*', '-9b-')}").name
            assert SPLIT.get(found, found) == row["name"]


def sample(row: ReasoningFormat) -> str:
    """A reply with everything a format knows, and near misses of it."""
    start, end = (row.starts or ("<think>",))[0], (row.ends or ("</think>",))[-1]
    marks = "".join(f"{marker[:-1]} {marker} é" for marker in (*row.implicit_ends, *row.dropped))
    return f"{start}plän 🧠 <{end[:-1]}{end}◁ answer {start}again{end} {marks}{end[:2]}"


def both(row: ReasoningFormat, text: str, *, inside: bool | None = None) -> ParserResult:
    return ReasoningParser(format=row, starts_inside=inside).detect_and_parse_reasoning(text)


def stream(row: ReasoningFormat, pieces: list[str] | list[bytes]) -> ParserResult:
    parser = ReasoningParser(format=row)
    results = [*map(parser.parse_reasoning_streaming_incremental, pieces), parser.finish()]
    return ParserResult(
        "".join(result.normal_text for result in results), "".join(result.reasoning_text for result in results)
    )


every = pytest.mark.parametrize("row", formats().values(), ids=formats().keys())


@every
def test_every_cut_in_two_says_the_same(row: ReasoningFormat) -> None:
    text = sample(row)
    whole = both(row, text)
    assert {stream(row, [text[:at], text[at:]]) for at in range(len(text) + 1)} == {whole}
    assert stream(row, list(text)) == whole


@every
def test_every_cut_of_the_bytes_says_the_same(row: ReasoningFormat) -> None:
    data = sample(row).encode()
    whole = both(row, sample(row))
    assert {stream(row, [data[:at], data[at:]]) for at in range(len(data) + 1)} == {whole}
    assert stream(row, [data[at : at + 1] for at in range(len(data))]) == whole


@given(st.data(), st.sampled_from(sorted(formats())))
def test_any_cut_of_the_bytes_says_the_same(data: st.DataObject, name: str) -> None:
    row = find_format(name)
    reply = (sample(row) * data.draw(st.integers(1, 3))).encode()
    places = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=12)))
    pieces = [reply[begin:end] for begin, end in zip([0, *places], [*places, len(reply)], strict=True)]
    assert stream(row, pieces) == both(row, reply.decode())
