"""A Request as a generateContent body for one provider."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from bardo.catalog.models import builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.dialects.fragments import laid_into
from bardo.dialects.gemini.encode_contents import ContentWriter, lose_foreign
from bardo.dialects.gemini.schema import json_schema
from bardo.dialects.gemini.words import NAME, split_fields
from bardo.dialects.losses import Losses
from bardo.values.blocks import fields_for
from bardo.values.request import Control, OutputFormat, Request, Tool, ToolChoice
from bardo.values.wire import WireRequest

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}
_COLLECTIONS = ("models", "tunedModels", "dynamic")


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write path and body. What Gemini cannot say is in `degraded`."""
    losses = Losses(NAME, NAME)
    own = request.dialect == NAME
    extra = losses.own_extra(request)
    writer = ContentWriter(losses, own=own, signed=_signs_calls(request.model))
    system, contents = writer.write(request.messages)
    body = {
        **{name: value for name, value in extra.items() if name not in ("generationConfig", "toolConfig")},
        "contents": contents,
        "systemInstruction": system,
        "tools": _tools(request.tools, losses),
        "toolConfig": _tool_config(request, extra, losses),
        "generationConfig": {**_object(extra, "generationConfig"), **_generation_config(request, losses)},
    }
    written = laid_into({name: value for name, value in body.items() if value}, _own_words(request, losses))
    return WireRequest(
        path=_path(request),
        body=msgspec.json.encode(laid_into(written, (request.control or Control()).fields)),
        degraded=losses.all,
    )


def _signs_calls(model: str) -> bool:
    row = builtin_models().find("google", model).row
    return row is not None and row.signed_calls is True


def _path(request: Request) -> str:
    collection, slash, name = request.model.partition("/")
    if not slash or collection not in _COLLECTIONS:
        collection, name = "models", request.model
    method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return f"{collection}/{quote(name, safe='')}:{method}"


def _object(extra: dict[str, Any], name: str) -> dict[str, Any]:
    value = extra.get(name)
    return value if isinstance(value, dict) else {}


def _generation_config(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    if sampling.min_p is not None:
        losses.lose_each("min_p", sampling.min_p, f"{NAME} has no such field")
    config = {
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "frequencyPenalty": sampling.frequency_penalty,
        "presencePenalty": sampling.presence_penalty,
        "seed": sampling.seed,
        "stopSequences": list(sampling.stop) or None,
        "maxOutputTokens": request.max_output_tokens,
        "candidateCount": request.choices if request.choices > 1 else None,
        **_output_format(request.output_format, request, losses),
    }
    return {name: value for name, value in config.items() if value is not None}


def _own_words(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what a Gemini client said of thinking that bardo has no word for."""
    if request.reasoning is None:
        return {}
    lose_foreign(losses, request.reasoning.carried)
    words = fields_for(NAME, request.reasoning.carried)
    return {"generationConfig": {"thinkingConfig": words}} if words else {}


def _output_format(wanted: OutputFormat | None, request: Request, losses: Losses) -> dict[str, Any]:
    if wanted is None:
        return {}
    if wanted.mode == "json_object":
        return {"responseMimeType": "application/json"}
    if wanted.strict is False:
        losses.lose_each("response_format.strict", False, "Gemini always holds to the schema")
    return {"responseMimeType": "application/json", **_schema_field(wanted.schema, request)}


def _schema_field(schema: Any, request: Request) -> dict[str, Any]:
    """Return the schema under the name the client used: older models know only Google's own schema words."""
    if request.dialect == NAME and request.body is not None:
        body, _ = split_fields(request.body, ("generationConfig",))
        config, _ = split_fields(_object(body, "generationConfig"), ("responseSchema",))
        original = config.get("responseSchema")
        if isinstance(original, dict) and json_schema(original) == schema:
            return {"responseSchema": original}
    return {"responseJsonSchema": schema}


def _tools(tools: tuple[Tool, ...], losses: Losses) -> list[dict[str, Any]]:
    declarations: list[dict[str, Any]] = []
    written: list[dict[str, Any]] = []
    for tool in tools:
        fields = fields_for(NAME, tool.carried)
        if not tool.hosted:
            lose_foreign(losses, tool.carried)
            if tool.strict:
                losses.lose_each("tools.strict", True, f"{NAME} has no such field")
            if not declarations:
                written.append({"functionDeclarations": declarations})
            declarations.append(_declaration(tool, fields))
        elif fields:
            written.append(fields)
        else:
            losses.lose_each("tools", tool.name, f"a tool that {NAME} does not run")
    return written


def _declaration(tool: Tool, fields: dict[str, Any]) -> dict[str, Any]:
    parameters = fields.get("parameters")
    others = {name: value for name, value in fields.items() if name != "parameters"}
    if parameters is not None and json_schema(parameters) == tool.schema:
        schema = {"parameters": parameters}
    else:
        schema = {} if tool.schema is None else {"parametersJsonSchema": tool.schema}
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, **schema, **others}


def _tool_config(request: Request, extra: dict[str, Any], losses: Losses) -> dict[str, Any]:
    choice, held = request.tool_choice, dict(_object(extra, "toolConfig"))
    calling = _calling(choice, request, losses)
    rest = _object(held, "functionCallingConfig")
    if calling.get("mode") != "AUTO":
        rest = {name: value for name, value in rest.items() if name != "mode"}
    if calling or rest:
        held["functionCallingConfig"] = {**calling, **rest}
    return held


def _calling(choice: ToolChoice | None, request: Request, losses: Losses) -> dict[str, Any]:
    if choice is None:
        return {}
    if choice.parallel is False:
        losses.lose_each("parallel_tool_calls", False, f"{NAME} has no such field")
    if request.dialect != NAME and not any(not tool.hosted for tool in request.tools):
        # Google refuses a choice among no functions.
        return {}
    named = {"allowedFunctionNames": [choice.name]} if choice.mode == "named" else {}
    return {"mode": _MODES[choice.mode], **named}
