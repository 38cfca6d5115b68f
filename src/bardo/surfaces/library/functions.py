"""Python functions as tools: the name, what the docstring says, and a schema made of the annotations."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from bardo.structured.types import schema_of
from bardo.values.errors import InvalidRequest
from bardo.values.request import Tool

# `name: what it is` as Google's style writes it, with a type or not, and `:param name:` of Sphinx.
_LINE = re.compile(r"^\s*(?::param\s+(?:\S+\s+)?)?(?P<name>\w+)(?:\s*\([^)]*\))?\s*:\s+(?P<text>\S.*)$")


def tool_of(function: Callable[..., Any]) -> Tool:
    """Return the tool that a function is: each parameter a property, those without a default required.

    A parameter without an annotation may be anything. `Annotated[int, "what it is"]`, or a line `name: what it is` in the docstring,
    describes one. The model's call is not made: its arguments are in `Response.tool_calls`. Raises InvalidRequest, naming the function,
    for a parameter whose type has no JSON Schema, and for `*args` and parameters that have no name.
    """
    given = _unwrapped(function)
    name = getattr(given, "__name__", "") or type(given).__name__
    docstring = inspect.getdoc(given) or ""
    parameters = _parameters(function, name)
    described = _described(docstring, inspect.signature(given).parameters)
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for parameter in parameters:
        schema = _schema(_hints(function, name).get(parameter.name, Any), f"{name}({parameter.name})", definitions)
        text = schema.pop("description", "") or described.get(parameter.name, "")
        default = {} if parameter.default is parameter.empty else _default(parameter.default)
        properties[parameter.name] = {**schema, **({"description": text} if text else {}), **default}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    whole["additionalProperties"] = False
    if definitions:
        whole["$defs"] = definitions
    return Tool(name=name, description=_summary(docstring, described), schema=whole)


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a `functools.partial` calls, which has the name, the docstring and the annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as problem:
        raise InvalidRequest(f"the tool {name} has no signature: {problem}", param="tools") from problem
    bound = function.keywords if isinstance(function, functools.partial) else {}
    # What a partial holds already is the caller's to say.
    found = [parameter for parameter in found if parameter.name not in bound]
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            hint = "a model gives arguments by their names"
            raise InvalidRequest(f"the tool {name} takes {parameter} without a name", hint=hint, param="tools")
    return [parameter for parameter in found if parameter.kind is not parameter.VAR_KEYWORD]


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    function = _unwrapped(function)
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(called, include_extras=True)
    except (NameError, TypeError) as problem:
        raise InvalidRequest(f"the tool {name} has an annotation without a type: {problem}", param="tools") from problem


def _schema(hint: Any, place: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one parameter; what it refers to goes into `definitions`."""
    kind, text = _unwrap_annotated(hint)
    if kind is Any:
        return {"description": text} if text else {}
    try:
        schema = schema_of(kind).schema
    except InvalidRequest as problem:
        raise InvalidRequest(f"{place}: {problem.message}", hint=problem.hint, param="tools") from problem
    found = dict(schema) if isinstance(schema, dict) else {}
    definitions.update(found.pop("$defs", {}))
    return {**found, **({"description": text} if text else {})}


def _unwrap_annotated(hint: Any) -> tuple[Any, str]:
    """Return a type, and the words that stand beside it in `Annotated`."""
    if get_origin(hint) is not Annotated:
        return hint, ""
    kind, *extras = get_args(hint)
    words = [extra for extra in extras if isinstance(extra, str)]
    others = [extra for extra in extras if not isinstance(extra, str)]
    for extra in others:
        kind = Annotated[kind, extra]
    return kind, " ".join(words)


def _default(value: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.to_builtins(value)}
    except TypeError:
        return {}


def _summary(docstring: str, described: Mapping[str, str]) -> str:
    """Return the docstring without the lines that describe parameters."""
    kept = [
        line for line in docstring.splitlines() if not ((found := _LINE.match(line)) and found["name"] in described)
    ]
    text = "\n".join(line for line in kept if line.strip().lower() not in ("args:", "arguments:", "parameters:"))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _described(docstring: str, names: Collection[str]) -> dict[str, str]:
    found = (_LINE.match(line) for line in docstring.splitlines())
    return {match["name"]: match["text"].strip() for match in found if match and match["name"] in names}
