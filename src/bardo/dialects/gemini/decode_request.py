"""A client's generateContent body as a Request. Both spellings of the real API are read: `topP` and `top_p`."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.gemini.decode_config import Config, decode_config
from bardo.dialects.gemini.decode_contents import decode_contents, decode_system
from bardo.dialects.gemini.decode_tools import decode_tool_choice, decode_tools
from bardo.dialects.gemini.words import NAME, split_fields
from bardo.dialects.jsonfield import MAX_DEPTH, decode_object, optional
from bardo.dialects.options import read_options
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions, Request
from bardo.values.wire import Arrival

_KNOWN = ("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read the body; model and streaming stand in the URL. Raises InvalidRequest, naming the field."""
    parsed = decode_object(body)
    try:
        return _request(parsed, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply", hint=f"stay under {MAX_DEPTH} levels") from None


def _request(body: dict[str, Any], arrival: Arrival) -> Request:
    own = {name: value for name, value in body.items() if name != "bardo"}
    fields, extra = split_fields(own, _KNOWN)
    if not fields.get("contents"):
        raise InvalidRequest("contents is required", hint="give at least one content", param="contents")
    config = decode_config(fields.get("generationConfig"))
    choice, tool_config = decode_tool_choice(fields.get("toolConfig"))
    extra |= {"generationConfig": config.others} if config.others else {}
    extra |= {"toolConfig": tool_config} if tool_config else {}
    return Request(
        model=_model(fields, arrival),
        messages=(*decode_system(fields.get("systemInstruction")), *decode_contents(fields["contents"])),
        tools=decode_tools(fields.get("tools")),
        tool_choice=choice,
        max_output_tokens=config.max_output_tokens,
        sampling=config.sampling,
        reasoning=config.reasoning,
        output_format=config.output_format,
        choices=config.choices,
        stream=bool(arrival.stream),
        dialect=NAME,
        extra=extra,
        body=own,
        options=_options(body, config),
    )


def _model(fields: dict[str, Any], arrival: Arrival) -> str:
    model = arrival.model or optional(fields, "model", str) or ""
    if not model:
        raise InvalidRequest(
            "the URL names no model", hint="post to /v1beta/models/{model}:generateContent", param="model"
        )
    return model.removeprefix("models/")


def _options(fields: dict[str, Any], config: Config) -> BardoOptions:
    asked = read_options(fields)
    hidden = config.reasoning is not None and config.reasoning.visible is False
    return msgspec.structs.replace(asked, omit_reasoning=True) if hidden else asked
