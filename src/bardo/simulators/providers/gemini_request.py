"""Read a Gemini generateContent request, refusing what Google refuses, and check the thought signatures that come back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators import marks
from bardo.simulators.exchange import Incoming, Refusal
from bardo.simulators.fields import Fields, fields, joined_text, rows, text
from bardo.simulators.turns import Conversation, Tool

_SIGNER = "gemini-api"
_HEAD = b"\x12\xf4\x01\n"
_STRICT = re.compile(r"gemini-(?:[3-9]|[1-9]\d)")
# What Google documents for calls that another model made.
WAIVERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and "
    "missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , "
    "position {position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)


def signs_always(model: str) -> bool:
    """Whether the model signs its calls even where it shows no thoughts."""
    return _STRICT.search(model) is not None


def signature(model: str, reasoning: str, *, called: str = "") -> str:
    """Return the signature of a part: of a call by the function's name, or of a text."""
    bound = {"model": model, "said": marks.fingerprint(reasoning), "called": called}
    return marks.encode_base64(marks.sign(_SIGNER, bound, size=260, head=_HEAD))


def check(contents: Sequence[Fields], model: str) -> None:
    """Refuse signatures that are not Gemini's, and calls of the current turn without one.

    From Gemini 3 on, the first call of each step of the current turn must have its signature; a signature of anybody else is refused
    wherever it stands. Source: ai.google.dev, Thought signatures, as of 2026-11; the words are those users report.
    """
    for content in contents:
        for part in rows(content.get("parts")):
            if held := held_by(part):
                check_one(held, _called(part))
    if signs_always(model):
        for index in range(_turn_start(contents), len(contents)):
            parts = rows(contents[index].get("parts"))
            calls = [part for part in parts if _called(part)] if contents[index].get("role") == "model" else []
            if calls and not held_by(calls[0]):
                raise missing(_called(calls[0]), index + 1)


def check_one(held: str, called: str) -> None:
    """Refuse a signature that is not Gemini's, or of another call."""
    bound = marks.verify(_SIGNER, marks.decode_base64(held), head=_HEAD)
    if held not in WAIVERS and (bound is None or bound.get("called") != called):
        raise Refusal("bad_value", "Corrupted thought signature.")


def missing(name: str, position: int) -> Refusal:
    """Build the error for a call without a signature; positions count from 1."""
    return Refusal("bad_value", _MISSING.format(name=name, position=position))


def held_by(part: Fields) -> str:
    """Return the signature of a part, in either spelling."""
    return text(part.get("thoughtSignature", part.get("thought_signature")))


def _called(part: Fields) -> str:
    return text(fields(part.get("functionCall", part.get("function_call"))).get("name"))


def _turn_start(contents: Sequence[Fields]) -> int:
    """The current turn begins with the last thing a person said."""
    for index in range(len(contents) - 1, -1, -1):
        parts = rows(contents[index].get("parts"))
        results = any("functionResponse" in part or "function_response" in part for part in parts)
        if contents[index].get("role", "user") == "user" and not results:
            return index
    return 0


_VERSION = re.compile(r"^/v1(?:beta)?/models(?=/|$)")
_LONGEST_NAME = 64
METHODS = ("generateContent", "streamGenerateContent")


def called(path: str) -> tuple[str, str]:
    """Split a path into the model and the method called on it; both empty where it is no call."""
    model, _, method = named(path).rpartition(":")
    return model, method if model else ""


def named(path: str) -> str:
    """Return what a path names below the models of either version; empty for all other paths."""
    match = _VERSION.match(path)
    return path[match.end() :].removeprefix("/") if match else ""


def is_list(path: str) -> bool:
    """Whether a path is that of the list of models."""
    return _VERSION.fullmatch(path) is not None


def either(value: object, path: str) -> object:
    """Follow a dotted path whose names may be written `likeThis` or `like_this`: Google takes both."""
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
        value = value.get(name, value.get(snake))
    return value


