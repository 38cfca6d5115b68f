"""A client's `tools` and `toolConfig`.

Google's schema dialect (upper-case types, `nullable`) as JSON Schema.

JSON Schemas whose references stand alone, as Gemini wants them.

"$ref was set alongside unsupported fields. If a schema node has $ref set, then only description and default can be set alongside it"
(answers of Google to users' tools, 2026). What a reference points to is written in its place, with what stood beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from bardo.dialects.gemini.wire import NAME, camel, split_fields
from bardo.dialects.shared.json_values import optional, required, take
from bardo.dialects.shared.repeated_tools import REPEATED_TOOLS
from bardo.dialects.shared.tools import with_allowed_tools
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request, Tool, ToolChoice

_NODES = ("items", "anyOf", "properties")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


def json_schema(schema: Any) -> Any:
    """Return a schema in JSON Schema's words; one that already is comes back equal. Raises RecursionError on absurd nesting."""
    if not isinstance(schema, dict):
        return schema
    words = {name if name.startswith("$") else camel(name): value for name, value in schema.items()}
    nullable = words.pop("nullable", None) is True
    found = {_renamed(name): _converted(name, value) for name, value in words.items()}
    return _with_null(found) if nullable else found


def declared_parameters(body: dict[str, Any]) -> Iterator[Any]:
    """Yield the `parameters` of all functions that a client's body declares."""
    for tool in _listed(body.get("tools")):
        for declared in (value for name, value in tool.items() if camel(name) == "functionDeclarations"):
            yield from (one["parameters"] for one in _listed(declared) if one.get("parameters") is not None)


def _listed(value: Any) -> list[dict[str, Any]]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def untaken_word(schema: Any, known: Collection[str]) -> str:
    """Return a word of a schema that Google's own Schema, whose fields are `known`, does not take so; empty where it takes all."""
    waiting = [schema] if known else []
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            return json.dumps(one)
        for name, value in one.items():
            word = name if name.startswith("$") else camel(name)
            if word not in known or (word == "type" and not isinstance(value, str)):
                return str(name)
            if word in _NODES and isinstance(value, (dict, list)):
                is_node = word == "items"
                waiting += [value] if is_node else value.values() if isinstance(value, dict) else value
    return ""


def _renamed(name: str) -> str:
    return {"defs": "$defs", "ref": "$ref"}.get(name, name)


def _converted(name: str, value: Any) -> Any:
    if name in _CONVERT:
        return _CONVERT[name](value)
    if name in _COUNTS and isinstance(value, str) and value.isdecimal():
        # Google writes 64-bit numbers as strings.
        return int(value)
    return value


def _lower(value: Any) -> Any:
    if isinstance(value, list):
        return [_lower(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def _convert_items(value: Any) -> Any:
    return [json_schema(one) for one in value] if isinstance(value, list) else json_schema(value)


def _convert_members(value: Any) -> Any:
    return {name: json_schema(one) for name, one in value.items()} if isinstance(value, dict) else value


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "type": _lower,
    "items": _convert_items,
    "prefixItems": _convert_items,
    "anyOf": _convert_items,
    "oneOf": _convert_items,
    "allOf": _convert_items,
    "additionalProperties": json_schema,
    "properties": _convert_members,
    "defs": _convert_members,
    "$defs": _convert_members,
}


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if kind is None and isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return schema


_CALLING = "toolConfig.functionCallingConfig"
_DECLARATION = ("name", "description", "parameters", "parametersJsonSchema")
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "": "auto",
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "required",
    "NONE": "none",
}


def decode_tools(value: Any) -> tuple[Tool, ...]:
    """Read function declarations, and the tools that Google itself runs as `hosted`."""
    listed: Any = take(value, (list, dict), "tools") if value is not None else []
    return REPEATED_TOOLS.read([listed] if isinstance(listed, dict) else listed, NAME, _read_tools)


