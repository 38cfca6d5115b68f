"""A Request for a server that speaks Ollama's own API.

A message has one text, pictures beside it, and thinking as text; results are messages of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.ollama.wire import NAME, SAMPLING, TITLE, write_call
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.json_values import INVALID_JSON, JsonObject, is_object
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

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    names_results=True,
    expresses=frozenset(sampling_fields(SAMPLING)),
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


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body."""
    extra = dict(losses.own_extra(request))
    blocks = [block for message in request.messages for block in message.blocks]
    names = {block.id: block.name for block in blocks if isinstance(block, ToolCallBlock)}
    messages = [wire for message in request.messages for wire in _messages(message, names, losses)]
    body: JsonObject = {"model": request.model, "messages": messages}
    tools = [wire for tool in _offered(request, losses) for wire in write_tool(tool, losses)]
    if tools:
        body["tools"] = tools
    own_options = extra.pop("options", None)
    options = {**(own_options if isinstance(own_options, dict) else {}), **encode_sampling(request.sampling, SAMPLING)}
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    if options:
        body["options"] = options
    if request.output_format is not None:
        body["format"] = _format(request.output_format)
    # Silence means a stream here.
    body["stream"] = request.stream
    return merge_fields({**body, **extra}, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking: the control."""
    return (request.control or Control()).fields


def _messages(message: Message, names: dict[str, str], losses: Losses) -> list[JsonObject]:
    """Return the results of a message, each a message, and behind them one of all else. `names` are those of tools by the ids of calls."""
    fields = losses.own_fields(message.carried)
    results: list[ToolResultBlock] = []
    texts: list[TextBlock | RefusalBlock] = []
    thoughts: list[ReasoningBlock] = []
    images: list[ImageBlock] = []
    calls: list[ToolCallBlock] = []
    for block in message.blocks:
        match block:
            case ToolResultBlock():
                results.append(block)
            case TextBlock() | RefusalBlock():
                texts.append(block)
            case ReasoningBlock():
                thoughts.append(block)
            case ToolCallBlock():
                calls.append(block)
            case ImageBlock():
                images.append(block)
    written = [_result(result, names, losses) for result in results]
    if not results or len(results) < len(message.blocks):
        between = "" if message.role == "assistant" else "\n\n"
        wire: JsonObject = {"role": message.role, "content": _text(texts, losses, between)}
        for thought in thoughts:
            losses.lose_fields(thought.carried)
            losses.lose_states(thought.opaque, sent="text" if thought.readable else None)
        if thinking := "\n\n".join(filter(None, [thought.readable for thought in thoughts])):
            wire["thinking"] = thinking
        if pictures := _images(images, losses):
            wire["images"] = pictures
        if calls:
            wire["tool_calls"] = [_call(call, place, losses) for place, call in enumerate(calls)]
        written.append(wire)
    written[-1] |= fields
    return written


def _result(result: ToolResultBlock, names: dict[str, str], losses: Losses) -> JsonObject:
    fields = dict(losses.own_fields(result.carried))
    written: JsonObject = {"role": "tool", "content": _text(result.content, losses, "")}
    if images := _images(result.content, losses):
        written["images"] = images
    if name := result.name or names.get(result.call_id, ""):
        written["tool_name"] = name
    unnamed = "tool_call_id" in fields and fields.pop("tool_call_id") is None
    if result.call_id and not unnamed:
        written["tool_call_id"] = result.call_id
    return written | fields


def _text(blocks: Iterable[Block], losses: Losses, between: str) -> str:
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            losses.lose_states(block.opaque)
        if isinstance(block, TextBlock | RefusalBlock) and block.text:
            texts.append(block.text)
    return between.join(texts)


def _images(blocks: Iterable[Block], losses: Losses) -> list[str]:
    images: list[str] = []
    for block in blocks:
        if not isinstance(block, ImageBlock):
            continue
        if inline := _DATA_URL.fullmatch(block.url):
            images.append(inline[1])
        elif block.data:
            images.append(block.data)
        else:
            losses.lose("image", block.url, "Ollama takes pictures as data, not by address", key=block.url)
    return images


_DATA_URL = re.compile(r"data:[^;,]*;base64,(.*)", re.DOTALL)


def _call(call: ToolCallBlock, place: int, losses: Losses) -> JsonObject:
    losses.lose_states(call.opaque)
    if not has_no_arguments(call.arguments) and not is_object(call.arguments):
        sent = {INVALID_JSON: call.arguments}
        losses.lose("tool arguments", call.arguments, "arguments must be a JSON object", sent=sent, key=call.id)
    return write_call(call, place)


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


def _format(output_format: OutputFormat) -> str | JsonObject:
    if output_format.mode == "json_object" or output_format.schema is None:
        return "json"
    schema: JsonObject = output_format.schema
    return schema
