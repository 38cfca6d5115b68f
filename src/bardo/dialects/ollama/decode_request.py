"""An Ollama chat request, as a client sends it, to a Request."""

from __future__ import annotations

from typing import Any

from bardo.dialects.functions import read_tool
from bardo.dialects.jsonfield import decode_object, optional, required, take
from bardo.dialects.ollama.constants import NAME, SAMPLING
from bardo.dialects.ollama.decode_messages import read_messages
from bardo.dialects.options import read_options
from bardo.dialects.sampling import decode_sampling, whole_number
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, OutputFormat, ReasoningPolicy, Request
from bardo.values.wire import Arrival

READ = frozenset(("model", "messages", "tools", "options", "format", "think", "stream", "bardo"))


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field. A stream is what is answered unless the client says no."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    options = optional(fields, "options", dict) or {}
    limit = whole_number(options, "num_predict", "options.")
    # Below 1 it is no limit: -1 is until the end, -2 until the context is full.
    limited = limit is not None and limit >= 1
    read = {*SAMPLING.values(), "num_predict"} if limited else {*SAMPLING.values()}
    left = {name: value for name, value in options.items() if name not in read and value is not None}
    stream = optional(fields, "stream", bool) if arrival.stream is None else arrival.stream
    return Request(
        model=arrival.model or required(fields, "model", str),
        messages=read_messages(optional(fields, "messages", list) or []),
        tools=tuple(
            read_tool(tool, f"tools[{place}]", NAME) for place, tool in enumerate(optional(fields, "tools", list) or ())
        ),
        max_output_tokens=limit if limited else None,
        sampling=decode_sampling(options, SAMPLING, "options.", one_stop=True),
        reasoning=_reasoning(fields.get("think")),
        output_format=_output_format(fields.get("format")),
        stream=stream is not False,
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in READ and value is not None}
        | ({"options": left} if left else {}),
        body={name: value for name, value in fields.items() if name != "bardo"},
        body_bytes=raw,
        options=read_options(fields),
    )


def _reasoning(think: Any) -> ReasoningPolicy | None:
    if think is None or think == "":
        return None
    value = take(think, (bool, str), "think")
    raw_fields = {"think": think}
    if isinstance(value, bool):
        return ReasoningPolicy(mode="auto" if value else "off", raw_fields=raw_fields)
    for level in EFFORTS:
        if value == level:
            return ReasoningPolicy(mode="effort", effort=level, raw_fields=raw_fields)
    raise InvalidRequest(f"think is {value!r}", hint="use true, false, low, medium, high or max", param="think")


def _output_format(wanted: Any) -> OutputFormat | None:
    if wanted is None or wanted == "":
        return None
    value = take(wanted, (str, dict), "format")
    if isinstance(value, dict):
        return OutputFormat(mode="json_schema", name="answer", schema=value)
    if value != "json":
        raise InvalidRequest(f"format is {value!r}", hint="use json or a JSON schema", param="format")
    return OutputFormat(mode="json_object")
