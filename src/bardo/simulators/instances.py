"""Make up a value that follows a JSON Schema, from the words of a question.

Deterministic and small: enough for tool arguments and structured answers of a simulated model.
"""

from __future__ import annotations

import re

from bardo.simulators.fields import Fields, at, fields, rows, text

_DEEPEST = 12


def instance_of(schema: Fields, question: str) -> object:
    """Return a value for `schema`; numbers and names are taken from the question where it has some."""
    return _InstanceBuilder(schema, question).make(schema, 0)


class _InstanceBuilder:
    """Builds one value: each number of the question is used once, in order."""

    def __init__(self, root: Fields, question: str) -> None:
        self._root = root
        self._numbers = [int(word) for word in re.findall(r"-?\d{1,15}", question)]
        self._phrase = _subject_of(question)

    def make(self, schema: Fields, depth: int) -> object:
        """Return a value for one part of the schema."""
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            return choices[0]
        for union in ("anyOf", "oneOf"):
            if members := rows(schema.get(union)):
                return self.make(members[0], depth + 1)
        return self._of_type(_type_of(schema), schema, depth)

    def _of_type(self, kind: str, schema: Fields, depth: int) -> object:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind in ("integer", "number"):
            return self._number(schema)
        return {"boolean": True, "null": None}.get(kind, self._phrase)

    def _object(self, schema: Fields, depth: int) -> Fields:
        if depth > _DEEPEST:
            return {}
        properties = fields(schema.get("properties"))
        wanted = schema.get("required")
        names = [name for name in wanted if name in properties] if isinstance(wanted, list) else list(properties)
        return {name: self.make(fields(properties[name]), depth + 1) for name in names}

    def _array(self, schema: Fields, depth: int) -> list[object]:
        items = fields(schema.get("items"))
        return [self.make(items, depth + 1)] if items and depth <= _DEEPEST else []

    def _number(self, schema: Fields) -> int | float:
        value: int | float = self._numbers.pop(0) if self._numbers else 1
        for bound, choose in (("minimum", max), ("maximum", min)):
            limit = schema.get(bound)
            if isinstance(limit, int | float):
                value = choose(value, limit)
        return value

    def _resolved(self, schema: Fields) -> Fields:
        for _ in range(_DEEPEST):
            reference = text(schema.get("$ref"))
            if not reference.startswith("#/"):
                return schema
            schema = fields(at(self._root, reference[2:].replace("/", ".")))
        return {}


def _type_of(schema: Fields) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((item for item in kind if item != "null"), "null")
    if isinstance(kind, str):
        return kind.lower()  # Gemini writes types in capitals.
    return "object" if "properties" in schema else "string"


def _subject_of(question: str) -> str:
    """Return the subject of the question: the words after its last preposition, else all of it."""
    found = re.findall(r"\b(?:in|for|at|of|about)\s+([^?.!\n]{1,80})", question)
    return (found[-1] if found else question).strip(" ?.!\n") or "example"
