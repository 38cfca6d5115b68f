"""Gemini refuses a tool whose schema has anything but a description and a default beside a `$ref`."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from bardo.dialects.gemini import DIALECT
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool
from dialects.gemini.support import ROW

CITY = {"type": "string", "title": "City", "minLength": 2}


def _sent(schema: dict[str, Any], dialect: str = "openai_chat") -> tuple[dict[str, Any], tuple[Degradation, ...]]:
    before = json.dumps(schema)
    asked = Message("user", (TextBlock("hi"),))
    tools = (Tool(name="f", schema=schema),)
    wire = DIALECT.encode_request(Request(model="gemini-3-pro", messages=(asked,), dialect=dialect, tools=tools), ROW)
    assert json.dumps(schema) == before
    (declared,) = msgspec.json.decode(wire.body)["tools"][0]["functionDeclarations"]
    return declared["parametersJsonSchema"], wire.degraded


def _object(of: dict[str, Any], **definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"p": of}, "$defs": {"City": CITY, **definitions}}


def _siblings(value: Any) -> set[str]:
    """Return all that stands beside references, description and default left out."""
    if isinstance(value, list):
        return {name for one in value for name in _siblings(one)}
    if not isinstance(value, dict):
        return set()
    here = value.keys() - {"$ref", "description", "default"} if isinstance(value.get("$ref"), str) else set()
    return here.union(*map(_siblings, value.values()))


@pytest.mark.parametrize(
    "schema",
    [
        _object({"$ref": "#/$defs/City", "title": "Where"}),
        _object({"$ref": "#/$defs/City", "description": "d", "examples": ["Oslo"], "maxLength": 3}),
        _object({"type": "array", "items": {"$ref": "#/$defs/City", "pattern": "^O"}}),
        _object({"anyOf": [{"$ref": "#/$defs/City", "title": "t"}, {"type": "null"}]}),
        _object({"$ref": "#/$defs/Alias", "title": "t"}, Alias={"$ref": "#/$defs/City", "maxLength": 3}),
        {
            "type": "object",
            "properties": {"p": {"$ref": "#/definitions/a~1b", "title": "t"}},
            "definitions": {"a/b": CITY},
        },
        {"$ref": "#/$defs/Root", "$defs": {"Root": {"type": "object", "properties": {"p": CITY}}}},
        {"type": "object", "properties": {"q": CITY, "p": {"$ref": "#/properties/q", "title": "t"}}},
    ],
)
def test_what_a_reference_points_to_is_written_in_its_place(schema: dict[str, Any]) -> None:
    sent, degraded = _sent(schema)
    assert not _siblings(sent)
    assert not degraded
    for value in ("", "O", "Os", "Osl", "Oslo", "Nice", 3, None, ["Oslo"], ["N"], ["O"]):
        both = [jsonschema_rs.Draft202012Validator(one).is_valid({"p": value}) for one in (schema, sent)]
        assert both[0] == both[1], value


def test_a_title_beside_a_reference_is_that_of_the_place() -> None:
    sent, _ = _sent(_object({"$ref": "#/$defs/City", "title": "Where"}))
    assert sent["properties"]["p"] == {**CITY, "title": "Where"}
    assert sent["$defs"] == {"City": CITY}


@pytest.mark.parametrize(
    "schema",
    [
        _object({"$ref": "#/$defs/City"}),
        _object({"$ref": "#/$defs/City", "description": "d", "default": "Oslo"}),
        _object({"enum": [{"$ref": "#/$defs/City", "title": "data"}]}),
        {"type": "object", "properties": {"$ref": {"type": "string"}, "title": {"type": "string"}}},
    ],
)
def test_what_gemini_takes_stays(schema: dict[str, Any]) -> None:
    assert _sent(schema) == (schema, ())


def test_beside_a_recursive_reference_is_left_out_and_reported() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node", "title": "Next", "description": "d"}}}
    sent, degraded = _sent(_object({"$ref": "#/$defs/Node", "title": "First"}, Node=node))
    alone = {"$ref": "#/$defs/Node", "description": "d"}
    assert sent["properties"]["p"] == {"type": "object", "title": "First", "properties": {"next": alone}}
    assert not _siblings(sent)
    assert [(one.what, one.asked) for one in degraded] == [("tools.schema", "title beside $ref")]


@pytest.mark.parametrize("reference", ["#/$defs/None", "https://example.org/schema", "other.json#/a", "#anchor", "#"])
def test_beside_a_reference_that_leads_nowhere_is_left_out_and_reported(reference: str) -> None:
    sent, degraded = _sent(_object({"$ref": reference, "title": "t", "default": 1}))
    assert sent["properties"]["p"] == {"$ref": reference, "default": 1}
    assert [one.what for one in degraded] == ["tools.schema"]


@pytest.mark.parametrize(
    ("target", "beside"),
    [
        (CITY, {"minLength": 3}),
        ({"type": "object", "additionalProperties": False}, {"properties": {"a": {"type": "string"}}}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"maxLength": 2}]}),
    ],
)
def test_a_rule_that_the_target_has_too_is_left_out_and_reported(
    target: dict[str, Any], beside: dict[str, Any]
) -> None:
    sent, degraded = _sent(_object({"$ref": "#/$defs/Target", **beside}, Target=target))
    assert sent["properties"]["p"] == {"$ref": "#/$defs/Target"}
    assert [one.asked for one in degraded] == [f"{name} beside $ref" for name in beside]


def test_references_that_double_each_time_stay_small() -> None:
    def level(number: int) -> dict[str, Any]:
        pair = [{"$ref": f"#/$defs/L{number + 1}", "title": side} for side in "ab"]
        return {"type": "array", "prefixItems": pair}

    levels = {f"L{number}": level(number) for number in range(40)}
    schema = _object({"$ref": "#/$defs/L0", "title": "t"}, **levels, L40={"type": "string"})
    sent, degraded = _sent(schema)
    assert not _siblings(sent)
    assert degraded
    assert len(json.dumps(sent)) < 1_000_000


@pytest.mark.parametrize("over", [0, 1])
def test_a_definition_is_copied_up_to_a_quarter_of_a_mebibyte(over: int) -> None:
    target = {"type": "string", "description": ""}
    target["description"] = "d" * (262_144 + over - len(msgspec.json.encode(target)))
    sent, degraded = _sent(_object({"$ref": "#/$defs/Long", "title": "t"}, Long=target))
    assert sent["properties"]["p"] == ({"$ref": "#/$defs/Long"} if over else {**target, "title": "t"})
    assert bool(degraded) is bool(over)


def test_a_gemini_client_s_schema_goes_as_it_is() -> None:
    schema = _object({"$ref": "#/$defs/City", "title": "Where"})
    assert _sent(schema, "gemini") == (schema, ())
