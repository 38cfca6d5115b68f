"""Tell a model in words which JSON it must answer: for targets that cannot be held to a schema."""

from __future__ import annotations

import json
from typing import Any

from bardo.structured.bounds import resolve

_DEEPEST = 6
_OF_TYPE: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 1,
    "number": 1.5,
    "string": "text",
    "array": [],
    "object": {},
}


def guidance(schema: Any, *, example: bool = False) -> str:
    """Return an instruction that holds the schema, and an example where wanted. It says "JSON", which some providers demand."""
    said = json.dumps(schema, ensure_ascii=False, indent=2)
    told = f"Answer with one JSON value that conforms to this JSON Schema:\n\n```json\n{said}\n```\n"
    if example:
        told += f"\nAn example of its form, not of its content:\n\n```json\n{json.dumps(example_of(schema), ensure_ascii=False)}\n```\n"
    return told + "\nWrite only that JSON: no text before or after it, and no code fence."


def tool_guidance(name: str) -> str:
    """Return an instruction to give the answer by calling a tool, for targets that cannot be made to call it."""
    return f"Give your final answer only by calling the tool `{name}`, with all of its required arguments."


def example_of(schema: Any) -> Any:
    """Return a small value of a schema's form. It shows names and types; rules about values may not hold."""
    return _example(schema, schema, 0)


def _example(schema: Any, root: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    for word in ("examples", "enum"):
        if isinstance(schema.get(word), list) and schema[word]:
            return schema[word][0]
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("$ref"), str):
        return _example(resolve(root, schema["$ref"]), root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(word), list) and schema[word] and "properties" not in schema:
            return _example(schema[word][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: dict[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return {name: _example(one, root, depth + 1) for name, one in schema["properties"].items()}
    if kind == "array" and isinstance(schema.get("items"), dict):
        return [_example(schema["items"], root, depth + 1)]
    return _OF_TYPE.get(str(kind))
