"""The caller's schema is judged in full, and nothing a schema says makes bardo fetch, hang or crash."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from bardo.structured import checker, extract
from bardo.structured.bounds import MAX_SCHEMA_BYTES
from bardo.values.errors import InvalidRequest

DRAFT_2020: dict[str, tuple[Any, Any, Any]] = {
    "prefixItems": ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1], ["a", "b"]),
    "unevaluatedProperties": (
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        {"a": 1},
        {"b": 1},
    ),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
    "if then": ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {}, {"a": 1}),
    "contains": ({"contains": {"const": 1}, "minContains": 2}, [1, 1], [1]),
    "not": ({"not": {"type": "string"}}, 1, "x"),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1, 3),
    "$dynamicRef": (
        {"$id": "urn:t", "$dynamicAnchor": "n", "properties": {"n": {"$dynamicRef": "#n"}}, "required": ["v"]},
        {"v": 1, "n": {"v": 1}},
        {"n": {"v": 1}},
    ),
    "format is asserted": ({"format": "date"}, "2026-11-20", "tomorrow"),
    "a reference to itself": (
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["v"]},
        {"v": 1, "next": {"v": 2}},
        {"v": 1, "next": {}},
    ),
    "draft 7, where $schema names it": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
        ["a", 1],
        [1],
    ),
    "a big integer": ({"type": "integer"}, 10**30, 0.5),
    "the schema true": (True, 1, None),
}


@pytest.mark.parametrize("name", [name for name in DRAFT_2020 if name != "the schema true"])
def test_the_keywords_of_2020_12_are_judged(name: str) -> None:
    schema, good, bad = DRAFT_2020[name]
    judge = checker(schema)
    assert judge.accepts(good)
    assert judge.failures(good) == ()
    assert not judge.accepts(bad)
    assert judge.failures(bad)


def test_the_schema_true_accepts_and_false_refuses_everything() -> None:
    assert checker(True).accepts({"a": 1})
    assert not checker(False).accepts({"a": 1})


NOT_SCHEMAS: dict[str, Any] = {
    "a wrong type": {"type": 5},
    "an unknown type": {"type": "text"},
    "a broken pattern": {"pattern": "("},
    "a string": "object",
    "a list": [],
    "nothing": None,
    "not JSON": {"const": object()},
    "a reference to nothing": {"$ref": "#/$defs/nowhere"},
    "an unknown draft": {"$schema": "https://example.org/mine"},
    "too large": {"description": "x" * MAX_SCHEMA_BYTES},
}


@pytest.mark.parametrize("name", NOT_SCHEMAS)
def test_what_is_no_schema_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checker(NOT_SCHEMAS[name])
    assert caught.value.param == "schema"
    assert caught.value.hint


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def doubling(levels: int, keyword: str) -> dict[str, Any]:
    """Return a schema of few lines whose references are tried 2 ** levels times."""
    definitions: dict[str, Any] = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [nested(500), nested(sys.getrecursionlimit() * 2), doubling(30, "anyOf"), doubling(30, "allOf")],
    ids=["deep", "very deep", "anyOf doubled", "allOf doubled"],
)
def test_a_schema_that_asks_for_too_much_work_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        checker(schema)


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|a)*$", r"^(?=(a+)+$)a*b", r"^(a+)+\1$"])
def test_a_pattern_that_explodes_ends(pattern: str) -> None:
    assert not checker({"type": "string", "pattern": pattern}).accepts("a" * 3000 + "!")


def test_a_thousand_properties_are_judged() -> None:
    names = [f"p{number}" for number in range(1000)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "required": names}
    value = dict.fromkeys(names, 1)
    assert checker(schema).accepts(value)
    assert extract(str({**value, "p999": "x"}), schema).path == "/p999"


def test_only_the_first_failures_are_told() -> None:
    failures = checker({"items": {"type": "integer"}}).failures(["x" * 10_000] * 1000)
    assert len(failures) == 5
    assert all(len(failure.message) < 400 for failure in failures)


def test_a_reference_to_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "integer"}')
    with pytest.raises(InvalidRequest, match="not fetched"):
        checker({"$ref": (tmp_path / "s.json").as_uri()})


def test_a_reference_to_an_address_is_not_fetched() -> None:
    asked: list[str] = []

    class Schema(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    server = HTTPServer(("127.0.0.1", 0), Schema)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.raises(InvalidRequest, match="not fetched"):
            checker({"properties": {"a": {"$ref": f"http://127.0.0.1:{server.server_port}/s.json"}}})
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert asked == []


@pytest.mark.usefixtures("reused")
def test_the_same_schema_is_compiled_once_and_a_changed_one_anew() -> None:
    schema: dict[str, Any] = {"type": "integer", "title": "compiled once"}
    first = checker(schema)
    assert checker(dict(schema)) is first
    schema["type"] = "string"
    assert checker(schema) is not first
    assert first.accepts(1)


def test_a_value_deeper_than_the_interpreter_goes_is_refused_without_a_crash() -> None:
    value: Any = 1
    for _ in range(50_000):
        value = [value]
    assert extract("[" * 50_000 + "]" * 50_000, {"type": "object"}).error in ("no_json", "invalid", "truncated")
