"""A Request for a server that speaks Ollama's own API.

Messages for Ollama: one text each, pictures beside it, thinking as text, results as messages of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.ollama.calls import write_call
from bardo.dialects.ollama.wire import NAME, SAMPLING, TITLE
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations
from bardo.dialects.shared.json_values import INVALID_JSON, is_object
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.tools import write_tool
from bardo.values.blocks import (
    Block,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    has_no_arguments,
)
from bardo.values.request import Control, Message, OutputFormat, Request, Tool, ToolChoice

Wire = dict[str, Any]
_DATA_URL = re.compile(r"data:[^;,]*;base64,(.*)", re.DOTALL)


def encode_messages(request: Request, losses: Losses) -> list[Wire]:
    """Return the `messages` field."""
    names = {
        block.id: block.name
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    }
    return [wire for message in request.messages for wire in _message(message, names, losses)]


def _message(message: Message, names: dict[str, str], losses: Losses) -> list[Wire]:
    results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
    others = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
    fields = losses.own_fields(message.carried)
    written = [_result(result, names, losses) for result in results]
    if others or not results:
        between = "" if message.role == "assistant" else "\n\n"
        written.append({"role": message.role, **_message_fields(others, losses, between)})
    return [*written[:-1], {**written[-1], **fields}]


def _message_fields(blocks: Sequence[Block], losses: Losses, between: str) -> Wire:
    thoughts = [block for block in blocks if isinstance(block, ReasoningBlock)]
    calls = [block for block in blocks if isinstance(block, ToolCallBlock)]
    fields: Wire = {"content": between.join(filter(None, (_text(block, losses) for block in blocks)))}
    thinking = _thinking(thoughts, losses)
    if thinking:
        fields["thinking"] = thinking
    images = [data for block in blocks if isinstance(block, ImageBlock) for data in _image(block, losses)]
    if images:
        fields["images"] = images
    if calls:
        fields["tool_calls"] = [_call(call, place, losses) for place, call in enumerate(calls)]
    return fields


def _text(block: Block, losses: Losses) -> str:
    if not isinstance(block, TextBlock | RefusalBlock):
        return ""
    losses.lose_states(block.opaque if isinstance(block, TextBlock) else ())
    return block.text


def _thinking(thoughts: list[ReasoningBlock], losses: Losses) -> str:
    for block in thoughts:
        losses.lose_fields(block.carried)
        losses.lose_states(block.opaque, sent="text" if block.readable else None)
    return "\n\n".join(block.readable for block in thoughts if block.readable)


def _call(call: ToolCallBlock, place: int, losses: Losses) -> Wire:
    losses.lose_states(call.opaque)
    if not has_no_arguments(call.arguments) and not is_object(call.arguments):
        sent = {INVALID_JSON: call.arguments}
        losses.lose("tool arguments", call.arguments, "arguments must be a JSON object", sent=sent, key=call.id)
    return write_call(call, place)


def _result(result: ToolResultBlock, names: dict[str, str], losses: Losses) -> Wire:
    fields = dict(losses.own_fields(result.carried))
    written: Wire = {"role": "tool", "content": "".join(_text(part, losses) for part in result.content)}
    images = [data for part in result.content if isinstance(part, ImageBlock) for data in _image(part, losses)]
    if images:
        written["images"] = images
    name = result.name or names.get(result.call_id, "")
    if name:
        written["tool_name"] = name
    unnamed = "tool_call_id" in fields and fields.pop("tool_call_id") is None
    answered = {"tool_call_id": result.call_id} if result.call_id and not unnamed else {}
    return {**written, **answered, **fields}


def _image(block: ImageBlock, losses: Losses) -> list[str]:
    inline = _DATA_URL.fullmatch(block.url)
    if inline or block.data:
        return [inline[1] if inline else block.data]
    losses.lose("image", block.url, "Ollama takes pictures as data, not by address", key=block.url)
    return []


DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    expresses=frozenset(
        (
            "sampling.top_k",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations("Ollama takes text and pictures", "document"),
        **limitations("Ollama answers once", "choices", sent=1),
        **limitations("Ollama leaves the choice of tools to the model", "tool_choice.parallel", same=(True,)),
        **limitations("Ollama does not bind tool arguments to their schema", "tools.strict", same=(False,)),
        **limitations("Ollama does not tell a failed tool from another", "tool_result.is_error"),
        **limitations("Ollama chooses the detail itself", "image.detail", same=("auto",)),
        **limitations("Ollama always holds to the schema", "output_format.strict", same=(True,)),
        **limitations("Ollama has no such field", "output_format.description"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body."""
    extra = dict(losses.own_extra(request))
    body: dict[str, Any] = {"model": request.model, "messages": encode_messages(request, losses)}
    tools = [wire for tool in _offered(request, losses) for wire in write_tool(tool, losses)]
    if tools:
        body["tools"] = tools
    options = {**_object(extra.pop("options", None)), **_options(request)}
    if options:
        body["options"] = options
    body |= _format(request.output_format)
    # Silence means a stream here.
    body["stream"] = request.stream
    return merge_fields({**body, **extra}, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control."""
    return (request.control or Control()).fields


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _offered(request: Request, losses: Losses) -> tuple[Tool, ...]:
    """Return the tools that may be called: Ollama has no field that chooses among them."""
    choice = request.tool_choice or ToolChoice()
    why = "Ollama leaves the choice of tools to the model"
    if choice.mode == "none" and request.tools:
        losses.lose("tool_choice", "none", f"{why}, so none is offered", sent="no tools")
        return ()
    if choice.mode == "required":
        losses.lose("tool_choice", "required", why)
    if choice.mode != "named":
        return request.tools
    losses.lose("tool_choice", choice.name, f"{why}, so only that one is offered")
    return tuple(tool for tool in request.tools if tool.name == choice.name)


def _options(request: Request) -> dict[str, Any]:
    options = encode_sampling(request.sampling, SAMPLING)
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    return options


def _format(output_format: OutputFormat | None) -> dict[str, Any]:
    if output_format is None:
        return {}
    return {
        "format": "json"
        if output_format.mode == "json_object" or output_format.schema is None
        else output_format.schema
    }
