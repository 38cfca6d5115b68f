"""How much work a schema or a text may ask for. Everything above is refused with a reason, before it costs anything."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from bardo.structured.extraction import Json, JsonSchema
from bardo.values.errors import InvalidRequest

MAX_SCHEMA_BYTES = 1 << 20
MAX_SCHEMA_DEPTH = 200
# How many subschemas may be tried for one place of an answer. Doubled references reach millions within a few lines.
MAX_BRANCHES = 20_000

MAX_READ = 1 << 18
"""Characters of broken text that are looked through for an answer."""
MAX_REPAIR = 1 << 16
"""Characters given to the repair library, which takes milliseconds for each thousand."""
REPAIR_STEPS = 40
"""Characters that the repair library may look at for each character of a text, beside REPAIR_STEPS_BESIDE for each text."""
REPAIR_STEPS_BESIDE = 50_000
MAX_WORK = 1 << 15
"""Steps of looking for values in one text: one for a value that is JSON, more for any other, by its length."""
MAX_JUDGED = 100
"""Values of one text that are judged by the schema, the last first."""
MAX_DEPTH = 100
"""Levels of nesting that are repaired; sound JSON may be as deep as the decoder takes."""

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")


def check_schema(schema: JsonSchema) -> None:
    """Raise InvalidRequest for a schema that nests or branches beyond the bounds."""
    if isinstance(schema, bool):
        return
    if _deeper_than(schema, MAX_SCHEMA_DEPTH):
        raise _too_much(f"the schema nests deeper than {MAX_SCHEMA_DEPTH} levels")
    if _Branches(schema).most() > MAX_BRANCHES:
        raise _too_much(f"one place of the schema branches into more than {MAX_BRANCHES:,} alternatives")


def _too_much(message: str) -> InvalidRequest:
    return InvalidRequest(
        message, hint="make the schema flatter, with fewer references inside anyOf and allOf", param="schema"
    )


def _deeper_than(value: Json, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [inner for one in level for inner in _inner(one)]
        if not level:
            return False
    return True


def _inner(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        return (inner for inner in value.values() if isinstance(inner, dict | list))
    return (inner for inner in value if isinstance(inner, dict | list))


class _Branches:
    """Counts, for every subschema, how many others are tried for the same place of an answer."""

    def __init__(self, root: dict[str, Json]) -> None:
        self._root = root
        self._counted: dict[int, int] = {}
        self._open: set[int] = set()

    def most(self) -> int:
        """Return the largest count in the schema."""
        waiting: list[Json] = [self._root]
        most = 0
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                most = max(most, self._count(one, 0))
                waiting.extend(one.values())
            elif isinstance(one, list):
                waiting.extend(one)
        return most

    def _count(self, schema: Json, depth: int) -> int:
        if not isinstance(schema, dict) or id(schema) in self._open:
            return 1
        if depth > MAX_SCHEMA_DEPTH:
            return MAX_BRANCHES + 1
        known = self._counted.get(id(schema))
        if known is None:
            self._open.add(id(schema))
            known = 1 + sum(self._count(inner, depth + 1) for inner in self._tried(schema))
            self._open.discard(id(schema))
            self._counted[id(schema)] = known
        return known

    def _tried(self, schema: dict[str, Json]) -> Iterator[Json]:
        for keyword in _LISTS:
            arms = schema.get(keyword)
            yield from arms if isinstance(arms, list) else ()
        yield from (schema[keyword] for keyword in _SINGLE if keyword in schema)
        if isinstance(schema.get("$ref"), str):
            yield resolve(self._root, schema["$ref"])


def resolve(root: Json, reference: str) -> Json:
    """Return what a reference within the same document points to; None for anything else."""
    if not reference.startswith("#"):
        return None
    found = root
    for part in reference[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
