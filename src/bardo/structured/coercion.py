"""Change a value's types where the schema asks for it and nothing is lost: "42" to 42, 42 to "42", "true" to true, JSON in a string.

Nothing is rounded, no enum is matched by likeness, 0 and 1 are not booleans, and what fits the schema as it stands is left alone.

The last step for an answer that still breaks its schema: bad members take the schema's own defaults, bad optional ones are dropped.
Nothing is invented: a member without a valid default that must be there stays an error, with its path. What was done is on the result.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Literal

import msgspec

from bardo.structured.bounds import resolve
from bardo.structured.extraction import Extraction, Failure, Json, JsonSchema, pointer
from bardo.structured.lexemes import number, without_surrogates
from bardo.structured.scanning import loads
from bardo.structured.validation import Checker, checker
from bardo.values.once import pattern

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MONEY = pattern(r"[$€£¥₹₽₩]\s?(?=[\d.])|(?<=\d)\s?[€£¥₹₽₩$]$")
# 1,234 may be a fraction where the comma is the decimal sign; with two groups or decimals it cannot.
_GROUPED = pattern(r"[+-]?\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?|[+-]?\d{1,3}(?:,\d{3})+\.\d+")
_GROUPED_INTEGER = pattern(r"[+-]?\d{1,3}(?:,\d{3})+")
_MAX_HOPS = 20

Path = tuple[str | int, ...]
Kind = Literal["object", "array", "string", "number", "integer", "boolean", "null"]


def coerce(value: Json, schema: JsonSchema) -> tuple[Json, tuple[str, ...]]:
    """Return the value as the schema wants it, and the paths that were changed. The value given is not touched."""
    work = _Coercer(schema)
    return work.changed(value, schema, ()), tuple(work.paths)


class _Coercer:
    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self.paths: list[str] = []

    def changed(self, value: Json, schema: JsonSchema, path: Path) -> Json:
        accepted = accepted_types(self._root, schema)
        if not _fits(value, accepted):
            value = self._scalar(value, accepted, path)
        if isinstance(value, dict):
            return self._members(value, schema, path)
        if isinstance(value, list):
            return self._items(value, schema, path)
        return value

    def _scalar(self, value: Json, accepted: frozenset[str], path: Path) -> Json:
        scalar = _from_string(value, accepted) if isinstance(value, str) else _to_string(value, accepted)
        if scalar is _NOTHING:
            return value
        self.paths.append(pointer(path))
        return scalar

    def _members(self, value: dict[str, Json], schema: JsonSchema, path: Path) -> Json:
        properties, others = members_of(self._root, schema)
        return {key: self.changed(inner, properties.get(key, others), (*path, key)) for key, inner in value.items()}

    def _items(self, value: list[Json], schema: JsonSchema, path: Path) -> Json:
        first, rest = items_of(self._root, schema)
        return [
            self.changed(inner, first[place] if place < len(first) else rest, (*path, place))
            for place, inner in enumerate(value)
        ]


class _NotChanged:
    """No change was possible."""


_NOTHING = _NotChanged()


def _from_string(text: str, accepted: frozenset[str]) -> Json:
    stripped = text.strip()
    if accepted & {"integer", "number"}:
        figure = _number(stripped, whole="number" not in accepted)
        if figure is not None:
            return figure
    if "boolean" in accepted and stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    if "null" in accepted and stripped.lower() in ("null", "none"):
        return None
    if accepted & {"object", "array"} and stripped[:1] in ("{", "["):
        try:
            inner = loads(stripped)
        except ValueError:
            return _NOTHING
        return inner if _fits(inner, accepted) else _NOTHING
    return _NOTHING


def _number(text: str, *, whole: bool) -> int | float | None:
    plain = _MONEY.sub("", text, count=1)
    if _GROUPED.fullmatch(plain) or (whole and _GROUPED_INTEGER.fullmatch(plain)):
        plain = plain.replace(",", "")
    figure = number(plain)
    if isinstance(figure, float) and (not math.isfinite(figure) or (whole and not figure.is_integer())):
        return None
    return figure


def _to_string(value: Json, accepted: frozenset[str]) -> Json:
    # A float may have been written in another way (1.10), so only what has one spelling becomes text.
    if "string" not in accepted:
        return _NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _NOTHING


def _fits(value: Json, accepted: frozenset[str]) -> bool:
    return bool(_kinds(value) & accepted)


def _kinds(value: Json) -> frozenset[Kind]:
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number", "integer"} if value.is_integer() else {"number"})
        case str():
            return frozenset({"string"})
        case list():
            return frozenset({"array"})
        case _:
            return frozenset({"object"})


def followed(root: JsonSchema, schema: JsonSchema) -> JsonSchema:
    """Return the schema that a chain of local references ends at."""
    for _ in range(_MAX_HOPS):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        target = resolve(root, schema["$ref"])
        if not isinstance(target, dict | bool):
            return True
        schema = target
    return schema


def accepted_types(root: JsonSchema, schema: JsonSchema, seen: frozenset[int] = frozenset()) -> frozenset[str]:
    """Return the types a schema may accept; all of them where it does not say. `seen` are the schemas on the way here."""
    schema = followed(root, schema)
    if not isinstance(schema, dict) or id(schema) in seen:
        return _TYPES
    seen |= {id(schema)}
    accepted = _TYPES
    declared = schema.get("type")
    if isinstance(declared, str):
        accepted = frozenset({declared})
    elif isinstance(declared, list):
        accepted = frozenset(declared)
    elif isinstance(schema.get("enum"), list):
        accepted = frozenset().union(*map(_kinds, schema["enum"]))
    elif "const" in schema:
        accepted = frozenset(_kinds(schema["const"]))
    for keyword in ("anyOf", "oneOf"):
        arms = schema.get(keyword)
        if isinstance(arms, list) and arms:
            accepted &= frozenset().union(*(accepted_types(root, arm, seen) for arm in arms))
    for arm in schema.get("allOf") or ():
        accepted &= accepted_types(root, arm, seen)
    return accepted


def members_of(root: JsonSchema, schema: JsonSchema) -> tuple[dict[str, JsonSchema], JsonSchema]:
    """Return the schemas of an object's members, and that of members it does not name.

    Of several arms, only those that may be objects count, and a member two arms speak of is left to the validator.
    """
    by_name: dict[str, JsonSchema] = {}
    others: JsonSchema = True
    for arm in _arms(root, schema, "object"):
        properties = arm.get("properties")
        for key, inner in properties.items() if isinstance(properties, dict) else ():
            by_name[key] = True if key in by_name and by_name[key] != inner else inner
        if isinstance(arm.get("additionalProperties"), dict):
            others = arm["additionalProperties"]
    return by_name, others


def items_of(root: JsonSchema, schema: JsonSchema) -> tuple[list[JsonSchema], JsonSchema]:
    """Return the schemas of an array's first items, and that of the others."""
    arms = _arms(root, schema, "array")
    if len(arms) != 1:
        return [], True
    first, rest = arms[0].get("prefixItems"), arms[0].get("items")
    return first if isinstance(first, list) else [], rest if isinstance(rest, dict) else True


