"""How much work a schema or a text may ask for. Everything above is refused with a reason, before it costs anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from bardo.structured.extraction import Json, JsonSchema
from bardo.values.errors import InvalidRequest

MAX_SCHEMA_BYTES = 1 << 17
MAX_SCHEMA_DEPTH = 200
# How many subschemas may be tried for one place of an answer. Doubled references reach millions within a few lines.
MAX_BRANCHES = 20_000

MAX_PATTERN_WORK = 50_000
"""Signs of all patterns of a schema, each as often as its pattern repeats it: compiling them takes time and memory."""
MAX_ANSWER = 1 << 22
"""Characters of a text that is read as an answer."""
MAX_WORK_HERE = 20_000
"""Steps of judging a value in this process; what may take more is judged in one that can be ended."""
# An alternative that fails is written down with its reason, which takes as long as twenty other steps.
_ALTERNATIVE_STEPS = 20
_CHARS_OF_A_STEP = 64
_MOST_OPENED = 4

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


def check_schema(schema: JsonSchema) -> int:
    """Return the signs of a schema's patterns, each repetition written out. Raises InvalidRequest beyond the bounds."""
    if isinstance(schema, bool):
        return 0
    if _deeper_than(schema, MAX_SCHEMA_DEPTH):
        raise _too_much(f"the schema nests deeper than {MAX_SCHEMA_DEPTH} levels")
    if _Branches(schema).most() > MAX_BRANCHES:
        raise _too_much(f"one place of the schema branches into more than {MAX_BRANCHES:,} alternatives")
    signs = sum(map(_pattern_work, _patterns(schema)))
    if signs > MAX_PATTERN_WORK:
        raise InvalidRequest(
            f"the patterns of the schema repeat more than {MAX_PATTERN_WORK:,} signs",
            hint="write smaller numbers in { }, and say lengths by minLength and maxLength",
            param="schema",
        )
    return signs


def _patterns(schema: Json) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                yield node["pattern"]
            if isinstance(node.get("patternProperties"), dict):
                yield from node["patternProperties"]
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*+\]?|\{(\d{0,9}),?(\d{0,9})\}|.", re.DOTALL)


def _pattern_work(pattern: str) -> int:
    """Return about how many signs a pattern has once everything that it repeats is written out."""
    open_groups: list[int] = []
    whole = last = 0
    for part in _PART.finditer(pattern):
        sign = part[0]
        if part[1] is not None:
            # What stands before it is repeated: it was counted once.
            whole += last * (max(int(part[1] or 0), int(part[2] or 0), 1) - 1)
            last *= max(int(part[1] or 0), int(part[2] or 0), 1)
        elif sign == "(":
            open_groups.append(whole)
            whole, last = 0, 0
        elif sign == ")" and open_groups:
            last = whole
            whole += open_groups.pop()
        elif sign not in ("*", "+", "?"):
            # Letters of all scripts are a table of hundreds of ranges.
            last = 20 if sign[:2] in ("\\w", "\\W", "\\p", "\\P", "\\d", "\\D") else 1
            whole += last
        if whole > MAX_PATTERN_WORK:
            return whole
    return whole + sum(open_groups)


class JudgingCost:
    """The cost of judging by a schema, for each part of a value."""

    __slots__ = ("_alternatives", "_is_recursive", "_nodes")

    def __init__(self, schema: JsonSchema) -> None:
        self._nodes, self._alternatives, self._is_recursive = 0, 0, False
        waiting: list[Json] = [schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                self._nodes += 1
                self._alternatives += sum(len(node[name]) for name in _LISTS if isinstance(node.get(name), list))
                self._alternatives += "contains" in node
                self._is_recursive |= "$ref" in node or "$dynamicRef" in node or "$recursiveRef" in node
                waiting.extend(node.values())
            elif isinstance(node, list):
                self._nodes += 1
                waiting.extend(node)

    def is_small_for(self, value: Json) -> bool:
        """Return whether judging a value takes no more than MAX_WORK_HERE steps. It looks at no more than so many parts of the value."""
        each = self._nodes + _ALTERNATIVE_STEPS * self._alternatives
        parts, depth, level = 0, 0, [value]
        while level:
            depth += 1
            # Each alternative that refers to its parent doubles the work with each level.
            steps = each * (2**depth if self._is_recursive and self._alternatives > 1 else 1)
            inner: list[Json] = []
            for item in level:
                parts += 1 + (len(item) // _CHARS_OF_A_STEP if isinstance(item, str) else 0)
                if parts * steps > MAX_WORK_HERE:
                    return False
                if isinstance(item, dict):
                    parts += sum(map(len, item)) // _CHARS_OF_A_STEP
                    inner.extend(item.values())
                elif isinstance(item, list):
                    inner.extend(item)
            level = inner
        return True

    def is_small_for_text(self, text: str) -> bool:
        """Return whether judging the value of a JSON text takes no more than MAX_WORK_HERE steps, without reading it."""
        opened = text.count("{") + text.count("[")
        if self._is_recursive and self._alternatives > 1 and opened > _MOST_OPENED:
            return False
        parts = 1 + opened + text.count(",") + text.count(":") + len(text) // _CHARS_OF_A_STEP
        return parts * (self._nodes + _ALTERNATIVE_STEPS * self._alternatives) <= MAX_WORK_HERE


def _too_much(message: str) -> InvalidRequest:
    return InvalidRequest(
        message, hint="make the schema flatter, with fewer references inside anyOf and allOf", param="schema"
    )


def _deeper_than(value: Json, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [inner for node in level for inner in _inner(node)]
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
            node = waiting.pop()
            if isinstance(node, dict):
                most = max(most, self._count(node, 0))
                waiting.extend(node.values())
            elif isinstance(node, list):
                waiting.extend(node)
        return most

    def _count(self, schema: Json, depth: int) -> int:
        if not isinstance(schema, dict) or id(schema) in self._open:
            return 1
        if depth > MAX_SCHEMA_DEPTH:
            return MAX_BRANCHES + 1
        branches = self._counted.get(id(schema))
        if branches is None:
            self._open.add(id(schema))
            branches = 1 + sum(self._count(inner, depth + 1) for inner in self._tried(schema))
            self._open.discard(id(schema))
            self._counted[id(schema)] = branches
        return branches

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
    node = root
    for part in reference[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node
