"""Judge a value by the caller's own JSON Schema: all of draft 2020-12, nothing fetched, bounded work.

Compiling a schema costs about sixty times as much as one judgement, so compiled ones are kept, by what they say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from threading import Lock
from typing import Any

import msgspec

from bardo.structured.bounds import MAX_SCHEMA_BYTES, check_schema
from bardo.structured.extraction import Failure, Json, JsonSchema, pointer
from bardo.values.errors import InvalidRequest

MAX_FAILURES = 5
_KEPT_SCHEMAS = 256
_MAX_MESSAGE = 300
# A pattern that needs more steps than this on one string is treated as not matching.
_BACKTRACK_LIMIT = 100_000


class Checker:
    """One compiled schema. It may be shared between threads: nothing in it changes."""

    __slots__ = ("_validator", "schema")

    def __init__(self, schema: JsonSchema) -> None:
        """Compile a schema. Raises InvalidRequest (`param` is "schema") where it is none, is too large, or refers to another document."""
        check_schema(schema)
        self.schema = schema
        self._validator = _compiled(schema)

    def accepts(self, value: Json) -> bool:
        """Return whether a value conforms."""
        try:
            return bool(self._validator.is_valid(value))
        except (ValueError, RecursionError):
            return False

    def failures(self, value: Json, *, limit: int = MAX_FAILURES) -> tuple[Failure, ...]:
        """Return the first places where a value breaks the schema; none where it conforms."""
        try:
            found = tuple(_failure(error) for error in islice(self._validator.iter_errors(value), limit))
        except (ValueError, RecursionError) as problem:
            return (Failure(path="", message=f"cannot be judged: {str(problem)[:_MAX_MESSAGE]}"),)
        return found


def checker(schema: JsonSchema | Checker) -> Checker:
    """Return the compiled form of a schema, from memory where the same schema was met before.

    Whoever judges many answers by one schema keeps the Checker: finding it again costs as much as writing the schema once.
    """
    if isinstance(schema, Checker):
        return schema
    key = _written(schema)
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
            return found
    # Compiled from what was written, so that a caller who changes its schema afterwards does not change ours.
    made = Checker(msgspec.json.decode(key))
    with _lock:
        _kept[key] = made
        while len(_kept) > _KEPT_SCHEMAS:
            _kept.popitem(last=False)
    return made


_kept: OrderedDict[bytes, Checker] = OrderedDict()
_lock = Lock()


def _written(schema: object) -> bytes:
    if not isinstance(schema, Mapping | bool):
        raise _not_a_schema(f"a schema is an object or a boolean, not {type(schema).__name__}")
    try:
        written = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError) as problem:
        raise _not_a_schema(f"the schema cannot be written as JSON: {str(problem)[:_MAX_MESSAGE]}") from problem
    if len(written) > MAX_SCHEMA_BYTES:
        raise _not_a_schema(f"the schema takes {len(written):,} bytes, more than {MAX_SCHEMA_BYTES:,}")
    return written


def _compiled(schema: JsonSchema) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            # Its own retrievers would read URLs and files that a caller's schema names.
            retriever=_refuse,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT, size_limit=1 << 20),
        )
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError) as problem:
        # A refused reference is named twice before the reason comes.
        said = str(getattr(problem, "message", "") or problem)[: 3 * _MAX_MESSAGE]
        where = pointer(list(getattr(problem, "instance_path", ())))
        raise _not_a_schema(f"the schema is not a JSON Schema{f' at {where}' if where else ''}: {said}") from problem


def _refuse(uri: str) -> Json:
    raise LookupError(f"{uri} is another document, and schemas are not fetched")


def _not_a_schema(message: str) -> InvalidRequest:
    hint = "send one self-contained JSON Schema (draft 2020-12), with every $ref pointing into its own $defs"
    return InvalidRequest(message, hint=hint, param="schema")


def _failure(error: Any) -> Failure:
    message = str(error.message)
    if len(message) > _MAX_MESSAGE:
        message = message[: _MAX_MESSAGE // 2] + " … " + message[-_MAX_MESSAGE // 2 :]
    return Failure(path=pointer(error.instance_path), message=message, keyword=error.kind.name)
