"""Judge a value by the caller's own JSON Schema, and write the message that asks again after an answer that does not conform.

All of draft 2020-12 is known, nothing is fetched, work is bounded. Compiling a schema costs about sixty times as much as one judgement,
so compiled schemas are kept, by their JSON text (`reuse`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import msgspec

from bardo.reuse import CHECKERS, size_of
from bardo.structured.bounds import MAX_SCHEMA_BYTES, JudgingCost, check_schema
from bardo.structured.extraction import ErrorCode, Extraction, Failure, Json, JsonSchema, pointer
from bardo.structured.judging import Judgement, judged_apart
from bardo.values.errors import InvalidRequest

MAX_FAILURES = 5
_MAX_MESSAGE = 300
# A pattern that needs more steps than this on one string is treated as not matching.
_BACKTRACK_LIMIT = 100_000
_SIZE_LIMIT = 1 << 20
_LONG_TEXT = 50_000
# Memory of a compiled schema: times what the schema itself takes, and bytes for each sign of its patterns. Measured with jsonschema-rs 0.61
# on schemas of many properties, of many levels and of many patterns (2026-11-30): 4.2 times and 330 bytes at most.
_COMPILED_TIMES = 5
_SIGN_BYTES = 384


class Checker:
    """One compiled schema, shared between threads: `schema` may not be changed. `size` is about what it takes in memory, in bytes.

    A value that may take long is judged in a process of its own, which is slower by a millisecond: `is_quick` says whether one is not.
    Both ways of judging raise TooMuchWork of `judging` where that process takes too long.
    """

    __slots__ = ("_cost", "_looks_around", "_validator", "_written", "schema", "size")

    def __init__(self, schema: JsonSchema) -> None:
        """Compile a schema. Raises InvalidRequest (`param` is "schema") where it is none, is too large, or refers to another document."""
        signs = check_schema(schema)
        self.schema = schema
        self._validator, self._looks_around = _compiled(schema)
        self._cost = JudgingCost(schema)
        self._written = ""
        self.size = _COMPILED_TIMES * size_of(schema) + _SIGN_BYTES * signs

    def is_quick(self, value: Json) -> bool:
        """Return whether a value is judged at once, in this thread."""
        return not self._looks_around and self._cost.is_small_for(value)

    def is_quick_for_text(self, text: str) -> bool:
        """Return whether the value of a JSON text is read and judged at once; a long or difficult one belongs in a thread."""
        return not self._looks_around and len(text) <= _LONG_TEXT and self._cost.is_small_for_text(text)

    def accepts(self, value: Json) -> bool:
        """Return whether a value conforms."""
        if not self.is_quick(value):
            return self._judged_apart(value, 0)[0]
        try:
            return bool(self._validator.is_valid(value))
        except (ValueError, RecursionError):
            return False

    def failures(self, value: Json, *, limit: int = MAX_FAILURES) -> tuple[Failure, ...]:
        """Return the first places where a value breaks the schema, or none if it conforms."""
        if not self.is_quick(value):
            told = self._judged_apart(value, limit)[1]
            return tuple(Failure(path=pointer(path), message=_short(text), keyword=name) for path, text, name in told)
        try:
            failures = tuple(_failure(error) for error in islice(self._validator.iter_errors(value), limit))
        except (ValueError, RecursionError) as problem:
            return (Failure(path="", message=f"cannot be judged: {str(problem)[:_MAX_MESSAGE]}"),)
        return failures

    def _judged_apart(self, value: Json, limit: int) -> Judgement:
        self._written = self._written or msgspec.json.encode(self.schema).decode()
        try:
            return judged_apart(
                self._written, value, limit=limit, backtrack_limit=_BACKTRACK_LIMIT, size_limit=_SIZE_LIMIT
            )
        except (ValueError, TypeError, RecursionError) as problem:
            return False, [[[], f"cannot be judged: {str(problem)[:_MAX_MESSAGE]}", ""]]


def checker(schema: JsonSchema | Checker) -> Checker:
    """Return the compiled form of a schema, from memory where the same schema was met before.

    It is found by its JSON text, so that a caller's schema may change between two calls: that costs as much as writing it once.
    """
    if isinstance(schema, Checker):
        return schema
    if not isinstance(schema, Mapping | bool):
        raise _not_a_schema(f"a schema is an object or a boolean, not {type(schema).__name__}")
    try:
        written = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError) as problem:
        raise _not_a_schema(f"the schema cannot be written as JSON: {str(problem)[:_MAX_MESSAGE]}") from problem
    if len(written) > MAX_SCHEMA_BYTES:
        raise _not_a_schema(f"the schema takes {len(written):,} bytes, more than {MAX_SCHEMA_BYTES:,}")
    key = written
    # Compiled from what was written, so that a caller who changes its schema afterwards does not change ours.
    made: Checker = CHECKERS.of(key, lambda: Checker(msgspec.json.decode(key)), lambda checker: checker.size + len(key))
    return made


def _compiled(schema: JsonSchema) -> tuple[Any, bool]:
    """Return what judges by a schema, and whether its patterns look around or back: then no bound holds for their time."""
    import jsonschema_rs

    linear = jsonschema_rs.RegexOptions(size_limit=_SIZE_LIMIT)
    looking = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT, size_limit=_SIZE_LIMIT)
    try:
        return _validator(schema, linear), False
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError):
        # The patterns may look around, or the schema is none: the other way says so.
        pass
    try:
        return _validator(schema, looking), True
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError) as problem:
        # A refused reference is named twice before the reason comes.
        reason = str(getattr(problem, "message", "") or problem)[: 3 * _MAX_MESSAGE]
        where = pointer(list(getattr(problem, "instance_path", ())))
        raise _not_a_schema(f"the schema is not a JSON Schema{f' at {where}' if where else ''}: {reason}") from problem


def pattern_of(pattern: str) -> Callable[[str], bool]:
    """Return what says whether a text fits a pattern, in linear time. Raises ValueError for one that looks around, or is none."""
    import jsonschema_rs

    linear = jsonschema_rs.RegexOptions(size_limit=_SIZE_LIMIT)
    valid: Callable[[str], bool] = jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=linear).is_valid
    return valid


def _validator(schema: JsonSchema, patterns: Any) -> Any:
    import jsonschema_rs

    # Its own retrievers would read URLs and files that a caller's schema names.
    return jsonschema_rs.validator_for(schema, validate_formats=True, retriever=_refuse, pattern_options=patterns)


def _refuse(uri: str) -> Json:
    raise LookupError(f"{uri} is another document, and schemas are not fetched")


def _not_a_schema(message: str) -> InvalidRequest:
    hint = "send one self-contained JSON Schema (draft 2020-12), with every $ref pointing into its own $defs"
    return InvalidRequest(message, hint=hint, param="schema")


def _failure(error: Any) -> Failure:
    return Failure(path=pointer(error.instance_path), message=_short(str(error.message)), keyword=error.kind.name)


def _short(message: str) -> str:
    if len(message) <= _MAX_MESSAGE:
        return message
    return message[: _MAX_MESSAGE // 2] + " … " + message[-_MAX_MESSAGE // 2 :]


_RETRYABLE: frozenset[ErrorCode] = frozenset({"no_json", "invalid", "truncated", "too_complex"})
_ASKED_AGAIN = {
    "no_json": "Your last answer held no JSON.",
    "truncated": "Your last answer ended before its JSON was complete. Say the same more briefly.",
    "too_complex": "Your last answer held too many values to find the right one.",
    "invalid": "Your last answer did not conform to the JSON Schema.",
}
_MAX_SCHEMA = 20_000


def worth_retrying(extraction: Extraction) -> bool:
    """Return whether another try may help: a refusal stays one."""
    return extraction.error in _RETRYABLE


def retry_message(
    extraction: Extraction, schema: JsonSchema | Checker, *, issues: tuple[str, ...] = (), with_schema: bool = True
) -> str:
    """Return the user message that asks again, naming each failure and its path.

    `issues` are what a type's own `validate` found in an answer that conforms. `with_schema` repeats the schema, for modes in which the
    provider does not enforce it. The retry belongs in the same mode as the first try.
    """
    lines = [
        _ASKED_AGAIN.get(
            extraction.error or "", "Your last answer conforms to the JSON Schema, but its content makes no sense."
        )
    ]
    lines += [f"- {failure}" for failure in extraction.failures]
    lines += [f"- {issue}" for issue in issues]
    written = msgspec.json.encode(checker(schema).schema).decode()
    if not with_schema or len(written) > _MAX_SCHEMA:
        again = "Answer again, with the whole JSON value and nothing else."
    else:
        again = f"Answer again, with the whole JSON value and nothing else, conforming to this JSON Schema:\n{written}"
    lines.append(again)
    return "\n".join(lines)