def unwrapped(incoming: Incoming) -> Incoming:
    """Return the whole request that a request to count may hold; Google refuses contents beside it."""
    body = incoming.fields
    held = either(body, "generateContentRequest")
    if held is None:
        return incoming
    if body.get("contents") or not text(fields(held).get("model")).startswith("models/"):
        raise Refusal(
            "bad_value", "* CountTokensRequest: exactly one of contents and generate_content_request, with its model\n"
        )
    return replace(incoming, body=held)


def setting(body: Fields, path: str) -> object:
    """Find a generation setting."""
    return either(body, f"generationConfig.{path}")


def read(incoming: Incoming, path: str) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Invalid JSON payload received. Unexpected token.\n")
    contents = rows(body.get("contents"))
    _check_contents(contents)
    model, method = called(path)
    last = contents[-1]
    answers = any(either(part, "functionResponse") for part in rows(last.get("parts"))[-1:])
    if last.get("role") == "model" and not answers and _NO_PREFILL.match(model):
        words = "Requests ending with a model turn are not supported unless the last part is a function response."
        raise Refusal("bad_value", words)
    _check_references(contents)
    _check_results(contents)
    _check_tool_names(body)
    check(contents, model)
    schema = setting(body, "responseJsonSchema") or setting(body, "responseSchema")
    _check_fields([function.get("parameters") for function in _functions(body)])
    _check_schemas([schema, *(_parameters(function) for function in _functions(body))])
    names = either(body, "toolConfig.functionCallingConfig.allowedFunctionNames")
    return Conversation(
        model=model,
        question=next((prompt for content in reversed(contents) if (prompt := _content_text(content))), ""),
        rounds=sum(content.get("role") == "model" for content in contents),
        tools=_tools(body),
        forced_tool=text(names[0]) or None if isinstance(names, list) and names else None,
        tool_results=_tool_results(contents),
        schema=fields(schema) or None,
        streamed=method == "streamGenerateContent",
        sse=incoming.query.get("alt") == "sse",
        characters=sum(len(json.dumps(content.get("parts"))) for content in contents),
    )


def _check_contents(contents: Sequence[Fields]) -> None:
    if not contents:
        raise Refusal("missing_field", "* GenerateContentRequest.contents: contents is not specified\n")
    for content in contents:
        if content.get("role", "user") not in ("user", "model", "function"):
            raise Refusal("bad_value", "Please use a valid role: user, model.")
        if not rows(content.get("parts")):
            words = "Unable to submit request because it must include at least one parts field"
            raise Refusal("missing_field", f"{words}, which describes the prompt input.")


_NO_PREFILL = re.compile(r"gemini-(?:3\.5-flash-lite|3\.[6-9]-|[4-9])")
"""The models that want a user's turn at the end (LibreChat-AI/agents#323 and pipecat-ai/pipecat#5821, 2026)."""


def _check_tool_names(body: Fields) -> None:
    for place, tool in enumerate(rows(body.get("tools"))):
        for index, function in enumerate(rows(either(tool, "functionDeclarations"))):
            if len(text(function.get("name"))) > _LONGEST_NAME:
                raise Refusal(
                    "bad_value",
                    f"* GenerateContentRequest.tools[{place}].function_declarations[{index}].name: Invalid function name. Its maximum "
                    f"length is {_LONGEST_NAME}.\n",
                )


def _check_results(contents: Sequence[Fields]) -> None:
    """Refuse results in the content after calls that are not as many as these (google-gemini/gemini-cli#4504, microsoft/vscode#299295)."""
    calls = 0
    for content in contents:
        parts = rows(content.get("parts"))
        results = sum(either(part, "functionResponse") is not None for part in parts)
        if calls and results and calls != results:
            words = "the number of function response parts is equal to the number of function call parts"
            raise Refusal("bad_value", f"Please ensure that {words} of the function call turn.")
        called = sum(either(part, "functionCall") is not None for part in parts)
        calls = calls + called if content.get("role") == "model" else 0


