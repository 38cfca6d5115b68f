"""Turn what a caller calls a type into a JSON Schema, and what a model answers into a value of it.

Taken are pydantic models, msgspec Structs, dataclasses, TypedDicts, StructuredOutput classes, a raw JSON Schema, and whatever msgspec or
pydantic make of those: unions, literals, enums, lists and maps. pydantic is imported only where the type holds a pydantic model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, NamedTuple, cast, get_args, get_type_hints, is_typeddict

import msgspec

from bardo.structured.extraction import Json, JsonSchema, UnusableAnswer
from bardo.structured.validation import checker
from bardo.values.errors import InvalidRequest

_HINT = "give a pydantic model, a msgspec Struct, a dataclass, a TypedDict, a StructuredOutput class or a JSON Schema"


class WrongShape(ValueError):
    """An answer that is no value of the type; `path` is a JSON Pointer into the answer."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path or 'the answer'}: {message}")
        self.message = message
        self.path = path


class TypedSchema(NamedTuple):
    """A schema, and what makes a value of the caller's type of an answer. `decode` raises WrongShape."""

    schema: JsonSchema
    decode: Callable[[Json], Any]


def schema_of(wanted: Any) -> TypedSchema:
    """Return the JSON Schema of a type and its decoder; a schema stands for itself, and its answers stay plain values.

    Raises InvalidRequest for what is no type bardo knows, or no JSON Schema: the message says where.
    """
    if isinstance(wanted, Mapping | bool):
        return TypedSchema(checker(wanted if isinstance(wanted, bool) else dict(wanted)).schema, _as_it_is)
    if callable(getattr(wanted, "from_json", None)) and callable(getattr(wanted, "schema", None)):
        return _own(wanted)
    if _holds_pydantic(wanted, set()):
        return _of_pydantic(wanted)
    return _of_msgspec(wanted)


def _as_it_is(value: Json) -> Json:
    return value


def _own(wanted: Any) -> TypedSchema:
    """Return what a StructuredOutput class says of itself."""
    said = wanted.schema()
    schema = said if isinstance(said, Mapping | bool) else getattr(said, "schema", said)
    if not isinstance(schema, Mapping | bool):
        raise InvalidRequest(
            f"{_named(wanted)}.schema() returned {type(schema).__name__}, not a JSON Schema", hint=_HINT, param="schema"
        )
    checked = checker(cast("JsonSchema", schema)).schema

    def decode(value: Json) -> Any:
        try:
            return wanted.from_json(msgspec.json.encode(value).decode())
        except UnusableAnswer as problem:
            raise WrongShape(problem.message, path=problem.extraction.path) from problem
        except (ValueError, TypeError, KeyError) as problem:
            raise _wrong(str(problem)) from problem

    return TypedSchema(checked, decode)


def _of_msgspec(wanted: Any) -> TypedSchema:
    try:
        schema = msgspec.json.schema(wanted)
        msgspec.json.Decoder(wanted)
    except (TypeError, NameError) as problem:
        hint = (
            "give the members of a union a tag, or use a pydantic model" if "union" in str(problem).lower() else _HINT
        )
        raise InvalidRequest(f"{_named(wanted)} has no JSON Schema: {problem}", hint=hint, param="schema") from problem

    def decode(value: Json) -> Any:
        try:
            return msgspec.convert(value, wanted)
        except msgspec.ValidationError as problem:
            raise _wrong(str(problem)) from problem

    return TypedSchema(checker(schema).schema, decode)


def _of_pydantic(wanted: Any) -> TypedSchema:
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter = TypeAdapter(wanted)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError) as problem:
        raise InvalidRequest(f"{_named(wanted)} has no JSON Schema: {problem}", hint=_HINT, param="schema") from problem

    def decode(value: Json) -> Any:
        try:
            # From JSON text, as pydantic reads dates, bytes and sets only there from what JSON has.
            return adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            path = "".join(f"/{_escaped(str(part))}" for part in first["loc"])
            raise WrongShape(first["msg"], path=path) from problem

    return TypedSchema(checker(schema).schema, decode)


def _holds_pydantic(wanted: Any, seen: set[int]) -> bool:
    """Return whether a pydantic class stands anywhere in a type. Where pydantic was never imported, none can."""
    if "pydantic" not in sys.modules or id(wanted) in seen:
        return False
    seen.add(id(wanted))
    if isinstance(wanted, type) and hasattr(wanted, "__pydantic_core_schema__"):
        return True
    return any(_holds_pydantic(inner, seen) for inner in (*get_args(wanted), *_fields(wanted)))


def _fields(wanted: Any) -> tuple[Any, ...]:
    if not (
        isinstance(wanted, type)
        and (is_dataclass(wanted) or is_typeddict(wanted) or issubclass(wanted, msgspec.Struct))
    ):
        return ()
    try:
        return tuple(get_type_hints(wanted, include_extras=True).values())
    except (NameError, TypeError):
        return ()


_AT = re.compile(r"^(?P<message>.*) - at `(?P<path>.*)`$", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")


def _wrong(said: str) -> WrongShape:
    """Return the error for msgspec's words, which end with a path such as `$.a[0]`; `...` stands for any key of a map."""
    found = _AT.match(said)
    if found is None:
        return WrongShape(said)
    steps = _STEP.findall(found["path"])
    path = "".join("/" + _escaped(name or ("*" if index == "..." else index)) for name, index in steps)
    return WrongShape(found["message"], path=path)


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _named(wanted: Any) -> str:
    return getattr(wanted, "__name__", None) or repr(wanted)[:100]
