"""A Request as the body of an interaction, for one provider.

Messages are written as its `input`, always as steps. Nothing is stored for a client of another dialect, which knows nothing of interactions
that go on; Google's default is to store.
"""

from __future__ import annotations

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.gemini.wire import FORMAT, arguments_object
from bardo.dialects.gemini_interactions.step_objects import StepObject, call_step, output_step, own_states, thought_step
from bardo.dialects.gemini_interactions.wire import NAME, SAMPLING, TITLE
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.json_values import JsonObject, object_in
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import as_text, data_of, type_by_name
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.request import Control, Message, OutputFormat, Request, Tool, ToolChoice


def write_messages(messages: tuple[Message, ...], losses: Losses) -> tuple[str, list[StepObject]]:
    """Return the system instruction and the steps. Only the first messages can be the system's."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    system = "\n\n".join(message.paragraphs for message in messages[:leading])
    for block in (block for message in messages[:leading] for block in message.blocks):
        if not isinstance(block, TextBlock):
            losses.lose_each(
                "system", type(block).__name__.removesuffix("Block").lower(), "the system instruction is text"
            )
    return system, [step for message in messages[leading:] for step in _steps(message, losses)]


def _steps(message: Message, losses: Losses) -> list[StepObject]:
    if message.role == "system":
        losses.lose("messages.role", "system", "only the first messages can be the system's", sent="user")
    if message.role == "assistant":
        return [step for block in message.blocks for step in _block_steps(block, losses)]
    steps: list[StepObject] = []
    contents: list[JsonObject] = []
    for block in message.blocks:
        if isinstance(block, ToolResultBlock):
            steps.append(_result(block, losses))
        else:
            contents += _contents(block, losses)
    beside = fields_for(NAME, message.carried)
    return [*steps, {"type": "user_input", "content": contents, **beside}] if contents or beside or not steps else steps


def _block_steps(block: Block, losses: Losses) -> list[StepObject]:
    match block:
        case TextBlock():
            return [output_step(msgspec.structs.replace(block, opaque=_native_states(block.opaque, "text", losses)))]
        case RefusalBlock():
            return [output_step(block)]
        case ReasoningBlock():
            return _encode_thought(block, losses)
        case ToolCallBlock():
            return [_call(block, losses)]
        case ToolResultBlock():
            return [_result(block, losses)]
        case UnknownBlock(dialect=dialect, value=value) if dialect == NAME and isinstance(value, dict):
            return [value] if _is_step(value) else [{"type": "model_output", "content": [value]}]
        case _:
            contents = _contents(block, losses)
            return [{"type": "model_output", "content": contents}] if contents else []


def _is_step(value: JsonObject) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind == "model_output" or kind.endswith(("_call", "_result")))


def _encode_thought(block: ReasoningBlock, losses: Losses) -> list[StepObject]:
    formats = {state.format for state in block.opaque} or {block.format}
    if FORMAT not in formats:
        asked = next((name for name in (*sorted(formats), block.format) if name), "unsigned")
        losses.lose("reasoning", asked, "Gemini takes back only its own thoughts", key=asked)
        return []
    losses.lose_fields(block.carried)
    return [thought_step(msgspec.structs.replace(block, opaque=_native_states(block.opaque, "reasoning", losses)))]


def _call(block: ToolCallBlock, losses: Losses) -> StepObject:
    if arguments_object(block.arguments)[1]:
        why = "arguments must be an object, so the text stands under a key of its own"
        losses.lose("tool_call.arguments", block.id, why, sent="_raw", key=block.id)
    return call_step(msgspec.structs.replace(block, opaque=_native_states(block.opaque, "tool_call", losses)))


def _native_states(states: tuple[Opaque, ...], what: str, losses: Losses) -> tuple[Opaque, ...]:
    for state in states:
        if state.format != FORMAT:
            form = state.format or state.kind
            losses.lose(f"{what}.opaque", form, "only the provider that made it can read it", key=form)
    return own_states(states)


def _result(block: ToolResultBlock, losses: Losses) -> StepObject:
    plain = len(block.content) == 1 and isinstance(block.content[0], TextBlock)
    text = block.text
    result: str | JsonObject | list[JsonObject]
    if not block.content:
        result = ""
    elif not plain:
        result = [content for inner in block.content for content in _contents(inner, losses)]
    else:
        value = object_in(text)
        result = text if value is None else value
    step: StepObject = {"type": "function_result", "call_id": block.call_id, "result": result}
    if block.name:
        step["name"] = block.name
    if block.is_error:
        step["is_error"] = True
    return {**step, **losses.own_fields(block.carried)}


def _contents(block: Block, losses: Losses) -> list[JsonObject]:
    match block:
        case TextBlock() | RefusalBlock():
            return [{"type": "text", "text": block.text, **losses.own_fields(block.carried)}]
        case ImageBlock():
            return [_image(block, losses)]
        case DocumentBlock():
            return [_document(block, losses)]
        case UnknownBlock():
            return [block.value] if block.dialect == NAME else []
        case _:
            kind = type(block).__name__.removesuffix("Block").lower()
            losses.lose(f"{kind} of the user", kind, "only the model has such steps")
            return []


def _document(block: DocumentBlock, losses: Losses) -> JsonObject:
    own = losses.own_fields(block.carried)
    media_type, data = data_of(block)
    text = as_text(block)
    if text and media_type != "text/csv":
        losses.lose("document.form", "document", "a document that is text goes as text", sent="text")
        return {"type": "text", "text": text, **own}
    if data:
        return {"type": "document", "mime_type": media_type, "data": data, **own}
    return {"type": "document", "mime_type": block.media_type or type_by_name(block.url), "uri": block.url, **own}


def _image(block: ImageBlock, losses: Losses) -> JsonObject:
    kind, data, url = block.media_type, block.data, block.url
    head, comma, inline = url.partition(";base64,")
    if comma and head.startswith("data:"):
        kind, data, url = head[5:], inline, ""
    fields = {"mime_type": kind, "data": data, "uri": url}
    return {
        "type": "image",
        **{name: value for name, value in fields.items() if value},
        **losses.own_fields(block.carried),
    }


DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    needs_turn=True,
    names_results=True,
    expresses=frozenset(("document", "document.source", "tool_result.is_error", *sampling_fields(SAMPLING))),
    lacks={
        **limitations(f"{TITLE} gives one answer", "choices", sent=1),
        **limitations(
            f"{TITLE} has no such field", *sampling_fields(SAMPLING, others=True), "output_format.description"
        ),
        **limitations(f"{TITLE} has no such field", "tools.strict", same=(False,)),
        **limitations(f"{TITLE} has no such field", "tool_choice.parallel", same=(True,)),
        **limitations(f"{TITLE} has no such field", "image.detail", same=("auto",)),
        **limitations("Gemini takes a document without its name", "document.name"),
        **limitations("Gemini always holds to the schema", "output_format.strict", same=(True,)),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body."""
    extra = dict(losses.own_extra(request))
    system, steps = write_messages(request.messages, losses)
    held = extra.pop("generation_config", None)
    body = {
        **extra,
        "model": None if "agent" in extra else request.model,
        "input": steps or None,
        "system_instruction": system or None,
        "tools": _tools(request.tools, losses) or None,
        "response_format": extra.get("response_format") or _output_format(request.output_format),
        "generation_config": {**_config(request), **(held if isinstance(held, dict) else {})} or None,
        "stream": True if request.stream else None,
        "store": extra.get("store", None if request.dialect == NAME else False),
    }
    written = {name: value for name, value in body.items() if value is not None}
    return merge_fields(written, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking: the control."""
    return (request.control or Control()).fields


def _config(request: Request) -> JsonObject:
    config = {
        **encode_sampling(request.sampling, SAMPLING),
        "max_output_tokens": request.max_output_tokens,
        "tool_choice": _tool_choice(request.tool_choice),
    }
    return {name: value for name, value in config.items() if value is not None}


def _tool_choice(choice: ToolChoice | None) -> str | JsonObject | None:
    if choice is None:
        return None
    if choice.mode == "named":
        return {"allowed_tools": {"mode": "any", "tools": [choice.name]}}
    return "any" if choice.mode == "required" else choice.mode


def _tools(tools: tuple[Tool, ...], losses: Losses) -> list[JsonObject]:
    written: list[JsonObject] = []
    for tool in tools:
        if tool.hosted and (tool.carried is None or tool.carried.dialect != NAME):
            losses.lose_tool(tool)
            continue
        fields = losses.own_fields(tool.carried)
        written.append(fields if tool.hosted else {**_function(tool), **fields})
    return written


def _function(tool: Tool) -> JsonObject:
    function = {
        "type": "function",
        "name": tool.name,
        "description": tool.description or None,
        "parameters": tool.schema,
    }
    return {name: value for name, value in function.items() if value is not None}


def _output_format(output_format: OutputFormat | None) -> JsonObject | None:
    if output_format is None:
        return None
    shape: JsonObject = {"type": "text", "mime_type": "application/json"}
    return shape if output_format.schema is None else {**shape, "schema": output_format.schema}
