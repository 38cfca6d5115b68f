"""Each rewrite by itself: what is sent, what is said of it, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.structured.rewrite import Inexpressible, RewrittenSchema, rewrite
from bardo.structured.rewrite.rules import size_of
from bardo.structured.subsets import Limits, subset
from bardo.structured.validation import Checker
from bardo.values.errors import InvalidRequest

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def pair_list(pair: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": pair, "description": "Further members of this object."}


def effects(found: RewrittenSchema) -> dict[str, str]:
    return {f"{one.kind} {one.path}".strip(): one.effect for one in found.rewrites}


SENT = {
    "a root that refers to an object is that object": (
        "any_object",
        {"$ref": "#/$defs/Place", "$defs": {"Place": closed({"a": STRING})}},
        closed({"a": STRING}, **{"$defs": {"Place": closed({"a": STRING})}}),
        {"root_opened": "lossless"},
    ),
    "closed and required stays as it is": ("openai_strict", closed({"a": STRING}), closed({"a": STRING}), {}),
    "an optional property is null instead": (
        "openai_strict",
        {**closed({"a": STRING}), "required": []},
        closed({"a": {"type": ["string", "null"]}}),
        {"optional_nullable /properties/a": "lossless"},
    ),
    "null and absent become one": (
        "openai_strict",
        {**closed({"a": {"type": ["string", "null"]}}), "required": []},
        closed({"a": {"type": ["string", "null"]}}),
        {"optional_required /properties/a": "narrowing"},
    ),
    "an open object is closed": (
        "openai_strict",
        {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
        closed({"a": STRING}),
        {"closed": "narrowing"},
    ),
    "a const is an enum": (
        "openai_strict",
        closed({"a": {"const": "x"}}),
        closed({"a": {"type": "string", "enum": ["x"]}}),
        {"const_as_enum /properties/a": "lossless", "type_added /properties/a": "lossless"},
    ),
    "a scalar root is wrapped": (
        "openai_strict",
        STRING,
        closed({"value": STRING}),
        {"root_wrapped": "lossless"},
    ),
    "a dropped rule is told": (
        "anthropic",
        closed({"a": {"type": "integer", "minimum": 1, "description": "How many."}}),
        closed({"a": {"type": "integer", "description": "How many. Must hold: minimum 1."}}),
        {"minimum_dropped /properties/a": "widening"},
    ),
    "an exclusive bound of whole numbers is inclusive": (
        "gemini_json_schema",
        closed({"a": {"type": "integer", "exclusiveMinimum": 0, "minimum": -5}}),
        closed({"a": {"type": "integer", "minimum": 1}}),
        {"bound_inclusive /properties/a": "lossless"},
    ),
    "plain objects of allOf are one": (
        "openai_strict",
        {
            "allOf": [
                closed({"a": STRING}, additionalProperties=True),
                {"properties": {"b": INTEGER}, "required": ["b"]},
            ]
        },
        closed({"a": STRING, "b": INTEGER}),
        {"all_of_merged": "lossless", "closed": "narrowing"},
    ),
    "arms told apart by a member are anyOf": (
        "openai_strict",
        closed({"x": {"oneOf": [closed({"t": {"const": "a"}}), closed({"t": {"const": "b"}})]}}),
        closed({"x": {"anyOf": [closed({"t": {"type": "string", "enum": [one]}}) for one in "ab"]}}),
        None,
    ),
    "arms that overlap are anyOf with a widening": (
        "openai_strict",
        closed({"x": {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "maximum": 5}]}}),
        closed({"x": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "maximum": 5}]}}),
        {"one_of_as_any_of /properties/x": "widening"},
    ),
    "several types are arms": (
        "cerebras_strict",
        closed({"a": {"type": ["string", "null"]}}),
        closed({"a": {"anyOf": [STRING, {"type": "null"}]}}),
        {"types_as_any_of /properties/a": "lossless"},
    ),
    "a map is pairs": (
        "openai_strict",
        closed({"m": {"type": "object", "additionalProperties": INTEGER}}),
        closed({"m": {"type": "array", "items": closed({"key": STRING, "value": INTEGER})}}),
        {"map_as_pairs /properties/m": "lossless"},
    ),
    "members beside the properties are pairs in a property of their own": (
        "openai_strict",
        {**closed({"m": STRING}), "additionalProperties": INTEGER},
        closed({"m": STRING, "further_members": pair_list(closed({"key": STRING, "value": INTEGER}))}),
        {"others_as_pairs": "lossless"},
    ),
    "so are those that patterns name, in a property whose name is free": (
        "anthropic",
        {**closed({"further_members": STRING}), "patternProperties": {"^x-": INTEGER}},
        {
            **closed({"further_members": STRING}),
            "properties": {
                "further_members": STRING,
                "further_members_": pair_list(closed({"key": {"type": "string", "pattern": "^x-"}, "value": INTEGER})),
            },
        },
        {"others_as_pairs": "lossless"},
    ),
    "several patterns are arms of the pairs": (
        "openai_strict",
        {"type": "object", "patternProperties": {"^x": INTEGER, "^y": STRING}, "additionalProperties": False},
        None,
        {"others_as_pairs": "lossless", "patterns_apart": "widening"},
    ),
    "patterns are a map beside the properties where a map is taken": (
        "moonshot_tools",
        {"type": "object", "properties": {"m": STRING}, "patternProperties": {"^x-": INTEGER}},
        {
            "type": "object",
            "properties": {"m": STRING},
            "description": 'Must hold: patternProperties {"^x-":{"type":"integer"}}.',
        },
        {"patternProperties_dropped": "widening"},
    ),
    "members whose value cannot be said are no longer possible": (
        "openai_strict",
        {**closed({"m": STRING}), "additionalProperties": {"type": "object"}},
        closed({"m": STRING}),
        {"closed": "narrowing"},
    ),
    "an open object with patterns is closed but for them": (
        "openai_strict",
        {**closed({"m": STRING}), "patternProperties": {"^x-": INTEGER}, "additionalProperties": True},
        None,
        {"others_as_pairs": "lossless", "closed": "narrowing"},
    ),
    "patterns that no value fits leave the object closed": (
        "openai_strict",
        {**closed({"m": STRING}), "patternProperties": {"^x-": False}},
        closed({"m": STRING}),
        None,
    ),
    "how many members there are is not left to the properties where pairs are members too": (
        "openai_strict",
        {**closed({"m": STRING}), "additionalProperties": INTEGER, "maxProperties": 2},
        None,
        {"maxProperties_dropped": "widening"},
    ),
    "definitions move": (
        "openai_strict",
        {**closed({"a": {"$ref": "#/definitions/N"}}), "definitions": {"N": closed({"b": STRING})}},
        {**closed({"a": {"$ref": "#/$defs/N"}}), "$defs": {"N": closed({"b": STRING})}},
        None,
    ),
    "an unknown word is stripped": (
        "openai_strict",
        closed({"a": {"type": "string", "x-own": 1}}),
        closed({"a": STRING}),
        {"annotation_stripped /properties/a": "lossless"},
    ),
    "a tuple is an array": (
        "openai_strict",
        closed({"t": {"type": "array", "prefixItems": [STRING, INTEGER], "items": False}}),
        None,
        {"prefixItems_dropped /properties/t": "widening"},
    ),
    "the order is said to Gemini": (
        "gemini_json_schema",
        {"type": "object", "properties": {"b": STRING, "a": STRING}, "required": ["a", "b"]},
        {
            "type": "object",
            "properties": {"b": STRING, "a": STRING},
            "required": ["b", "a"],
            "propertyOrdering": ["b", "a"],
        },
        {"ordered": "lossless"},
    ),
    "null is a word of its own": (
        "gemini_openapi",
        closed({"a": {"type": ["string", "null"]}}),
        closed({"a": {"type": "string", "nullable": True}}),
        None,
    ),
    "an older draft is updated": (
        "gemini_json_schema",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [STRING],
            "additionalItems": False,
        },
        {"type": "array", "prefixItems": [STRING], "maxItems": 1},
        None,
    ),
    "a schema that is only read goes as it is": (
        "any_object",
        {"type": "object", "not": {}},
        {"type": "object", "not": {}},
        {},
    ),
}


@pytest.mark.parametrize("case", SENT)
def test_the_rewritten_schema_and_its_entries(case: str) -> None:
    name, schema, sent, said = SENT[case]
    found = rewrite(schema, subset(name))
    assert sent is None or found.schema == sent
    assert said is None or said.items() <= effects(found).items()
    assert said != {} or not found.rewrites


RESTORED: dict[str, tuple[str, dict[str, Any], Any, Any]] = {
    "nulls of optional properties go": (
        "openai_strict",
        {"type": "object", "properties": {"a": STRING, "b": {"type": ["string", "null"]}}},
        {"a": None, "b": None},
        {"b": None},
    ),
    "inside items": (
        "openai_strict",
        {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}},
        {"value": [{"a": None}, {"a": "x"}]},
        [{}, {"a": "x"}],
    ),
    "pairs are a map, the last of equal keys counts": (
        "openai_strict",
        closed({"m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING}}}}),
        {"m": [{"key": "k", "value": {"a": "x"}}, {"key": "k", "value": {"a": None}}]},
        {"m": {"k": {}}},
    ),
    "pairs beside properties are members, and the properties stay as they are": (
        "openai_strict",
        {"type": "object", "properties": {"m": STRING}, "additionalProperties": INTEGER},
        {"m": "a", "further_members": [{"key": "n", "value": 1}, {"key": "m", "value": 2}]},
        {"m": "a", "n": 1},
    ),
    "pairs of several patterns have their own values": (
        "openai_strict",
        {
            **closed({"m": {"type": ["string", "null"]}}),
            "patternProperties": {"^x-": {"type": "object", "properties": {"a": STRING}}},
            "additionalProperties": {"type": "object", "additionalProperties": INTEGER},
        },
        {
            "m": None,
            "further_members": [
                {"key": "x-1", "value": {"a": None}},
                {"key": "n", "value": [{"key": "one", "value": 1}]},
            ],
        },
        {"m": None, "x-1": {}, "n": {"one": 1}},
    ),
    "the arm that fits": (
        "openai_strict",
        closed(
            {
                "x": {
                    "anyOf": [
                        closed({"t": {"const": 1}, "n": {"type": "null"}}),
                        {"type": "object", "properties": {"n": STRING}},
                    ]
                }
            }
        ),
        {"x": {"n": None}},
        {"x": {}},
    ),
    "through recursion": (
        "openai_strict",
        {"type": "object", "properties": {"next": {"$ref": "#"}, "a": STRING}},
        {"next": {"next": None, "a": None}, "a": "x"},
        {"next": {}, "a": "x"},
    ),
    "another shape is left alone": ("openai_strict", {"type": "array", "items": STRING}, ["a"], ["a"]),
}


@pytest.mark.parametrize("case", RESTORED)
def test_an_answer_comes_back_as_the_callers(case: str) -> None:
    name, schema, answer, restored = RESTORED[case]
    found = rewrite(schema, subset(name))
    assert found.restore(answer) == restored
    assert Checker(schema).accepts(restored)


RECURSIVE = {
    "type": "object",
    "properties": {"v": STRING, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["v", "next"],
}

INEXPRESSIBLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "anything": ("openai_strict", closed({"a": {}}), "/properties/a"),
    "a free object": ("openai_strict", closed({"a": {"type": "object"}}), "/properties/a"),
    "an array of anything": ("anthropic", closed({"a": {"type": "array"}}), "/properties/a/items"),
    "recursion": ("anthropic", RECURSIVE, "recursive"),
    "too deep": ("openai_strict", {}, "levels"),
    "too many enum values": ("openai_strict", closed({"a": {"enum": [f"v{n}" for n in range(1001)]}}), "1,000"),
    "too many arms": (
        "cerebras_strict",
        closed({"a": {"anyOf": [closed({f"p{n}": STRING}) for n in range(6)]}}),
        "arms",
    ),
    "nothing valid": ("openai_strict", {"type": "object", "properties": {"a": False}, "required": ["a"]}, "no value"),
}


@pytest.mark.parametrize("case", INEXPRESSIBLE)
def test_what_a_target_has_no_words_for_is_told_with_its_place(case: str) -> None:
    name, schema, said = INEXPRESSIBLE[case]
    if not schema:
        schema = STRING
        for _ in range(11):
            schema = closed({"a": schema})
    with pytest.raises(Inexpressible, match=said):
        rewrite(schema, subset(name))


def test_many_arms_told_apart_by_a_member_are_lossless() -> None:
    arms = [closed({"kind": {"const": f"k{n}"}, "a": STRING}) for n in range(60)]
    for schema, effect in ((arms, "lossless"), ([*arms, arms[0]], "widening")):
        found = rewrite(closed({"x": {"oneOf": schema}}), subset("openai_strict"))
        assert effects(found)["one_of_as_any_of /properties/x"] == effect


def test_definitions_with_one_name_keep_apart() -> None:
    places = {f"p{n}": closed({"same": {"type": "array", "items": {"const": n}}}) for n in range(3)}
    references = {f"r{n}": {"$ref": f"#/$defs/p{n}/properties/same"} for n in range(3)}
    found = rewrite({**closed(references), "$defs": places}, subset("openai_strict"))
    assert found.schema["$defs"].keys() == {"same", "same_2", "same_3"}
    assert Checker(found.schema).accepts({"r0": [0], "r1": [1], "r2": [2]})
    assert not Checker(found.schema).accepts({"r0": [0], "r1": [0], "r2": [2]})


def test_recursion_in_a_required_place_is_unrolled_for_gemini_and_ends_in_null() -> None:
    found = rewrite(RECURSIVE, subset("gemini_json_schema"))
    assert "recursion_unrolled" in {one.kind for one in found.rewrites}
    assert Checker(found.schema).accepts({"v": "a", "next": {"v": "b", "next": None}})
    assert "$ref" not in str(found.schema)


def test_recursion_through_an_optional_property_stays_for_gemini() -> None:
    schema = {"type": "object", "properties": {"v": STRING, "next": {"$ref": "#"}}, "required": ["v"]}
    found = rewrite(schema, subset("gemini_json_schema"))
    assert found.schema["properties"]["next"] == {"$ref": "#/$defs/root"}


def test_anthropic_has_24_optional_properties_and_16_more_as_nulls() -> None:
    def optional(count: int) -> dict[str, Any]:
        return {**closed({f"p{n}": STRING for n in range(count)}), "required": []}

    found = rewrite(optional(40), subset("anthropic"))
    size = size_of(found.schema, Limits())
    assert (size["optional"], size["unions"]) == (24, 16)
    assert found.restore({"p39": None}) == {}
    with pytest.raises(Inexpressible, match="17 places with several types"):
        rewrite(optional(41), subset("anthropic"))


def test_a_thousand_properties_are_rewritten() -> None:
    schema = {"type": "object", "properties": {f"p{n}": STRING for n in range(1000)}}
    found = rewrite(schema, subset("openai_strict"))
    assert len(found.schema["required"]) == 1000
    with pytest.raises(Inexpressible, match="5,001 properties"):
        rewrite({"type": "object", "properties": {f"p{n}": STRING for n in range(5001)}}, subset("openai_strict"))


def test_definitions_that_double_at_each_step_end_in_a_reason() -> None:
    named = {f"d{n}": closed({side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}) for n in range(20)}
    schema = {**closed({"a": {"$ref": "#/$defs/d0"}}), "$defs": {**named, "d20": STRING}}
    with pytest.raises(Inexpressible, match="20,000 places"):
        rewrite(schema, subset("gemini_openapi"))


@pytest.mark.parametrize("reference", ["http://elsewhere.invalid/s.json", "other.json#/x", "#/$defs/none"])
def test_a_reference_that_leaves_the_schema_is_refused(reference: str) -> None:
    with pytest.raises(InvalidRequest, match="points to"):
        rewrite(closed({"a": {"$ref": reference}}), subset("openai_strict"))


def test_a_reference_that_leads_only_to_itself_is_refused() -> None:
    named = {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}
    with pytest.raises(InvalidRequest, match="only back to itself"):
        rewrite({**closed({"x": {"$ref": "#/$defs/a"}}), "$defs": named}, subset("openai_strict"))


def test_a_wrapped_schema_keeps_its_references() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    found = rewrite(schema, subset("any_object"))
    assert Checker(found.schema).accepts({"value": [1]})
    assert not Checker(found.schema).accepts({"value": ["x"]})
    assert found.restore({"value": [1]}) == [1]


def test_the_first_items_of_an_arm_fit_what_stands_beside_it_for_all_items() -> None:
    tuple_arm = {"type": "array", "prefixItems": [INTEGER, STRING]}
    schema = {"type": "array", "items": INTEGER, "anyOf": [tuple_arm, {"type": "array", "prefixItems": [STRING]}]}
    sent = Checker(rewrite(schema, subset("xgrammar")).schema)
    for value in ([], [1], [1, 2], [1, "x"], ["x"], ["x", 1]):
        assert sent.accepts(value) == Checker(schema).accepts(value), value


def test_items_that_a_part_contains_are_none_of_its_unevaluated_ones() -> None:
    part = {"type": "array", "contains": INTEGER, "unevaluatedItems": STRING}
    found = rewrite({"type": "array", "allOf": [part]}, subset("gemini_json_schema"))
    for value in ([1], [1, "x"], ["x", 1]):
        assert Checker(part).accepts(value), value
        assert Checker(found.schema).accepts(value), value
    assert effects(found)["unevaluatedItems_dropped"] == "widening"


def test_two_parts_that_ask_for_contained_items_keep_their_own_counts() -> None:
    def has(kind: dict[str, Any], least: int) -> dict[str, Any]:
        return {"type": "array", "contains": kind, "minContains": least}

    for schema in (
        {"allOf": [has(INTEGER, 2), has(STRING, 1)]},
        {"allOf": [has(INTEGER, 2), {"type": "array", "minContains": 1}]},
        {"allOf": [has(INTEGER, 2), has(INTEGER, 1)]},
    ):
        found = rewrite({**schema, "type": "array"}, subset("gemini_json_schema"))
        for value in ([1, 2, "x"], [1, "x"], [1, 2], ["x"]):
            told = any(one.effect == "widening" for one in found.rewrites)
            assert told or Checker(found.schema).accepts(value) == Checker(schema).accepts(value), (schema, value)


def test_a_property_for_pairs_that_has_none_stays_where_it_is_a_list_and_goes_where_it_is_null() -> None:
    found = rewrite({**closed({"m": STRING}), "additionalProperties": INTEGER}, subset("openai_strict"))
    assert found.restore({"m": "a", "further_members": [1]}) == {"m": "a", "further_members": [1]}
    assert found.restore({"m": "a", "further_members": None}) == {"m": "a"}
    assert found.restore({"m": "a", "further_members": []}) == {"m": "a"}
