"""Requests of watsonx text generation, read and written: a prompt as `input`, and `parameters`."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.jsonfield import decode_object, number, optional, required, take
from bardo.dialects.losses import Losses
from bardo.dialects.options import read_options
from bardo.dialects.watsonx_text.words import NAME, TITLE
from bardo.dialects.wire import encode_json
from bardo.values.blocks import RefusalBlock, TextBlock, ToolResultBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Request, Sampling
from bardo.values.wire import Arrival, WireRequest

_VERSION = "2024-05-31"
_READ = frozenset(("model_id", "input", "parameters", "bardo"))
_PARAMETERS = frozenset(("max_new_tokens", "temperature", "top_p", "top_k", "random_seed", "stop_sequences"))
_NO_FIELD = f"{TITLE} has no such field"


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. The address says whether it is to be streamed. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    given = optional(fields, "parameters", dict) or {}
    others = {name: value for name, value in given.items() if name not in _PARAMETERS and value is not None}
    extra = {name: value for name, value in fields.items() if name not in _READ and value is not None}
    stop = optional(given, "stop_sequences", list, "parameters.") or []
    return Request(
        model=arrival.model or required(fields, "model_id", str),
        messages=(Message("user", (TextBlock(required(fields, "input", str)),)),),
        max_output_tokens=_whole(given, "max_new_tokens"),
        sampling=Sampling(
            temperature=number(given, "temperature", "parameters."),
            top_p=number(given, "top_p", "parameters."),
            top_k=_whole(given, "top_k"),
            seed=_whole(given, "random_seed"),
            stop=tuple(take(one, str, f"parameters.stop_sequences[{place}]") for place, one in enumerate(stop)),
        ),
        stream=bool(arrival.stream),
        dialect=NAME,
        extra={**extra, **({"parameters": others} if others else {})},
        body={name: value for name, value in fields.items() if name != "bardo"},
        options=read_options(fields),
    )


def _whole(fields: dict[str, Any], name: str) -> int | None:
    return optional(fields, name, int, "parameters.")


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write path and body. `project_id` or `space_id` can only come from a client of this dialect."""
    losses = Losses(NAME, TITLE)
    extra = dict(losses.own_extra(request))
    held = extra.pop("parameters", None)
    parameters = {**_parameters(request, losses), **(held if isinstance(held, dict) else {})}
    body = {"model_id": request.model, "input": _prompt(request, losses), **extra}
    try:
        written = encode_json({**body, **({"parameters": parameters} if parameters else {})})
    except (RecursionError, msgspec.MsgspecError) as problem:
        raise InvalidRequest("the request cannot be written as JSON") from problem
    method = "generation_stream" if request.stream else "generation"
    return WireRequest(path=f"text/{method}?version={_VERSION}", body=written, degraded=losses.all)


def _prompt(request: Request, losses: Losses) -> str:
    """Return all texts as one prompt: there are no roles."""
    roles = {message.role for message in request.messages}
    if len(request.messages) > 1:
        losses.lose("messages.role", sorted(roles), "the texts are one prompt, without roles")
    texts: list[str] = []
    for message in request.messages:
        for block in message.blocks:
            if isinstance(block, TextBlock | RefusalBlock | ToolResultBlock) and block.text:
                texts.append(block.text)
            elif not isinstance(block, TextBlock):
                kind = type(block).__name__.removesuffix("Block").lower()
                losses.lose(kind, kind, f"{TITLE} takes only text")
    return "\n\n".join(texts)


def _parameters(request: Request, losses: Losses) -> dict[str, Any]:
    sampling = request.sampling
    lost = {
        "min_p": sampling.min_p,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "tools": [tool.name for tool in request.tools] or None,
        "response_format": None if request.output_format is None else request.output_format.mode,
        "choices": request.choices if request.choices > 1 else None,
    }
    for name, value in lost.items():
        if value is not None:
            losses.lose(name, value, _NO_FIELD)
    parameters = {
        "max_new_tokens": request.max_output_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "random_seed": sampling.seed,
        "stop_sequences": list(sampling.stop) or None,
    }
    return {name: value for name, value in parameters.items() if value is not None}
