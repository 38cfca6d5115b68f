"""Schemas of tools that a target does not take are written otherwise, and calls come back as the client declared them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from bardo.catalog.request_shapes import NameRule, RequestShape
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.tools import RestoreToolArguments, written_tool_schemas
from bardo.values.events import Event, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Tool
from bardo.values.wire import Arrival
from planning.test_plan_cache import target
from support.scripted import Scripted
from support.simulated_gateway import SimulatedGateway
from support.talk import path_for

CLAUDE = "claude-sonnet-5"
KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
SHAPE = RequestShape(property_keys=NameRule("a-zA-Z0-9_.-", "", 64), rules=frozenset({"property_keys", "plain_root"}))
TEXT = {"type": "string"}
ODD = {
    "type": "object",
    "properties": {
        "$filter": TEXT,
        "inner": {"type": "object", "properties": {"my key": TEXT}, "required": ["my key"], "default": {"my key": "x"}},
        "same": {"$ref": "#/properties/$filter"},
    },
    "required": ["$filter"],
    "dependentRequired": {"$filter": ["inner"]},
}
ONE_OF = {
    "$defs": {"a": {"type": "object", "properties": {"a": TEXT}}},
    "oneOf": [{"$ref": "#/$defs/a"}, {"type": "object", "properties": {"deep": {"$ref": "#/oneOf/0"}}}],
}
ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "keys": (ODD, {"$filter": "é", "inner": {"my key": "y"}, "same": "z"}),
    "oneOf": (ONE_OF, {"deep": {"a": "b"}}),
    "both": ({"anyOf": [ODD, {"type": "object"}]}, {"$filter": "1"}),
    "a list": ({"type": "array", "items": ODD}, [{"$filter": "1"}, {}]),
    "value": ({"anyOf": [{"type": "object", "properties": {"value": TEXT}}]}, {"value": "mine"}),
    "a reference": ({"$defs": {"o": ODD}, "$ref": "#/$defs/o"}, {"$filter": "1"}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_written_is_restored_however_it_is_cut(name: str) -> None:
    schema, arguments = ARGUMENTS[name]
    written = written_tool_schemas((Tool(name="f", schema=schema), Tool(name="g", schema={"type": "object"})), SHAPE)
    assert written is not None
    assert set(written.forms) == {"f"}
    sent = written.tools[0].schema or {}
    assert sent["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "$ref"} & sent.keys()
    assert written.tools[1].schema == {"type": "object"}
    text = written.forms["f"].written(json.dumps(arguments))
    for cut in (1, len(text) // 2, len(text)):
        stage = RestoreToolArguments(written.forms)
        events: list[Event] = [ToolCallStart(0, "c", "f"), ToolCallChunk(0, text[:cut]), ToolCallChunk(0, text[cut:])]
        given = [event for item in [*events, ToolCallEnd(0)] for event in stage.feed(item)]
        pieces = [event.arguments for event in given if isinstance(event, ToolCallChunk)]
        assert json.loads("".join(pieces)) == arguments
        assert not stage.finish()


def test_keys_in_required_in_references_and_in_values_follow_their_properties() -> None:
    written = written_tool_schemas((Tool(name="f", schema=ODD),), SHAPE)
    assert written is not None
    sent, keys = written.tools[0].schema or {}, written.forms["f"].keys
    assert set(keys) == {"$filter", "my key"}
    assert all(KEY.fullmatch(key) for key in keys.values())
    assert sent["required"] == [keys["$filter"]]
    assert sent["dependentRequired"] == {keys["$filter"]: ["inner"]}
    assert sent["properties"]["same"] == {"$ref": f"#/properties/{keys['$filter']}"}
    assert sent["properties"]["inner"]["required"] == [keys["my key"]]
    assert sent["properties"]["inner"]["default"] == {keys["my key"]: "x"}


def test_references_of_a_wrapped_root_lead_to_where_it_stands_now() -> None:
    written = written_tool_schemas((Tool(name="f", schema=ONE_OF),), SHAPE)
    assert written is not None
    sent = written.tools[0].schema or {}
    arms = sent["properties"]["value"]["oneOf"]
    assert sent["$defs"] == ONE_OF["$defs"]
    assert arms[0] == {"$ref": "#/$defs/a"}
    assert arms[1]["properties"]["deep"] == {"$ref": "#/properties/value/oneOf/0"}


def test_a_call_that_breaks_off_keeps_what_came_of_it() -> None:
    written = written_tool_schemas((Tool(name="f", schema=ODD),), SHAPE)
    assert written is not None
    stage = RestoreToolArguments(written.forms)
    assert [*stage.feed(ToolCallStart(0, "c", "f"))] == [ToolCallStart(0, "c", "f")]
    assert not stage.feed(ToolCallChunk(0, '{"a'))
    assert [*stage.finish()] == [ToolCallChunk(0, '{"a')]


def test_tools_that_are_taken_stay_as_they_came() -> None:
    plain = (Tool(name="f", schema={"type": "object", "properties": {"a.b-c_1": TEXT}}), Tool(name="g"))
    assert written_tool_schemas(plain, SHAPE) is None
    assert written_tool_schemas((Tool(name="f", schema=ODD),), RequestShape()) is None


def test_the_history_and_the_tools_of_claudes_own_body_have_the_same_keys() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "find.it", "input": {"$filter": "x"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    ask = {"role": "user", "content": "Find."}
    body = {
        "model": CLAUDE,
        "max_tokens": 9,
        "tools": [{"name": "find.it", "input_schema": ODD}],
        "messages": [ask, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}],
    }
    request = dialect("anthropic_messages").decode_request(json.dumps(body).encode(), Arrival())
    attempt = plan(request, target("anthropic", CLAUDE))
    sent = json.loads(attempt.wire.body)
    key = attempt.tool_forms["find.it"].keys["$filter"]
    assert sent["messages"][1]["content"][0]["input"] == {key: "x"}
    assert sent["tools"][0]["input_schema"]["required"] == [key]
    assert "tools.keys" in {one.what for one in attempt.degraded}
    assert not attempt.forward


ANY_VALUE = {"type": "object", "properties": {"x": {}, "l": {"type": "array"}, "n": {"type": ["string", "null"]}}}
NOWHERE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}


def test_each_place_of_a_schema_for_moonshot_has_a_type_of_its_own() -> None:
    shape = RequestShape(rules=frozenset({"tool_schemas"}), subset="moonshot_tools", typed=True)
    written = written_tool_schemas((Tool(name="f", schema=ANY_VALUE), Tool(name="g", schema={})), shape)
    assert written is not None
    sent = (written.tools[0].schema or {})["properties"]
    assert {one["type"] for one in sent["x"]["anyOf"]} == {"string", "number", "boolean", "object", "array", "null"}
    assert sent["l"] == {"type": "array"}
    assert sent["n"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert written.tools[1].schema == {"type": "object"}
    assert not written.forms
    assert not written.degraded


def test_members_that_patterns_name_are_possible_at_moonshot_and_the_wider_rule_is_told() -> None:
    shape = RequestShape(rules=frozenset({"tool_schemas"}), subset="moonshot_tools", typed=True)
    schema = {
        "type": "object",
        "properties": {"a": TEXT},
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": False,
    }
    written = written_tool_schemas((Tool(name="f", schema=schema),), shape)
    assert written is not None
    assert (written.tools[0].schema or {})["additionalProperties"] == {"type": "integer"}
    assert not written.forms
    assert [(one.what, one.asked) for one in written.degraded] == [("tools.schema", "f")]
    assert "possible under any name" in written.degraded[0].why


@pytest.mark.parametrize(
    "shape",
    [
        RequestShape(rules=frozenset({"tool_schemas"}), subset="moonshot_tools", typed=True),
        RequestShape(rules=frozenset({"strict_tools"}), strict_subset="openai_strict"),
    ],
    ids=["moonshot", "strict"],
)
def test_items_with_a_schema_each_stay_possible_and_the_wider_rule_is_told(shape: RequestShape) -> None:
    pair = {"type": "array", "items": [TEXT, {"type": "integer"}]}
    closed = {"type": "object", "properties": {"p": pair}, "required": ["p"], "additionalProperties": False}
    written = written_tool_schemas((strict(closed),), shape)
    assert written is not None
    [told] = [one for one in written.degraded if one.what in ("tools.schema", "tools.strict")]
    assert "items with a schema each" in told.why or told.sent is False
    assert (written.tools[0].schema or {})["properties"]["p"].get("maxItems") != 0


def test_ollama_gets_no_boolean_in_the_place_of_a_schema() -> None:
    shape = RequestShape(rules=frozenset({"tool_schemas"}), objects=True)
    properties = {
        "any": True,
        "none": False,
        "old": {"type": "string", "required": True},
        "list": {"type": "array", "items": True},
    }
    schema = {"type": "object", "properties": properties, "required": ["any"], "additionalProperties": False}
    written = written_tool_schemas((Tool(name="f", schema=schema), Tool(name="g", schema=ODD)), shape)
    assert written is not None
    objects = {"any": {}, "none": {"not": {}}, "old": {"type": "string"}, "list": {"type": "array", "items": {}}}
    assert written.tools[0].schema == {**schema, "properties": objects}
    assert written.tools[1].schema == ODD
    assert not written.forms


def test_claude_gets_no_words_of_older_drafts_whatever_stands_in_them() -> None:
    shape = RequestShape(rules=frozenset({"tool_schemas"}), modern=True)
    properties = {
        "pair": {"type": "array", "items": [TEXT, {"type": "integer"}], "additionalItems": False},
        "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "required": True},
        "dependencies": {"type": "object", "dependencies": ["a"]},
    }
    schema = {"type": "object", "properties": properties, "dependencies": {"count": ["pair"]}}
    written = written_tool_schemas((Tool(name="f", schema=schema), Tool(name="g", schema=ODD)), shape)
    assert written is not None
    assert written.tools[0].schema == {
        "type": "object",
        "properties": {
            "pair": {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": False},
            "count": {"type": "integer", "exclusiveMinimum": 0},
            "dependencies": {"type": "object"},
        },
        "dependentRequired": {"count": ["pair"]},
    }
    assert written.tools[1].schema == ODD
    assert not written.forms


def test_a_schema_of_mistral_loses_its_names_alone() -> None:
    shape = RequestShape(rules=frozenset({"tool_schemas"}), subset="mistral_tools")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "f", **ODD}
    written = written_tool_schemas((Tool(name="f", schema=schema), Tool(name="g", schema=ONE_OF)), shape)
    assert written is not None
    assert [tool.schema for tool in written.tools] == [ODD, ONE_OF]


OPEN = {"type": "object", "properties": {"a": TEXT, "n": {"type": "integer"}}, "required": ["a"]}
FURTHER = {**OPEN, "additionalProperties": {"type": "integer"}, "properties": {"a": TEXT}}
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string", "const": "x"}, "b": {"$ref": "#/$defs/b"}},
    "required": ["b", "a"],
    "additionalProperties": False,
    "$defs": {"b": TEXT},
    "$schema": "http://json-schema.org/draft-07/schema#",
}
STRICT = RequestShape(rules=frozenset({"strict_tools"}), strict_subset="openai_strict", most_strict=2)


def strict(schema: dict[str, Any] | None, name: str = "f") -> Tool:
    return Tool(name=name, schema=schema, strict=True)


def test_an_open_schema_of_a_strict_tool_is_closed_and_nulls_that_stand_for_nothing_do_not_come_back() -> None:
    written = written_tool_schemas((strict(OPEN), Tool(name="g", schema=OPEN)), STRICT)
    assert written is not None
    assert written.tools[0].strict
    sent = written.tools[0].schema or {}
    assert sent["required"] == ["a", "n"]
    assert sent["additionalProperties"] is False
    assert written.tools[1].schema == OPEN
    assert [(one.what, one.asked) for one in written.degraded] == [("tools.schema", "f")]
    assert written.forms["f"].restored('{"a":"x","n":null}') == '{"a":"x"}'


def test_members_without_a_name_of_a_strict_tool_come_back_as_members() -> None:
    written = written_tool_schemas((strict(FURTHER),), STRICT)
    assert written is not None
    assert {one.why for one in written.degraded} == {
        "the target takes no such keywords; the reply has arguments as you declared them"
    }
    stage = RestoreToolArguments(written.forms)
    pieces = ['{"a":"x","further_', 'members":[{"key":"n","value":1}', "]}"]
    events: list[Event] = [ToolCallStart(0, "c", "f"), *[ToolCallChunk(0, one) for one in pieces], ToolCallEnd(0)]
    given = [event for item in events for event in stage.feed(item)]
    assert [one.arguments for one in given if isinstance(one, ToolCallChunk)] == ['{"a":"x","n":1}']


def test_a_strict_tool_that_is_taken_stays_as_it_came() -> None:
    assert written_tool_schemas((strict(CLOSED), strict(None, "g")), STRICT) is None


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_strict_tool_without_arguments_has_a_closed_object(schema: dict[str, Any]) -> None:
    written = written_tool_schemas((strict(schema),), STRICT)
    assert written is not None
    assert written.tools[0].schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert not written.degraded


def test_a_tool_whose_schema_cannot_be_strict_is_not_and_says_so() -> None:
    free = {"type": "object", "properties": {"any": {"type": "object"}}, "required": ["any"]}
    written = written_tool_schemas((strict(free), strict(CLOSED, "g"), strict(CLOSED, "h")), STRICT)
    assert written is not None
    assert [tool.strict for tool in written.tools] == [False, True, False]
    assert [tool.schema for tool in written.tools] == [free, CLOSED, CLOSED]
    assert [(one.what, one.asked, one.sent) for one in written.degraded] == [
        ("tools.strict", "f", False),
        ("tools.strict", "h", False),
    ]
    assert "may hold anything" in written.degraded[0].why


@pytest.mark.parametrize(("preset", "model"), [("openai_chat", "gpt-4.1"), ("openai_responses", "gpt-4.1")])
@pytest.mark.parametrize("client", ["openai_chat", "openai_responses"])
def test_a_strict_tool_that_openai_refuses_is_mended_in_a_clients_own_body_too(
    client: str, preset: str, model: str
) -> None:
    gateway = SimulatedGateway(preset, model)
    function = {"name": "f", "strict": True, "parameters": {**OPEN, "default": {}}}
    said: dict[str, Any] = {"messages": [{"role": "user", "content": "Find."}]}
    said["tools"] = [{"type": "function", "function": function}]
    if client == "openai_responses":
        said = {"input": "Find.", "tools": [{"type": "function", **function}]}
    answer = gateway.post(path_for(client, gateway.model), {"model": gateway.model, **said})
    assert answer.status == 200, answer.text
    assert not gateway.refusals
    assert "tools.schema" in answer.headers["x-bardo-degraded"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": True},
        {"type": "object", "properties": ["x"]},
        {"type": "object", "properties": {"a": {}}, "required": 0.5},
        {"type": "object", "properties": {"a": {"type": 0.5}}},
        {"anyOf": 3},
        {"$ref": 3},
        {"allOf": [3]},
        {"oneOf": {"a": 1}},
        {"type": "object", "properties": {"a": {"pattern": 3}}},
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": 3}}},
        {"type": "object", "patternProperties": 3},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize(
    ("preset", "told"), [("openai-chat", "tools.strict"), ("moonshot", "tools"), ("mistral", "tools")]
)
def test_a_schema_of_a_tool_that_is_none_is_told_of_and_stops_no_request(
    preset: str, told: str, schema: dict[str, Any]
) -> None:
    function = {"name": "f", "parameters": schema, "strict": True}
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Find."}],
        "tools": [{"type": "function", "function": function}],
    }
    request = dialect("openai_chat").decode_request(json.dumps(body).encode(), Arrival())
    attempt = plan(request, target(preset, "m"))
    reported = {one.what for one in attempt.degraded if one.what.startswith("tools")}
    assert reported <= {told, "tools.schema"}
    sent = json.loads(attempt.wire.body).get("tools")
    # It goes as it came, or what became of it is told.
    assert reported or (sent[0]["function"]["parameters"] == schema and sent[0]["function"]["strict"])


@pytest.mark.parametrize("chosen", ["bad", "good"])
def test_a_tool_that_cannot_be_said_is_left_out_and_the_request_goes_on(chosen: str) -> None:
    gateway = SimulatedGateway("moonshot", "kimi-k3")
    functions = [{"name": "bad", "parameters": NOWHERE}, {"name": "good", "parameters": ANY_VALUE}]
    body = {
        "model": gateway.model,
        "messages": [{"role": "user", "content": "Find."}],
        "tools": [{"type": "function", "function": function} for function in functions],
        "tool_choice": {"type": "function", "function": {"name": chosen}},
        "thinking": {"type": "disabled"},
    }
    answer = gateway.post("/v1/chat/completions", body)
    assert answer.status == 200, answer.text
    assert [tool["function"]["name"] for tool in gateway.sent["tools"]] == ["good"]
    assert (gateway.sent.get("tool_choice") is None) is (chosen == "bad")
    told = answer.headers["x-bardo-degraded"].split(", ")
    assert "tools" in told
    assert ("tool_choice" in told) is (chosen == "bad")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ["keys", "oneOf"])
def test_a_client_gets_calls_in_the_form_that_it_declared(name: str, stream: bool) -> None:
    schema, arguments = ARGUMENTS[name]

    def answer(call: Call) -> FakeReply:
        tool = json.loads(call.body)["tools"][0]
        written = written_tool_schemas((Tool(name="f", schema=schema),), SHAPE)
        assert written is not None
        assert tool["input_schema"] == (written.tools[0].schema or {})
        given = json.loads(written.forms["f"].written(json.dumps(arguments)))
        used = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": given}
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": "m", "type": "message", "role": "assistant", "model": CLAUDE, "usage": usage}
        if not stream:
            reply = {**head, "content": [used], "stop_reason": "tool_use", "stop_sequence": None}
            return FakeReply(headers={"content-type": "application/json"}, chunks=[json.dumps(reply).encode()])
        text = json.dumps(given)
        pieces = [{"type": "input_json_delta", "partial_json": one} for one in (text[:3], text[3:])]
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**head, "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {**used, "input": {}}},
            *[{"type": "content_block_delta", "index": 0, "delta": one} for one in pieces],
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ]
        chunks = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events]
        return FakeReply(headers={"content-type": "text/event-stream"}, chunks=chunks)

    gateway = Scripted("", answer, preset="anthropic", models=(CLAUDE,))
    function = {"name": "f", "parameters": schema}
    body = {
        "model": f"p/{CLAUDE}",
        "stream": stream,
        "messages": [{"role": "user", "content": "Find."}],
        "tools": [{"type": "function", "function": function}],
    }
    said = gateway.post("/v1/chat/completions", body)
    assert said.status == 200, said.text
    if not stream:
        assert json.loads(said.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == arguments
        return
    deltas = [one["choices"][0]["delta"] for _, one in said.events if isinstance(one, dict) and one.get("choices")]
    pieces = [call["function"].get("arguments") or "" for delta in deltas for call in delta.get("tool_calls") or ()]
    assert json.loads("".join(pieces)) == arguments