def _check_references(contents: Sequence[Fields]) -> None:
    """Refuse a `$ref` in a result that names no part of it (router-for-me/CLIProxyAPI#6065, 2026-09)."""
    for part in (part for content in contents for part in rows(content.get("parts"))):
        response = fields(either(part, "functionResponse"))
        blobs = [
            fields(either(row, "inlineData")) or fields(either(row, "fileData")) for row in rows(response.get("parts"))
        ]
        shown = {text(either(blob, "displayName")) for blob in blobs}
        for name in _references(response.get("response")):
            if name not in shown:
                words = "in function_response.response does not match to a display_name in the function_response.parts."
                raise Refusal("bad_value", f"The referenced name `{name}` {words}")


def _references(value: object) -> Iterator[str]:
    """Yield the names of all `$ref` in a JSON value."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _content_text(content: Fields) -> str:
    return joined_text(content.get("parts")) if content.get("role", "user") == "user" else ""


def _functions(body: Fields) -> list[Fields]:
    tools = rows(body.get("tools"))
    return [function for tool in tools for function in rows(either(tool, "functionDeclarations"))]


def _parameters(function: Fields) -> object:
    return either(function, "parametersJsonSchema") or function.get("parameters")


_SCHEMA_FIELDS = frozenset((
    "type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties",
    "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum",
    "example", "default", "anyOf", "propertyOrdering",
))  # fmt: skip


def _check_fields(schemas: Sequence[object]) -> None:
    """Refuse a name that Google's own Schema does not have (openswarm-ai/openswarm#24, pizza-bot-app/pizza-bot#62, 2026)."""
    waiting = [(f"tools[0].function_declarations[{index}].parameters", one) for index, one in enumerate(schemas) if one]
    while waiting:
        place, node = waiting.pop()
        if not isinstance(node, dict) or isinstance(node.get("type"), list):
            words = f"Invalid JSON payload received. Unknown name \"\" at '{place}': Proto field is not repeating, cannot start list."
            raise Refusal("bad_json", words)
        for name, value in node.items():
            if re.sub("_([a-z])", lambda match: match[1].upper(), name) not in _SCHEMA_FIELDS:
                raise Refusal(
                    "bad_json",
                    f"Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field.",
                )
            if name == "items":
                waiting.append((f"{place}.items", value))
            elif name == "properties":
                waiting += [(f"{place}.properties[{at}].value", part) for at, part in enumerate(fields(value).values())]
            elif name in ("anyOf", "any_of") and isinstance(value, list):
                waiting += [(f"{place}.any_of[{at}]", part) for at, part in enumerate(value)]


_VALUES = frozenset({"enum", "const", "default", "example", "examples"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})


def _check_schemas(schemas: Sequence[object]) -> None:
    """Refuse what stands beside a `$ref`, keywords with a dollar sign left out (su-kaka/gcli2api#374, ai.google.dev, 2026)."""
    waiting = [*schemas]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            name = node.get("$ref")
            beside = [word for word in node if word not in ("description", "default") and not word.startswith("$")]
            if isinstance(name, str) and beside:
                words = "If a schema node has $ref set, then only description and default can be set alongside it"
                raise Refusal("bad_value", f"$ref '{name}' was set alongside unsupported fields. {words}")
            for word, value in node.items():
                named = isinstance(value, dict) and word in _MAPS
                waiting += value.values() if named else [value] if word not in _VALUES else []
        elif isinstance(node, list):
            waiting.extend(node)


def _tools(body: Fields) -> tuple[Tool, ...]:
    if either(body, "toolConfig.functionCallingConfig.mode") == "NONE":
        return ()
    return tuple(
        Tool(text(function.get("name")), text(function.get("description")), fields(_parameters(function)))
        for function in _functions(body)
    )


def _tool_results(contents: Sequence[Fields]) -> tuple[str, ...]:
    responses = [fields(either(part, "functionResponse")) for part in rows(contents[-1].get("parts"))]
    return tuple(_result_text(response.get("response")) for response in responses if response)


def _result_text(response: object) -> str:
    """A result is an object; the usual single field is shown without its wrapping."""
    value = response
    if isinstance(response, dict) and len(response) == 1:
        (value,) = response.values()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
