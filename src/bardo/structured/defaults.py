"""The last step for an answer that still breaks its schema: bad members take the schema's own defaults, bad optional ones are dropped.

Nothing is invented: a member without a valid default that must be there stays an error, with its path. What was done is on the result.
"""

from __future__ import annotations

from copy import deepcopy

import msgspec

from bardo.structured.coercion import followed, items_of, members_of
from bardo.structured.extraction import Extraction, Failure, Json, JsonSchema, pointer
from bardo.structured.validation import Checker, checker

_MAX_STEPS = 200

Path = tuple[str | int, ...]


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
        known = members_of(self.judge.schema, self._schema_at(path))[0]
        unknown = [key for key in target if key not in known]
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
                known, others = members_of(root, schema)
                schema = followed(root, known.get(step, others))
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
