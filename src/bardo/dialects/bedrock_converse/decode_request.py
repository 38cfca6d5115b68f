"""A client's Converse request to a Request. Model and streaming stand in the path, so they come with the Arrival."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.bedrock_converse.constants import NAME, SAMPLING
from bardo.dialects.bedrock_converse.decode_controls import (
    ADDITIONAL,
    read_additional,
    read_output_format,
    read_reasoning,
    read_tool,
    read_tool_choice,
)
from bardo.dialects.bedrock_converse.decode_messages import read_message, read_system, with_tool_names
from bardo.dialects.jsonfield import decode_object, optional, required, take
from bardo.dialects.options import read_options
from bardo.dialects.sampling import decode_sampling
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Request
from bardo.values.wire import Arrival

READ = frozenset(
    ("modelId", "messages", "system", "inferenceConfig", "toolConfig", "outputConfig", ADDITIONAL, "bardo")
)
_CONFIG = ("maxTokens", *SAMPLING.values())


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    config = optional(fields, "inferenceConfig", dict) or {}
    tools = optional(fields, "toolConfig", dict) or {}
    additional = optional(fields, ADDITIONAL, dict) or {}
    output = optional(fields, "outputConfig", dict) or {}
    top_k, left = read_additional(additional)
    held = {
        "inferenceConfig": _unknown_fields(config, *_CONFIG),
        "outputConfig": _unknown_fields(output, "textFormat"),
        "toolConfig": _unknown_fields(tools, "tools", "toolChoice"),
        ADDITIONAL: left,
    }
    return Request(
        model=arrival.model or required(fields, "modelId", str),
        messages=_messages(fields),
        tools=tuple(
            read_tool(tool, f"toolConfig.tools[{place}]")
            for place, tool in enumerate(optional(tools, "tools", list, "toolConfig.") or ())
        ),
        tool_choice=read_tool_choice(tools),
        max_output_tokens=_limit(config),
        sampling=msgspec.structs.replace(decode_sampling(config, SAMPLING, "inferenceConfig."), top_k=top_k),
        reasoning=read_reasoning(additional),
        output_format=read_output_format(output),
        stream=bool(arrival.stream),
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in READ}
        | {name: value for name, value in held.items() if value},
        body={name: value for name, value in fields.items() if name != "bardo"},
        body_bytes=raw,
        options=read_options(fields),
    )


def _unknown_fields(fields: dict[str, Any], *known: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in known}


def _messages(fields: dict[str, Any]) -> tuple[Message, ...]:
    said = required(fields, "messages", list)
    messages = [
        read_message(take(one, dict, f"messages[{place}]"), f"messages[{place}].") for place, one in enumerate(said)
    ]
    return with_tool_names((*read_system(optional(fields, "system", list)), *messages))


def _limit(config: dict[str, Any]) -> int | None:
    limit = optional(config, "maxTokens", int, "inferenceConfig.")
    if limit is not None and limit < 1:
        raise InvalidRequest("inferenceConfig.maxTokens must be at least 1", param="inferenceConfig.maxTokens")
    return limit
