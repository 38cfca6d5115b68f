"""Requests whose shapes vary as those of real programs do: a conversation is drawn from a seed, and written in a client's dialect.

Drawn are orders of roles, names of tools, kinds of media, nulls, duplicates, empty texts, unknown blocks, keys of properties, roots of
schemas, and histories in which calls and results do not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Body = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
JPEG = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8="
MEDIA = [("image/png", PNG), ("image/jpg", JPEG), ("image/jpeg", PNG), ("application/octet-stream", PNG), ("", JPEG)]
NAMES = [
    "f",
    "get.weather",
    "my tool",
    "mcp__server__" + "x" * 70,
    "größe",
    "9lives",
    "-dash",
    "a:b",
    "functions.find:0",
    "_x",
    "a/b",
]
KEYS = ["a", "$filter", "my key", "ключ", "a.b", "k" * 80, "@id", "type", "properties"]
IDS = ["call_1", "functions.find:0", "toolu_01AbC", "c" * 80, "id with space", "9a8b7c6d5", "call|x"]
TEXTS = ["Hello.", "", "   ", "Grüße 🌍", "\n", "Two\nlines"]
UNKNOWN = [
    {"type": "tool_reference", "tool_name": "f"},
    {"type": "search_result", "title": "t", "source": "https://e.org", "content": [{"type": "text", "text": "found"}]},
    {"type": "hologram", "data": "x"},
]


@dataclass
class Turn:
    """One message: what is said, calls as (id, name, arguments), results as (id, name, parts)."""

    role: str
    parts: list[Any] = field(default_factory=list)
    calls: list[tuple[str, str, Body]] = field(default_factory=list)
    results: list[tuple[str, str, list[Any]]] = field(default_factory=list)


@dataclass
class Drawn:
    """A conversation with its tools and settings."""

    turns: list[Turn]
    tools: list[tuple[str, Any]]
    stops: list[str]
    forced: str
    effort: str
    nulls: bool
    user: str
    strict: bool = False
    own_schemas: bool = False


def draw(seed: str) -> Drawn:
    """Return the conversation of a seed."""
    random = Random(seed)
    names = random.sample(NAMES, random.randint(0, 3))
    tools = [(name, _schema(random)) for name in names]
    turns: list[Turn] = []
    if random.random() < 0.5:
        turns.append(Turn("system", [_said(random, "Be brief.")]))
    for _ in range(random.randint(1, 3)):
        turns.append(Turn("user", _parts(random)))
        if random.random() < 0.6:
            turns += _round(random, names)
        elif random.random() < 0.6:
            turns.append(Turn("assistant", [_said(random, "Well.")]))
        if random.random() < 0.15:
            turns.append(Turn("system", ["From now on in French."]))
    if turns[-1].role != "user" and (not turns[-1].results or random.random() < 0.5):
        turns.append(Turn("user", ["Go on."]))
    if not any(
        turn.role == "user" and any(isinstance(one, str) and one.strip() for one in turn.parts) for turn in turns
    ):
        turns.append(Turn("user", ["Hello."]))
    if turns[-1].role != "user":
        turns.append(Turn("user", ["And?"]))
    return Drawn(
        turns=turns,
        tools=tools,
        stops=random.choice([[], [], ["a"], ["a", "b", "c", "d", "e", "f", "g"]]),
        forced=random.choice(["", "", "", "any", "one", "none"]) if tools else "",
        effort=random.choice(["", "", "low", "high"]),
        nulls=random.random() < 0.4,
        user=random.choice(["", "", "u" * 70]),
        strict=random.random() < 0.25,
        own_schemas=random.random() < 0.25,
    )


def _round(random: Random, names: list[str]) -> list[Turn]:
    """Return a turn of the model that calls tools, and what comes back, in one of the ways in which that goes wrong."""
    count = random.randint(1, 3)
    chosen = random.sample(IDS, count)
    given: list[Body] = [{}, {"a": "é"}, {"$filter": 1}]
    calls = [(one, random.choice(names or ["gone"]), random.choice(given)) for one in chosen]
    results = [(one, name, _result(random)) for one, name, _ in calls]
    match random.choice(["whole", "whole", "whole", "missing", "extra", "twice", "none", "mixed"]):
        case "missing":
            results = results[1:]
        case "extra":
            results.append(("orphan", "f", ["late"]))
        case "twice":
            results.append(results[0])
        case "none":
            results = []
        case "mixed":
            random.shuffle(results)
    spoken = [_said(random, "I look.")] if random.random() < 0.5 else []
    after = Turn("user", results=results)
    if random.random() < 0.3:
        after.parts = [_said(random, "Also this.")]
    return [Turn("assistant", spoken, calls), *([after] if results else [])]


def _said(random: Random, plain: str) -> str:
    return plain if random.random() < 0.7 else random.choice(TEXTS)


def _parts(random: Random) -> list[Any]:
    parts: list[Any] = [_said(random, "What is it?")]
    if random.random() < 0.3:
        parts.append(random.choice(MEDIA))
    if random.random() < 0.1:
        parts.append(random.choice(UNKNOWN))
    if random.random() < 0.05:
        parts = [random.choice(UNKNOWN)]
    return parts


def _result(random: Random) -> list[Any]:
    return random.choice(
        [["sunny"], [""], [], ["a", "b"], [MEDIA[0]], [random.choice(UNKNOWN)], [json.dumps({"t": 1})]]
    )


def _schema(random: Random) -> Any:
    text = {"type": "string"}
    keys = random.sample(KEYS, random.randint(0, 3))
    plain: Body = {"type": "object", "properties": dict.fromkeys(keys, text), "required": keys[:1]}
    return random.choice(
        [
            plain,
            plain,
            {},
            None,
            {"type": "object"},
            {"oneOf": [plain, {"type": "object", "properties": {"b": text}}]},
            {**plain, "anyOf": [{"required": keys[:1]}]},
            {"type": "array", "items": text},
            {"type": "string", "enum": ["x"]},
            {"$defs": {"o": plain}, "$ref": "#/$defs/o"},
            {**plain, "patternProperties": {"^x-": text}, "additionalProperties": False},
            {"type": "object", "properties": {"m": text}, "additionalProperties": {"type": "integer"}},
            {"$schema": "http://json-schema.org/draft-07/schema#", **plain, "additionalProperties": False},
            {
                "type": "object",
                "properties": {"d": {"type": "string", "format": "uri", "pattern": "(?=x)", "minLength": 1}},
            },
            {"type": ["object", "null"], "properties": {"n": {"type": ["string", "null"]}}},
            {"type": "object", "properties": {"c": {"const": 1}, "e": {"enum": [1, "a", None]}, "x": True}},
            {"type": "object", "properties": {"t": {"type": "object", "properties": {"u": {"$ref": "#"}}}}},
            {"type": "object", "properties": {"l": {"type": "array"}, "i": {"type": "array", "items": [text, text]}}},
        ]
    )


def written(client: str, drawn: Drawn, model: str) -> Body:
    """Return the body that a client of a dialect sends."""
    return _WRITERS[client](drawn, model)


def _strict(drawn: Drawn) -> Body:
    return {"strict": True} if drawn.strict else {}


def _data_url(media: tuple[str, str]) -> str:
    return f"data:{media[0]};base64,{media[1]}"


def _chat_part(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": _data_url(part)}} if isinstance(part, tuple) else part


def _chat_content(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else [_chat_part(part) for part in parts]


def _chat(drawn: Drawn, model: str) -> Body:
    messages: list[Body] = []
    for turn in drawn.turns:
        if turn.role == "assistant":
            message: Body = {"role": "assistant", "content": _chat_content(turn.parts) if turn.parts else None}
            if turn.calls:
                message["tool_calls"] = [
                    {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                    for one, name, given in turn.calls
                ]
            if drawn.nulls:
                message |= {"refusal": None, "annotations": [], "audio": None, "function_call": None}
            messages.append(message)
            continue
        messages += [
            {"role": "tool", "tool_call_id": one, "content": _chat_content(parts) if parts else ""}
            for one, _, parts in turn.results
        ]
        if turn.parts:
            messages.append({"role": turn.role, "content": _chat_content(turn.parts)})
    body: Body = {"model": model, "messages": messages}
    if drawn.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": name, **({} if schema is None else {"parameters": schema}), **_strict(drawn)},
            }
            for name, schema in drawn.tools
        ]
    if drawn.forced:
        one = {"type": "function", "function": {"name": drawn.tools[0][0]}} if drawn.tools else "auto"
        body["tool_choice"] = {"any": "required", "none": "none", "one": one}[drawn.forced]
    if drawn.stops:
        body["stop"] = drawn.stops
    if drawn.effort:
        body["reasoning_effort"] = drawn.effort
    if drawn.user:
        body["user"] = drawn.user
    if drawn.nulls:
        body |= {
            "temperature": None,
            "tool_choice": body.get("tool_choice"),
            "stop": body.get("stop"),
            "metadata": None,
        }
    return body


def _responses(drawn: Drawn, model: str) -> Body:
    items: list[Body] = []

    def parts_of(parts: list[Any], kind: str) -> list[Any]:
        return [
            {"type": kind, "text": part}
            if isinstance(part, str)
            else {"type": "input_image", "image_url": _data_url(part)}
            if isinstance(part, tuple)
            else part
            for part in parts
        ]

    for turn in drawn.turns:
        items += [
            {
                "type": "function_call_output",
                "call_id": one,
                "output": parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts_of(parts, "input_text"),
            }
            for one, _, parts in turn.results
        ]
        if turn.parts:
            kind = "output_text" if turn.role == "assistant" else "input_text"
            items.append({"type": "message", "role": turn.role, "content": parts_of(turn.parts, kind)})
        items += [
            {"type": "function_call", "call_id": one, "name": name, "arguments": json.dumps(given)}
            for one, name, given in turn.calls
        ]
    body: Body = {"model": model, "input": items}
    if drawn.tools:
        body["tools"] = [
            {"type": "function", "name": name, "parameters": schema, "strict": drawn.strict or None}
            for name, schema in drawn.tools
        ]
    if drawn.forced:
        one = {"type": "function", "name": drawn.tools[0][0]} if drawn.tools else "auto"
        body["tool_choice"] = {"any": "required", "none": "none", "one": one}[drawn.forced]
    if drawn.effort:
        body["reasoning"] = {"effort": drawn.effort}
    if drawn.user:
        body["user"] = drawn.user
    if drawn.nulls:
        body |= {"temperature": None, "instructions": None, "metadata": None, "previous_response_id": None}
    return body


def _messages(drawn: Drawn, model: str) -> Body:
    def block(part: Any) -> Any:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        if isinstance(part, tuple):
            return {"type": "image", "source": {"type": "base64", "media_type": part[0], "data": part[1]}}
        return part

    messages: list[Body] = []
    system: list[Body] = []
    for turn in drawn.turns:
        if turn.role == "system":
            system += [block(part) for part in turn.parts]
            continue
        content: list[Body] = [
            {"type": "tool_result", "tool_use_id": one, "content": [block(part) for part in parts]}
            for one, _, parts in turn.results
        ]
        content += [block(part) for part in turn.parts]
        content += [{"type": "tool_use", "id": one, "name": name, "input": given} for one, name, given in turn.calls]
        messages.append({"role": turn.role, "content": content})
    body: Body = {"model": model, "max_tokens": 4096, "messages": messages}
    if system:
        body["system"] = system
    if drawn.tools:
        body["tools"] = [
            {"name": name, "input_schema": schema or {"type": "object"}, **_strict(drawn)}
            for name, schema in drawn.tools
        ]
    if drawn.forced:
        body["tool_choice"] = {"any": {"type": "any"}, "none": {"type": "none"}}.get(
            drawn.forced, {"type": "tool", "name": drawn.tools[0][0] if drawn.tools else ""}
        )
    if drawn.stops:
        body["stop_sequences"] = drawn.stops
    if drawn.effort:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    if drawn.user:
        body["metadata"] = {"user_id": drawn.user}
    return body


def _gemini(drawn: Drawn, model: str) -> Body:
    def part_of(part: Any) -> Any:
        if isinstance(part, str):
            return {"text": part}
        if isinstance(part, tuple):
            data = part[1].replace("+", "-").replace("/", "_")
            return {"inline_data": {"mime_type": part[0], "data": data}}
        return {"text": json.dumps(part)}

    contents: list[Body] = []
    system: list[Body] = []
    for turn in drawn.turns:
        if turn.role == "system":
            system += [part_of(part) for part in turn.parts]
            continue
        parts: list[Body] = [
            {"functionResponse": {"id": one, "name": name, "response": {"result": [part_of(part) for part in given]}}}
            for one, name, given in turn.results
        ]
        parts += [part_of(part) for part in turn.parts]
        parts += [{"functionCall": {"id": one, "name": name, "args": given}} for one, name, given in turn.calls]
        contents.append({"role": "model" if turn.role == "assistant" else "user", "parts": parts})
    body: Body = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if drawn.tools:
        field = "parameters" if drawn.own_schemas else "parametersJsonSchema"
        body["tools"] = [
            {
                "functionDeclarations": [
                    {"name": name, **({} if schema is None else {field: schema})} for name, schema in drawn.tools
                ]
            }
        ]
    if drawn.forced:
        mode = {"any": {"mode": "ANY"}, "none": {"mode": "NONE"}}.get(
            drawn.forced, {"mode": "ANY", "allowedFunctionNames": [drawn.tools[0][0]] if drawn.tools else []}
        )
        body["toolConfig"] = {"functionCallingConfig": mode}
    config: Body = {}
    if drawn.stops:
        config["stopSequences"] = drawn.stops
    if drawn.effort:
        config["thinkingConfig"] = {"thinkingBudget": 1024}
    return {**body, "generationConfig": config} if config else body


def _converse(drawn: Drawn, model: str) -> Body:
    def block(part: Any) -> Any:
        if isinstance(part, str):
            return {"text": part}
        if isinstance(part, tuple):
            kind = part[0].partition("/")[2] or "png"
            return {"image": {"format": "png" if kind == "octet-stream" else kind, "source": {"bytes": part[1]}}}
        return {"text": json.dumps(part)}

    messages: list[Body] = []
    system: list[Body] = []
    for turn in drawn.turns:
        if turn.role == "system":
            system += [block(part) for part in turn.parts]
            continue
        content: list[Body] = [
            {"toolResult": {"toolUseId": one, "content": [block(part) for part in given]}}
            for one, _, given in turn.results
        ]
        content += [block(part) for part in turn.parts]
        content += [{"toolUse": {"toolUseId": one, "name": name, "input": given}} for one, name, given in turn.calls]
        messages.append({"role": turn.role, "content": content})
    body: Body = {"messages": messages}
    if system:
        body["system"] = system
    if drawn.tools:
        specs = [
            {"toolSpec": {"name": name, "inputSchema": {"json": schema or {"type": "object"}}, **_strict(drawn)}}
            for name, schema in drawn.tools
        ]
        body["toolConfig"] = {"tools": specs}
    if drawn.stops:
        body["inferenceConfig"] = {"stopSequences": drawn.stops}
    return body


def _ollama(drawn: Drawn, model: str) -> Body:
    messages: list[Body] = []
    for turn in drawn.turns:
        said = "\n".join(part if isinstance(part, str) else "" for part in turn.parts)
        pictures = [part[1] for part in turn.parts if isinstance(part, tuple)]
        if turn.role == "assistant":
            calls = [{"function": {"name": name, "arguments": given}, "id": one} for one, name, given in turn.calls]
            messages.append({"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})})
            continue
        for one, name, parts in turn.results:
            told = "\n".join(part if isinstance(part, str) else "" for part in parts)
            messages.append({"role": "tool", "content": told, "tool_name": name, "tool_call_id": one})
        if turn.parts:
            messages.append({"role": turn.role, "content": said, **({"images": pictures} if pictures else {})})
    body: Body = {"model": model, "messages": messages, "stream": False}
    if drawn.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": schema or {"type": "object"}}}
            for name, schema in drawn.tools
        ]
    if drawn.stops:
        body["options"] = {"stop": drawn.stops}
    if drawn.effort:
        body["think"] = drawn.effort
    return body


def _interactions(drawn: Drawn, model: str) -> Body:
    def content(part: Any) -> Any:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        if isinstance(part, tuple):
            return {"type": "image", "mime_type": part[0], "data": part[1].replace("+", "-").replace("/", "_")}
        return {"type": "text", "text": json.dumps(part)}

    steps: list[Body] = []
    system = ""
    for turn in drawn.turns:
        said = [content(part) for part in turn.parts]
        steps += [
            {"type": "function_result", "call_id": one, "name": name, "result": [content(part) for part in parts]}
            for one, name, parts in turn.results
        ]
        if turn.role == "system":
            system += "".join(part["text"] for part in said)
        elif said:
            steps.append({"type": "model_output" if turn.role == "assistant" else "user_input", "content": said})
        steps += [
            {"type": "function_call", "id": one, "name": name, "arguments": given} for one, name, given in turn.calls
        ]
    body: Body = {"model": model, "input": steps}
    if system:
        body["system_instruction"] = system
    if drawn.tools:
        body["tools"] = [
            {"type": "function", "name": name, **({} if schema is None else {"parameters": schema})}
            for name, schema in drawn.tools
        ]
    if drawn.stops:
        body["generation_config"] = {"stop_sequences": drawn.stops}
    return body


def _cohere(drawn: Drawn, model: str) -> Body:
    body = _chat(drawn, model)
    kept = {name: body[name] for name in ("model", "messages", "tools") if name in body}
    for message in kept["messages"]:
        for name in ("refusal", "annotations", "audio", "function_call"):
            message.pop(name, None)
        if message["content"] is None:
            del message["content"]
    for tool in kept.get("tools", ()):
        tool["function"].pop("strict", None)
    return kept | ({"stop_sequences": drawn.stops} if drawn.stops else {})


_WRITERS: dict[str, Callable[[Drawn, str], Body]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
    "gemini": _gemini,
    "bedrock_converse": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "gemini_interactions": _interactions,
}
CLIENTS = tuple(_WRITERS)
