"""Types and enums: every node says its type, and says several types in the way the target takes them."""

from __future__ import annotations

from typing import Any

from bardo.structured.rewrite.entries import Place, Schema, Work
from bardo.structured.rewrite.words import about, json_type

_SCALARS = frozenset({"null", "boolean", "integer", "number", "string"})
_TOLD = ("title", "description")
_CHOSEN_FIRST = ("object", "array", "string", "number")


def const_as_enum(node: Schema, place: Place, work: Work) -> Schema | bool:
    """Return a node with an `enum` of one value for `const`."""
    value, rest = node["const"], {word: one for word, one in node.items() if word != "const"}
    work.note("const_as_enum", place, "lossless", "const is said as an enum of one value")
    if "enum" not in rest:
        return {**rest, "enum": [value]}
    return {**rest, "allOf": [*rest.get("allOf", ()), {"enum": [value]}]}


def declared(node: Schema) -> list[str] | None:
    """Return the types a node says, those covered by "number" left out; None where it says none."""
    said = node.get("type")
    if said is None:
        return None
    listed = [said] if isinstance(said, str) else list(dict.fromkeys(said))
    return [one for one in listed if not (one == "integer" and "number" in listed)]


def with_type(node: Schema, place: Place, work: Work) -> Schema:
    """Return a node that says its type, found in its enum or guessed from its rules; unchanged where there is nothing to go by."""
    if isinstance(node.get("enum"), list):
        found = list(dict.fromkeys(json_type(value) for value in node["enum"]))
        work.note("type_added", place, "lossless", "the type of the enum's values is said")
        return {**node, "type": _ordered(found)}
    kinds = {"number" if kind == "integer" else kind for word in node for kind in about(word)}
    for kind in _CHOSEN_FIRST:
        if kind in kinds:
            work.note("type_implied", place, "narrowing", f"values of other types than {kind} can no longer be said")
            return {**node, "type": kind}
    return node


def with_values_of_type(node: Schema, types: list[str], place: Place, work: Work) -> Schema:
    """Return a node whose enum holds only values of its types, and no enum where that says nothing."""
    values = [value for value in node["enum"] if _is_of(value, types)]
    covered = all(kind in ("null", "boolean") for kind in types) and len({json_type(v) for v in values}) == len(types)
    if covered and ("boolean" not in types or (True in values and False in values)):
        work.note("enum_implied", place, "lossless", "the type alone says what the enum says")
        return {word: value for word, value in node.items() if word != "enum"}
    if len(values) != len(node["enum"]):
        work.note(
            "enum_filtered", place, "lossless", "values of other types than the schema's own are left out of the enum"
        )
        return {**node, "enum": values}
    return node


def may_list(node: Schema, types: list[str], work: Work) -> bool:
    """Return whether several types may stay in one node."""
    if not work.subset.type_arrays or not _SCALARS.issuperset(types):
        return False
    return "enum" not in node or work.subset.enum_types.issuperset(types)


def one_arm_each(node: Schema, types: list[str], place: Place, work: Work) -> Schema:
    """Return an `anyOf` with one arm for each type of a node."""
    work.note("types_as_any_of", place, "lossless", "several types are said as anyOf")
    told = {word: value for word, value in node.items() if word in _TOLD}
    words = {word: value for word, value in node.items() if word not in (*_TOLD, "type")}
    return {"anyOf": [_arm(words, kind) for kind in types], **told}


def _arm(words: Schema, kind: str) -> Schema:
    kept: dict[str, Any] = {word: value for word, value in words.items() if not about(word) or kind in about(word)}
    return {"type": kind, **kept}


def _is_of(value: Any, types: list[str]) -> bool:
    kind = json_type(value)
    return kind in types or (kind == "integer" and "number" in types)


def _ordered(types: list[str]) -> Any:
    kept = [kind for kind in types if not (kind == "integer" and "number" in types)]
    return kept[0] if len(kept) == 1 else kept
