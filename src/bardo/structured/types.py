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


def schema_of(answer_type: Any) -> TypedSchema:
    """Return the JSON Schema of a type and its decoder; a schema stands for itself, and its answers stay plain values.

    Raises InvalidRequest for a value that is neither a type bardo knows nor a JSON Schema: the message says where.
    """
    if isinstance(answer_type, Mapping | bool):
        return TypedSchema(
            checker(answer_type if isinstance(answer_type, bool) else dict(answer_type)).schema, _as_it_is
        )
    if callable(getattr(answer_type, "from_json", None)) and callable(getattr(answer_type, "schema", None)):
        return _own_schema(answer_type)
    if _holds_pydantic(answer_type, set()):
        return _of_pydantic(answer_type)
    return _of_msgspec(answer_type)


def _as_it_is(value: Json) -> Json:
    return value


def _own_schema(answer_type: Any) -> TypedSchema:
    """Return what a StructuredOutput class says of itself."""
    message = answer_type.schema()
    schema = message if isinstance(message, Mapping | bool) else getattr(message, "schema", message)
    if not isinstance(schema, Mapping | bool):
        raise InvalidRequest(
            f"{_type_name(answer_type)}.schema() returned {type(schema).__name__}, not a JSON Schema",
            hint=_HINT,
            param="schema",
        )
    checked = checker(cast("JsonSchema", schema)).schema

    def decode(value: Json) -> Any:
        try:
            return answer_type.from_json(msgspec.json.encode(value).decode())
        except UnusableAnswer as problem:
            raise WrongShape(problem.message, path=problem.extraction.path) from problem
        except (ValueError, TypeError, KeyError) as problem:
            raise _wrong(str(problem)) from problem

    return TypedSchema(checked, decode)


def _of_msgspec(answer_type: Any) -> TypedSchema:
    try:
        schema = msgspec.json.schema(answer_type)
        msgspec.json.Decoder(answer_type)
    except (TypeError, NameError) as problem:
        hint = (
            "give the members of a union a tag, or use a pydantic model" if "union" in str(problem).lower() else _HINT
        )
        raise InvalidRequest(
            f"{_type_name(answer_type)} has no JSON Schema: {problem}", hint=hint, param="schema"
        ) from problem

    def decode(value: Json) -> Any:
        try:
            return msgspec.convert(value, answer_type)
        except msgspec.ValidationError as problem:
            raise _wrong(str(problem)) from problem

    return TypedSchema(checker(schema).schema, decode)


def _of_pydantic(answer_type: Any) -> TypedSchema:
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter = TypeAdapter(answer_type)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError) as problem:
        raise InvalidRequest(
            f"{_type_name(answer_type)} has no JSON Schema: {problem}", hint=_HINT, param="schema"
        ) from problem

    def decode(value: Json) -> Any:
        try:
            # From JSON text, as pydantic reads dates, bytes and sets only there from what JSON has.
            return adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            path = "".join(f"/{_escaped(str(part))}" for part in first["loc"])
            raise WrongShape(first["msg"], path=path) from problem

    return TypedSchema(checker(schema).schema, decode)


def _holds_pydantic(answer_type: Any, seen: set[int]) -> bool:
    """Return whether a pydantic class stands anywhere in a type. Where pydantic was never imported, none can."""
    if "pydantic" not in sys.modules or id(answer_type) in seen:
        return False
    seen.add(id(answer_type))
    if isinstance(answer_type, type) and hasattr(answer_type, "__pydantic_core_schema__"):
        return True
    return any(_holds_pydantic(inner, seen) for inner in (*get_args(answer_type), *_fields(answer_type)))


def _fields(answer_type: Any) -> tuple[Any, ...]:
    if not (
        isinstance(answer_type, type)
        and (is_dataclass(answer_type) or is_typeddict(answer_type) or issubclass(answer_type, msgspec.Struct))
    ):
        return ()
    try:
        return tuple(get_type_hints(answer_type, include_extras=True).values())
    except (NameError, TypeError):
        return ()


_AT = re.compile(r"^(?P<message>.*) - at `(?P<path>[^`]*)`$", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")


def _wrong(message: str) -> WrongShape:
    """Return the error for msgspec's words, which end with a path such as `$.a[0]`; `...` stands for any key of a map."""
    match = _AT.match(message)
    if match is None:
        return WrongShape(message)
    steps = _STEP.findall(match["path"])
    path = "".join("/" + _escaped(name or ("*" if index == "..." else index)) for name, index in steps)
    return WrongShape(match["message"], path=path)


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _type_name(answer_type: Any) -> str:
    return getattr(answer_type, "__name__", None) or repr(answer_type)[:100]