def _read_tools(listed: list[Any]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for index, entry in enumerate(listed):
        at = f"tools[{index}]"
        for name, held in take(entry, dict, at).items():
            if held is None:
                continue
            if camel(name) == "functionDeclarations":
                tools += _declarations(held, f"{at}.functionDeclarations")
            else:
                tools.append(Tool(name=camel(name), hosted=True, carried=Carried(NAME, {camel(name): held})))
    return tuple(tools)


def decode_tool_choice(value: Any) -> tuple[ToolChoice | None, dict[str, Any]]:
    """Return the choice, and what of `toolConfig` bardo has no word for, in its own shape."""
    if value is None:
        return None, {}
    known, others = split_fields(take(value, dict, "toolConfig"), ("functionCallingConfig",))
    if "functionCallingConfig" not in known:
        return None, others
    names = ("mode", "allowedFunctionNames")
    fields, rest = split_fields(take(known["functionCallingConfig"], dict, _CALLING), names)
    mode = (optional(fields, "mode", str, f"{_CALLING}.") or "").upper()
    if mode not in _MODES:
        raise InvalidRequest(
            f"unknown function calling mode {mode!r:.60}", hint="AUTO, ANY or NONE", param=f"{_CALLING}.mode"
        )
    allowed = _allowed(fields)
    if mode == "ANY" and len(allowed) == 1:
        choice = ToolChoice(mode="named", name=allowed[0])
    else:
        choice = ToolChoice(mode=_MODES[mode])
        rest |= {"allowedFunctionNames": allowed} if allowed else {}
        rest |= {"mode": mode} if mode == "VALIDATED" else {}
    return choice, others | ({"functionCallingConfig": rest} if rest else {})


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    config = request.extra.get("toolConfig")
    calling = config.get("functionCallingConfig") if isinstance(config, dict) else None
    names = calling.get("allowedFunctionNames") if isinstance(calling, dict) else None
    if not names or calling is None or config is None:
        return request
    required = request.tool_choice is not None and request.tool_choice.mode == "required"
    plain = with_allowed_tools(request, names, required=required)
    if plain is request:
        return request
    rest = {name: value for name, value in calling.items() if name != "allowedFunctionNames"}
    others = {name: value for name, value in config.items() if name != "functionCallingConfig"}
    kept = {**others, **({"functionCallingConfig": rest} if rest else {})}
    extra = {name: value for name, value in request.extra.items() if name != "toolConfig"}
    return msgspec.structs.replace(plain, extra={**extra, **({"toolConfig": kept} if kept else {})})


def _allowed(fields: dict[str, Any]) -> list[str]:
    names = optional(fields, "allowedFunctionNames", list, f"{_CALLING}.") or []
    return [take(name, str, f"{_CALLING}.allowedFunctionNames[{index}]") for index, name in enumerate(names)]


def _declarations(value: Any, at: str) -> list[Tool]:
    listed = take(value, (list, dict), at)
    entries = [listed] if isinstance(listed, dict) else listed
    return [_declaration(take(one, dict, f"{at}[{index}]"), f"{at}[{index}].") for index, one in enumerate(entries)]


def _declaration(value: dict[str, Any], at: str) -> Tool:
    fields, others = split_fields(value, _DECLARATION)
    schema = optional(fields, "parametersJsonSchema", dict, at)
    parameters = optional(fields, "parameters", dict, at)
    if schema is None and parameters is not None:
        schema = json_schema(parameters)
        if schema != parameters:
            # Older models know only Google's own schema words: an unchanged tool goes back in them.
            others["parameters"] = parameters
    return Tool(
        name=required(fields, "name", str, at),
        description=optional(fields, "description", str, at) or "",
        schema=schema,
        carried=Carried(NAME, others) if others else None,
    )


Schema = dict[str, Any]

_BESIDE = frozenset({"$ref", "description", "default"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_SINGLE = frozenset(
    ["items", "not", "if", "then", "else", "contains", "contentSchema", "propertyNames", "additionalProperties"]
) | {"unevaluatedItems", "unevaluatedProperties", "additionalItems"}
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"}) | _DEFINITIONS
_ANNOTATIONS = frozenset(
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id"]
) | {"$anchor", *_DEFINITIONS}
# Keywords that are judged together: one of them says something else beside another.
_TOGETHER = {
    **dict.fromkeys(
        ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"), "additionalProperties"
    ),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "unevaluatedItems"), "items"),
    **dict.fromkeys(("contains", "minContains", "maxContains"), "contains"),
    **dict.fromkeys(("if", "then", "else"), "if"),
}
_MOST_COPIED = 262_144
"""How many bytes of JSON are written a second time, in places that refer to them: definitions that refer to each other twice double each
time."""


def with_lone_references(schema: Schema, lose: Callable[[Iterable[str]], None]) -> Schema:
    """Return a schema in which nothing but a description and a default stands beside a reference.

    `lose` is told the keywords that are left out beside one: where it is recursive, leads nowhere, or points to a schema that has the
    same keyword with another value.
    """
    if b'"$ref"' not in msgspec.json.encode(schema):
        return schema
    return _ReferenceInliner(schema, lose).inlined()


class _ReferenceInliner:
    """Writes what references point to in their place, in one schema."""

    def __init__(self, root: Schema, lose: Callable[[Iterable[str]], None]) -> None:
        self._root = root
        self._lose = lose
        self._sizes: dict[str, int] = {}
        self._copied = 0

    def inlined(self) -> Schema:
        """Return the schema with nothing but a description and a default beside a reference. What is given is not changed."""
        root, opened = self._alone(self._root, frozenset({"#"}), _BESIDE - {"description", "default"})
        made = {"": root}
        waiting: list[tuple[Any, Any, frozenset[str]]] = [(made, "", opened)]
        while waiting:
            holder, key, opened = waiting.pop()
            if not isinstance(holder[key], dict):
                continue
            node, opened = self._alone(holder[key], opened, _BESIDE)
            holder[key] = node = {**node}
            for keyword, value in node.items():
                if keyword in _LISTED and isinstance(value, list):
                    node[keyword] = copied = [*value]
                    waiting += [(copied, index, opened) for index in range(len(copied))]
                elif keyword in _NAMED and isinstance(value, dict):
                    node[keyword] = named = {**value}
                    # What is defined here is not inside of what was opened.
                    inside = frozenset({"#"}) if keyword in _DEFINITIONS else opened
                    waiting += [(named, name, inside) for name in named]
                elif keyword in _SINGLE:
                    waiting.append((node, keyword, opened))
        return made[""]

    def _alone(self, node: Schema, opened: frozenset[str], taken: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """Return a schema whose reference has only what is `taken` beside it, and the references that were opened on the way to it."""
        while isinstance(reference := node.get("$ref"), str) and not node.keys() <= taken:
            target = None if reference in opened else _target(self._root, reference)
            beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            if target is None or _contradict(target, beside) or not self._has_room(reference, target):
                if dropped := node.keys() - _BESIDE - _DEFINITIONS:
                    self._lose(sorted(dropped))
                return {keyword: value for keyword, value in node.items() if keyword not in dropped}, opened
            node, opened = {**target, **beside}, opened | {reference}
        return node, opened

    def _has_room(self, reference: str, target: Schema) -> bool:
        if reference not in self._sizes:
            self._sizes[reference] = len(msgspec.json.encode(target))
        self._copied += self._sizes[reference]
        return self._copied <= _MOST_COPIED


def _contradict(target: Schema, beside: Schema) -> bool:
    """Whether two schemas cannot be written as one with the keywords of both."""
    groups: dict[str, list[str]] = {}
    for keyword in target.keys() - _ANNOTATIONS:
        groups.setdefault(_TOGETHER.get(keyword, keyword), []).append(keyword)
    for keyword in beside.keys() - _ANNOTATIONS:
        met = groups.get(_TOGETHER.get(keyword, keyword), [])
        if met and (met != [keyword] or target[keyword] != beside[keyword]):
            return True
    return False


def _target(root: Schema, reference: str) -> Schema | None:
    """Return the schema that a JSON Pointer into the same document names; None for anything else."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return None
    return found if isinstance(found, dict) else None