def _arms(root: JsonSchema, schema: JsonSchema, kind: str, seen: frozenset[int] = frozenset()) -> list[dict[str, Json]]:
    schema = followed(root, schema)
    if not isinstance(schema, dict) or id(schema) in seen or kind not in accepted_types(root, schema):
        return []
    seen |= {id(schema)}
    matching = [schema] if schema.keys() & _SPEAKS[kind] else []
    for keyword in ("anyOf", "oneOf", "allOf"):
        arms = schema.get(keyword)
        for arm in arms if isinstance(arms, list) else ():
            matching += _arms(root, arm, kind, seen)
    return matching


_SPEAKS = {"object": {"properties", "additionalProperties"}, "array": {"items", "prefixItems"}}


def means(root: JsonSchema, value: Json) -> bool:
    """Return whether a schema says something of values of this kind, rather than letting them pass because it speaks of others."""
    schema = followed(root, root)
    accepted = accepted_types(root, schema)
    if isinstance(schema, dict) and accepted == _TYPES:
        accepted = (
            frozenset(kind for kind, words in _SPEAKS.items() if schema.keys() & (words | _COUNTS[kind])) or _TYPES
        )
    return _fits(value, accepted)


def may_conform(root: JsonSchema, schema: JsonSchema, value: Json) -> bool:
    """Return whether a scalar is of a type that a schema accepts, and among its values where it lists them."""
    schema = followed(root, schema)
    if isinstance(schema, dict):
        listed = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(listed, list) and value not in listed:
            return False
    return _fits(value, accepted_types(root, schema))


_COUNTS = {
    "object": {"required", "minProperties", "patternProperties", "dependentRequired"},
    "array": {"minItems", "contains", "uniqueItems"},
}


def sendable(value: Json) -> tuple[Json, tuple[str, ...]]:
    """Return the value as JSON can carry it: surrogates joined or replaced, numbers that are not finite null, with the paths of those."""
    paths: list[str] = []
    return _sendable(value, (), paths), tuple(paths)


def _sendable(value: Json, path: Path, paths: list[str]) -> Json:
    match value:
        case str():
            return value if value.isascii() else without_surrogates(value)
        case float() if not math.isfinite(value):
            paths.append(pointer(path))
            return None
        case dict():
            return {without_surrogates(key): _sendable(inner, (*path, key), paths) for key, inner in value.items()}
        case list():
            return [_sendable(inner, (*path, place), paths) for place, inner in enumerate(value)]
        case _:
            return value


