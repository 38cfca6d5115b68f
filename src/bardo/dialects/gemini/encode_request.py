"""A Request as a generateContent body for one provider."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.models import builtin_models
from bardo.catalog.request_shapes import shape_at
from bardo.catalog.rows import ProviderRow
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.gemini.constants import NAME, SAMPLING, split_fields
from bardo.dialects.gemini.encode_contents import ContentWriter
from bardo.dialects.gemini.references import with_lone_references
from bardo.dialects.gemini.schema import declared_parameters, json_schema, untaken_word
from bardo.dialects.losses import Losses
from bardo.dialects.sampling import encode_sampling
from bardo.values.blocks import ToolResultBlock
from bardo.values.request import Control, OutputFormat, Request, Tool, ToolChoice

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}
_COLLECTIONS = ("models", "tunedModels", "dynamic")

DECLARATION = Declaration(
    dialect=NAME,
    title="Gemini",
    needs_turn=True,
    expresses=frozenset(
        (
            "choices",
            "document",
            "document.source",
            "tool_result.is_error",
            "sampling.top_k",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations(
            "Gemini has no such field", "sampling.min_p", "sampling.repetition_penalty", "output_format.description"
        ),
        **limitations("Gemini has no such field", "tools.strict", same=(False,)),
        **limitations("Gemini has no such field", "tool_choice.parallel", same=(True,)),
        **limitations("Gemini has no such field", "image.detail", same=("auto",)),
        **limitations("Gemini takes a document without its name", "document.name"),
        **limitations("Gemini always holds to the schema", "output_format.strict", same=(True,)),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body."""
    own = request.dialect == NAME
    extra = losses.own_extra(request)
    writer = ContentWriter(losses, own=own, signed=_signs_calls(request.model))
    system, contents = writer.write(request.messages)
    known = shape_at(row, request.model).schema_fields
    for word in untaken_words(request, known):
        why = "Google's own schemas have no such word: the schema goes as JSON Schema"
        losses.lose("tools.schema", word, why, sent="parametersJsonSchema", key=word)
    if own and system is not None and (role := _system_role(request)):
        # It says nothing, and a prompt that is cached holds it.
        system = {**system, "role": role}
    body = {
        **{name: value for name, value in extra.items() if name not in ("generationConfig", "toolConfig")},
        "contents": contents,
        "systemInstruction": system,
        "tools": _tools(request.tools, losses, known, own=own),
        "toolConfig": _tool_config(request, extra),
        "generationConfig": {**_object(extra, "generationConfig"), **_generation_config(request)},
    }
    return merge_fields({name: value for name, value in body.items() if value}, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control, and a Gemini client's own words beside it."""
    words = losses.own_fields(request.reasoning.carried) if request.reasoning is not None else {}
    own = {"generationConfig": {"thinkingConfig": words}} if words else {}
    return merge_fields(own, (request.control or Control()).fields)


def lacks_signatures(request: Request) -> bool:
    """Whether a call of the current turn has no signature where the model wants one: it refuses such a request."""
    if not _signs_calls(request.model):
        return False
    for message in reversed(request.messages):
        if message.role != "assistant" and ToolResultBlock not in message.kinds:
            return False
        if message.role == "assistant" and message.calls and not message.calls[0].opaque:
            return True
    return False


def _signs_calls(model: str) -> bool:
    row = builtin_models().find("google", model).row
    return row is not None and row.signed_calls is True


def untaken_words(request: Request, known: frozenset[str]) -> list[str]:
    """Return words of a client's schemas in Google's own words that the target, which knows `known`, does not take there."""
    if not known or not request.tools or request.dialect != NAME:
        return []
    return [word for one in declared_parameters(request.body or {}) if (word := untaken_word(one, known))]


def request_path(request: Request) -> str:
    """Return the path, which names the model and says whether to stream."""
    collection, slash, name = request.model.partition("/")
    if not slash or collection not in _COLLECTIONS:
        collection, name = "models", request.model
    method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return f"{collection}/{quote(name, safe='')}:{method}"


def _object(extra: dict[str, Any], name: str) -> dict[str, Any]:
    value = extra.get(name)
    return value if isinstance(value, dict) else {}


def _generation_config(request: Request) -> dict[str, Any]:
    config = {
        **encode_sampling(request.sampling, SAMPLING),
        "maxOutputTokens": request.max_output_tokens,
        "candidateCount": request.choices if request.choices > 1 else None,
        **_output_format(request.output_format, request),
    }
    return {name: value for name, value in config.items() if value is not None}


def _output_format(output_format: OutputFormat | None, request: Request) -> dict[str, Any]:
    if output_format is None:
        return {}
    if output_format.mode == "json_object":
        return {"responseMimeType": "application/json"}
    return {"responseMimeType": "application/json", **_schema_field(output_format.schema, request)}


def _schema_field(schema: Any, request: Request) -> dict[str, Any]:
    """Return the schema under the name the client used: older models know only Google's own schema words."""
    if request.dialect == NAME and request.body is not None:
        body, _ = split_fields(request.body, ("generationConfig",))
        config, _ = split_fields(_object(body, "generationConfig"), ("responseSchema",))
        original = config.get("responseSchema")
        if isinstance(original, dict) and json_schema(original) == schema:
            return {"responseSchema": original}
    return {"responseJsonSchema": schema}


def _system_role(request: Request) -> str:
    """Return the role that a client gave its system prompt, empty where it gave none."""
    given = (request.body or {}).get("systemInstruction")
    role = given.get("role") if isinstance(given, dict) else None
    return role if isinstance(role, str) else ""


def _tools(tools: tuple[Tool, ...], losses: Losses, known: frozenset[str], *, own: bool) -> list[dict[str, Any]]:
    declarations: list[dict[str, Any]] = []
    written: list[dict[str, Any]] = []
    for tool in tools:
        fields = losses.own_fields(tool.carried)
        if not tool.hosted:
            if not declarations:
                written.append({"functionDeclarations": declarations})
            if (parameters := fields.get("parameters")) is not None and untaken_word(parameters, known):
                fields = {name: value for name, value in fields.items() if name != "parameters"}
            declarations.append(_declaration(tool if own else _with_lone_references(tool, losses), fields))
        elif fields:
            written.append(fields)
        else:
            losses.lose_tool(tool)
    return written


def _with_lone_references(tool: Tool, losses: Losses) -> Tool:
    if tool.schema is None:
        return tool

    def lose(keywords: Iterable[str]) -> None:
        why = "Gemini takes only a description and a default beside $ref, and what it points to cannot be written in its place"
        for keyword in keywords:
            losses.lose("tools.schema", f"{keyword} beside $ref", why, key=f"{tool.name} {keyword}")

    schema = with_lone_references(tool.schema, lose)
    return tool if schema is tool.schema else msgspec.structs.replace(tool, schema=schema)


def _declaration(tool: Tool, fields: dict[str, Any]) -> dict[str, Any]:
    parameters = fields.get("parameters")
    others = {name: value for name, value in fields.items() if name != "parameters"}
    if parameters is not None and json_schema(parameters) == tool.schema:
        schema = {"parameters": parameters}
    else:
        schema = {} if tool.schema is None else {"parametersJsonSchema": tool.schema}
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, **schema, **others}


def _tool_config(request: Request, extra: dict[str, Any]) -> dict[str, Any]:
    choice, held = request.tool_choice, dict(_object(extra, "toolConfig"))
    calling = _calling(choice, request)
    rest = _object(held, "functionCallingConfig")
    if calling.get("mode") != "AUTO":
        rest = {name: value for name, value in rest.items() if name != "mode"}
    if calling or rest:
        held["functionCallingConfig"] = {**calling, **rest}
    return held


def _calling(choice: ToolChoice | None, request: Request) -> dict[str, Any]:
    if choice is None:
        return {}
    if request.dialect != NAME and not any(not tool.hosted for tool in request.tools):
        # Google refuses a choice among no functions.
        return {}
    named = {"allowedFunctionNames": [choice.name]} if choice.mode == "named" else {}
    return {"mode": _MODES[choice.mode], **named}