_MAX_STEPS = 200


def with_defaults(extraction: Extraction, schema: JsonSchema | Checker) -> Extraction:
    """Return the extraction with `value` made to conform by declared defaults, or as it was where they do not suffice.

    `defaulted` names the paths that took a default, `dropped` those that were left out. Only a complete value that breaks the schema is
    mended: a refusal, an answer that was cut and a text without JSON stay what they are. Raises TooMuchWork where the schema asks for too
    much.
    """
    judge = checker(schema)
    if extraction.error != "invalid":
        return extraction
    filled = _DefaultFiller(judge, deepcopy(extraction.value))
    if not filled.conforms():
        return extraction
    return msgspec.structs.replace(
        extraction,
        value=filled.value,
        error=None,
        message="",
        failures=(),
        defaulted=(*extraction.defaulted, *dict.fromkeys(filled.defaulted)),
        dropped=(*extraction.dropped, *dict.fromkeys(filled.dropped)),
    )


class _DefaultFiller(msgspec.Struct):
    judge: Checker
    value: Json
    defaulted: list[str] = msgspec.field(default_factory=list)
    dropped: list[str] = msgspec.field(default_factory=list)

    def conforms(self) -> bool:
        """Mend the value until it conforms, or there is nothing left to mend it with."""
        for _ in range(_MAX_STEPS):
            failures = self.judge.failures(self.value)
            if not failures:
                return True
            if not any(self._mend(failure) for failure in failures):
                return False
        return False

    def _mend(self, failure: Failure) -> bool:
        path = _steps(self.value, failure.path)
        if path is None:
            return False
        if failure.keyword == "required":
            return self._fill(path)
        if failure.keyword in ("additionalProperties", "unevaluatedProperties"):
            return self._drop_unknown(path)
        # Where the place itself has no default, one around it may.
        return any(self._replace(path[:length]) for length in range(len(path), -1, -1))

    def _fill(self, path: Path) -> bool:
        """Return an object the defaults of those members it must have and lacks."""
        target, schema = _at(self.value, path), self._schema_at(path)
        filled = False
        for key, inner in members_of(self.judge.schema, schema)[0].items():
            inner = followed(self.judge.schema, inner)
            if key in self._required(schema) and key not in target and isinstance(inner, dict) and "default" in inner:
                target[key] = deepcopy(inner["default"])
                self.defaulted.append(pointer((*path, key)))
                filled = True
        return filled

    def _drop_unknown(self, path: Path) -> bool:
        target = _at(self.value, path)
        properties = members_of(self.judge.schema, self._schema_at(path))[0]
        unknown = [key for key in target if key not in properties]
        for key in unknown:
            del target[key]
            self.dropped.append(pointer((*path, key)))
        return bool(unknown)

    def _replace(self, path: Path) -> bool:
        """Put a default in the place of a bad value, or leave it out where it may be left out."""
        schema = self._schema_at(path)
        default = schema.get("default", _NONE) if isinstance(schema, dict) else _NONE
        if default is not _NONE and (not path or _at(self.value, path) != default):
            self._set(path, deepcopy(default))
            self.defaulted.append(pointer(path))
            return True
        if not path or not isinstance(path[-1], str) or path[-1] in self._required(self._schema_at(path[:-1])):
            return False
        _at(self.value, path[:-1]).pop(path[-1])
        self.dropped.append(pointer(path))
        return True

    def _set(self, path: Path, value: Json) -> None:
        if path:
            _at(self.value, path[:-1])[path[-1]] = value
        else:
            self.value = value

    def _schema_at(self, path: Path) -> JsonSchema:
        root = self.judge.schema
        schema = followed(root, root)
        for step in path:
            if isinstance(step, str):
                properties, others = members_of(root, schema)
                schema = followed(root, properties.get(step, others))
            else:
                first, rest = items_of(root, schema)
                schema = followed(root, first[step] if step < len(first) else rest)
        return schema

    def _required(self, schema: JsonSchema) -> frozenset[str]:
        return frozenset(schema.get("required") or ()) if isinstance(schema, dict) else frozenset()


class _NoDefault:
    """No default is declared."""


_NONE = _NoDefault()


def _at(value: Json, path: Path) -> Json:
    for step in path:
        value = value[step]
    return value


def _steps(value: Json, path: str) -> Path | None:
    """Return a JSON Pointer as the keys and indexes that lead through a value."""
    steps: list[str | int] = []
    for part in path.split("/")[1:]:
        step: str | int = part.replace("~1", "/").replace("~0", "~")
        step = int(step) if isinstance(value, list) else step
        steps.append(step)
        value = value[step]
    return tuple(steps)
