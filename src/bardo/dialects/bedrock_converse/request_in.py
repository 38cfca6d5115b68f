"""A client's Converse request to a Request. Model and streaming stand in the path, so they come with the Arrival.

The fields of a block or a tool that are not read are carried in its own shape.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import msgspec

from bardo.dialects.bedrock_converse import wire
from bardo.dialects.bedrock_converse.wire import (
    ADDITIONAL,
    AMOUNTS,
    FIELD,
    MARKER,
    NAME,
    SAMPLING,
    SIGNED_BLOCKS,
    THOUGHT,
    is_hosted,
    unknown_fields,
)
from bardo.dialects.shared.control_fields import decode_sampling
from bardo.dialects.shared.json_values import (
    JsonObject,
    arguments_of,
    decode_object,
    inner_fields,
    required,
    without,
    write_json,
)
from bardo.dialects.shared.media import MEDIA_TYPES
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.states import Carrier, settled
from bardo.dialects.shared.structs import carried, names_of, read
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    EFFORTS,
    Effort,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Role,
    Tool,
    ToolChoice,
)
from bardo.values.wire import Arrival

_READ = {
    **dict.fromkeys(names_of(wire.Request), frozenset[str]()),
    "inferenceConfig": names_of(wire.InferenceConfig),
    "outputConfig": names_of(wire.OutputConfig),
    ADDITIONAL: names_of(wire.AdditionalFields),
}
"""The fields of a request that are read, and those read inside objects."""
_APART = ("modelId", "bardo")
_INNER: dict[tuple[str, ...], Collection[str]] = {
    ("toolConfig",): names_of(wire.ToolConfig),
    ("toolConfig", "toolChoice"): names_of(wire.ToolChoice),
    ("toolConfig", "toolChoice", "auto"): (),
    ("toolConfig", "toolChoice", "any"): (),
    ("toolConfig", "toolChoice", "tool"): names_of(wire.NamedTool),
    ("outputConfig", "textFormat"): names_of(wire.TextFormat),
    ("outputConfig", "textFormat", "structure"): names_of(wire.Structure),
    ("outputConfig", "textFormat", "structure", "jsonSchema"): names_of(wire.JsonSchema),
}
"""The fields read deeper inside them."""


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    try:
        fields = decode_object(body)
        # Fields that are only carried are not looked at: where one is unknown, the messages need no second look.
        request = read({name: fields[name] for name in _READ if name in fields}, wire.Request, "")
        config, tools, output = request.inference_config, request.tool_config, request.output_config
        limit = None if config is None else config.max_tokens
        if limit is not None and limit < 1:
            raise InvalidRequest("inferenceConfig.maxTokens must be at least 1", param="inferenceConfig.maxTokens")
        top_k, left = _top_k(request.additional_model_request_fields, fields.get(ADDITIONAL) or {})
        if fields.get("stream") is bool(arrival.stream):
            # Some clients say again what the path says, and Bedrock has no such field.
            del fields["stream"]
        extra = {name: value for name, value in fields.items() if name not in _READ and name not in _APART}
        for name in ("inferenceConfig", "outputConfig"):
            if others := {key: value for key, value in (fields.get(name) or {}).items() if key not in _READ[name]}:
                extra[name] = others
        if left:
            extra[ADDITIONAL] = left
        return Request(
            model=arrival.model or required(fields, "modelId", str),
            messages=_messages(request, fields),
            tools=()
            if tools is None
            else tuple(
                [_tool(*pair) for pair in zip(tools.tools or (), fields["toolConfig"].get("tools") or (), strict=True)]
            ),
            tool_choice=None if tools is None or tools.tool_choice is None else _tool_choice(tools.tool_choice),
            max_output_tokens=limit,
            sampling=msgspec.structs.replace(
                decode_sampling(fields.get("inferenceConfig") or {}, SAMPLING, "inferenceConfig."), top_k=top_k
            ),
            reasoning=_reasoning(request.additional_model_request_fields, fields.get(ADDITIONAL) or {}),
            output_format=None if output is None or output.text_format is None else _output_format(output.text_format),
            stream=bool(arrival.stream),
            dialect=NAME,
            extra=extra,
            inner_fields=inner_fields(fields, _INNER),
            body={name: value for name, value in fields.items() if name != "bardo"},
            body_bytes=body,
            options=read_options(fields),
        )
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _messages(request: wire.Request, fields: JsonObject) -> tuple[Message, ...]:
    """Return the system prompt as the first message, and the others; each result has the name of its tool, which other dialects ask for."""
    names = {
        block.tool_use.tool_use_id: block.tool_use.name
        for blocks in (request.system or (), *[message.content for message in request.messages])
        for block in blocks
        if block.tool_use is not None and not block.reasoning_content and not is_hosted(block.tool_use.type, "tool_use")
    }
    messages: list[Message] = []
    if request.system:
        messages.append(Message("system", _blocks(request.system, fields["system"], names)))
    for place, (message, raw) in enumerate(zip(request.messages, fields["messages"], strict=True)):
        role = _ROLES.get(message.role)
        if role is None:
            param = f"messages[{place}].role"
            raise InvalidRequest(f"{param} is {message.role!r}", hint=f"use {', '.join(_ROLES)}", param=param)
        rest = None if len(raw) == 2 else carried(without(raw, "role", "content"), NAME)
        messages.append(Message(role, _blocks(message.content, raw["content"], names), rest))
    return tuple(messages)


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


def _blocks(blocks: Sequence[wire.Block], raw: Sequence[JsonObject], names: dict[str, str]) -> tuple[Block, ...]:
    """Return the blocks of a message. `raw` is what they were read from, `names` those of the tools that were called, by ids."""
    blocks_read: list[Block | Carrier] = []
    for block, whole in zip(blocks, raw, strict=True):
        if block.reasoning_content is not None:
            blocks_read += _thinking(block.reasoning_content, whole)
        elif block.tool_use is not None and not is_hosted(block.tool_use.type, "tool_use"):
            blocks_read.append(_call(block.tool_use, whole))
        elif block.tool_result is not None and not is_hosted(block.tool_result.type, "tool_result"):
            blocks_read.append(_result(block.tool_result, whole, names))
        else:
            blocks_read.append(_part(block, whole))
    return settled(blocks_read)


def _thinking(thought: wire.ReasoningContent, whole: JsonObject) -> list[ReasoningBlock | Carrier]:
    rest = carried(unknown_fields(whole, THOUGHT), NAME)
    blocks: list[ReasoningBlock | Carrier] = []
    spoken = thought.reasoning_text
    if spoken is not None or thought.redacted_content is None:
        spoken = spoken or wire.ReasoningText()
        states = SIGNED_BLOCKS.decode_signature(spoken.signature or "")
        form = states[0].format if states else FIELD
        blocks.append(ReasoningBlock(text=spoken.text or "", format=form, opaque=states, carried=rest))
    if thought.redacted_content is not None:
        redacted = SIGNED_BLOCKS.decode_redacted(thought.redacted_content)
        form = redacted.states[0].format if redacted.states else FIELD
        thinking = ReasoningBlock(format=form, opaque=redacted.states, carried=rest)
        blocks.append(thinking if redacted.owner is None else Carrier(redacted.states, redacted.owner, thinking))
    return blocks


def _call(use: wire.ToolUse, whole: JsonObject) -> ToolCallBlock:
    plain = len(whole) == 1 and use.others is None and use.type is None
    return ToolCallBlock(
        id=use.tool_use_id,
        name=use.name,
        arguments=arguments_of(use.input or {}),
        carried=None if plain else carried(unknown_fields(whole, wire.CALL), NAME),
    )


def _result(result: wire.ToolResult, whole: JsonObject, names: dict[str, str]) -> ToolResultBlock:
    raw, is_error = whole["toolResult"], result.status == "error"
    rest = None
    if len(whole) > 1 or result.others is not None or result.type is not None or (result.status and not is_error):
        read_here = {"toolUseId": None, "content": None, **({"status": None} if is_error else {})}
        rest = carried(unknown_fields(whole, {"toolResult": read_here}), NAME)
    content: list[ResultPart] = []
    for part, item in zip(result.content or (), raw.get("content") or (), strict=True):
        if "json" in item and part.text is None:
            # Other dialects take text, so the value is told as its JSON, and goes back to Converse as it was.
            content.append(TextBlock(write_json(part.json).decode(), carried=carried(item, NAME)))
        else:
            content.append(_part(part, item))
    return ToolResultBlock(
        call_id=result.tool_use_id,
        name=names.get(result.tool_use_id, ""),
        content=tuple(content),
        is_error=is_error,
        carried=rest,
    )


def _part(part: wire.Part, whole: JsonObject) -> ResultPart:
    """Return a block that may stand in a tool result too; one that cannot be read is kept whole."""
    if part.text is not None:
        return TextBlock(part.text, carried=None if len(whole) == 1 else carried(without(whole, "text"), NAME))
    image = part.image
    if image is not None:
        if image.source.bytes is None:
            return UnknownBlock(NAME, whole)
        rest = carried(unknown_fields(whole, _IMAGE), NAME)
        return ImageBlock(media_type=f"image/{image.format}", data=image.source.bytes, carried=rest)
    if part.document is not None:
        return _document(part.document, whole)
    if part.citations_content is not None:
        return _cited(part.citations_content, whole)
    return UnknownBlock(NAME, whole)


_IMAGE: JsonObject = {"image": {"format": None, "source": {"bytes": None}}}
_DOCUMENT: JsonObject = {"document": {"format": None, "name": None, "source": None}}


def _document(document: wire.Document, whole: JsonObject) -> DocumentBlock | UnknownBlock:
    media_type = MEDIA_TYPES.get(document.format or "txt", "")
    source = document.source
    if not media_type or (source.bytes is None and source.text is None) or len(whole["document"]["source"]) != 1:
        return UnknownBlock(NAME, whole)
    return DocumentBlock(
        media_type=media_type,
        name=document.name or "",
        data=source.bytes or "",
        text=source.text or "",
        carried=carried(unknown_fields(whole, _DOCUMENT), NAME),
    )


def _cited(cited: wire.CitationsContent, whole: JsonObject) -> TextBlock:
    pieces = whole["citationsContent"].get("content") or []
    text = "".join([piece.text or "" for piece in cited.content or ()])
    fields = {"citations": [], **without(whole["citationsContent"], "content")}
    if pieces != [{"text": text}]:
        fields["content"] = pieces
    if more := without(whole, "citationsContent"):
        fields["block"] = more
    return TextBlock(text, carried=carried(fields, NAME))


_SPEC: JsonObject = {"toolSpec": {"name": None, "description": None, "inputSchema": {"json": None}, "strict": None}}


def _tool(tool: wire.Tool, whole: JsonObject) -> Tool:
    """Return a function, or an entry of another kind (a system tool, a cache point), which is carried whole."""
    spec, system = tool.tool_spec, tool.system_tool
    if spec is None:
        name = (system and system.name) or next(iter(whole), "")
        return Tool(name=name, hosted=True, carried=Carried(NAME, whole))
    return Tool(
        name=spec.name,
        description=spec.description or "",
        schema=spec.input_schema.json,
        strict=spec.strict,
        carried=carried(unknown_fields(whole, _SPEC), NAME),
    )


def _tool_choice(choice: wire.ToolChoice) -> ToolChoice:
    if choice.tool is not None:
        return ToolChoice(mode="named", name=choice.tool.name)
    if choice.any is not None:
        return ToolChoice(mode="required")
    if choice.auto is not None:
        return ToolChoice(mode="auto")
    at = "toolConfig.toolChoice"
    raise InvalidRequest(f"{at} is none of auto, any and tool", hint="use one of them", param=at)


def _output_format(text: wire.TextFormat) -> OutputFormat:
    at = "outputConfig.textFormat"
    if text.type != "json_schema":
        raise InvalidRequest(f"{at}.type is {text.type!r}", hint="use json_schema", param=f"{at}.type")
    if text.structure is None:
        raise InvalidRequest(f"{at}.structure is required", param=f"{at}.structure")
    given = text.structure.json_schema
    try:
        schema = msgspec.json.decode(given.schema)
    except (msgspec.DecodeError, RecursionError) as problem:
        param = f"{at}.structure.jsonSchema.schema"
        raise InvalidRequest(f"{param} is not JSON: {problem}", param=param) from problem
    return OutputFormat(
        mode="json_schema", name=given.name or "", schema=schema, strict=True, description=given.description or ""
    )


def _top_k(additional: wire.AdditionalFields | None, raw: JsonObject) -> tuple[int | None, JsonObject]:
    """Return `top_k`, wherever its family has it, and the fields that are only carried."""
    left = {name: value for name, value in raw.items() if name not in _READ[ADDITIONAL]}
    nested = left.get("inferenceConfig")
    if (
        additional is None
        or additional.top_k is not None
        or not isinstance(nested, dict)
        or not nested.keys() <= {"topK"}
    ):
        return None if additional is None else additional.top_k, left
    del left["inferenceConfig"]
    return read(nested, wire.TopK, f"{ADDITIONAL}.inferenceConfig").top_k, left


def _reasoning(additional: wire.AdditionalFields | None, raw: JsonObject) -> ReasoningPolicy | None:
    """Return how the model should think. What else stands in the fields that say it is carried."""
    fields = {name: raw[name] for name in AMOUNTS if raw.get(name) is not None}
    if additional is None or not fields:
        return None
    config = additional.reasoning_config
    thinking = additional.thinking or (config if isinstance(config, wire.Thinking) else wire.Thinking())
    kind = thinking.type or ""
    if additional.reasoningConfig is not None and thinking == wire.Thinking():
        kind = additional.reasoningConfig.type or ""
    word = _effort_word(additional)
    effort = _effort(word)
    if word == "none" or kind == "disabled":
        policy = ReasoningPolicy(mode="off", effort=effort)
    elif kind == "enabled" and thinking.budget_tokens is not None:
        policy = ReasoningPolicy(mode="budget", budget=thinking.budget_tokens, effort=effort)
    elif effort is not None:
        policy = ReasoningPolicy(mode="effort", effort=effort)
    else:
        policy = ReasoningPolicy(mode="auto")
    return msgspec.structs.replace(
        policy,
        visible=None if thinking.display is None else thinking.display != "omitted",
        enables_thinking=fields.keys() != {"output_config"},
        between_tools=kind == "between_tools",
        carried=carried(unknown_fields(fields, _WORDS), NAME),
        raw_fields={ADDITIONAL: fields},
    )


_WORDS = {**AMOUNTS, "thinking": {**AMOUNTS["thinking"], "display": None}}


def _effort_word(additional: wire.AdditionalFields) -> str:
    """Return the level, from whichever field has it."""
    output, reasoning, amazon = additional.output_config, additional.reasoning, additional.reasoningConfig
    config = additional.reasoning_config
    return (
        (output and output.effort)
        or (reasoning and reasoning.effort)
        or (amazon and amazon.max_reasoning_effort)
        or additional.reasoning_effort
        or (config if isinstance(config, str) else "")
        or ""
    )


def _effort(word: str) -> Effort | None:
    if word in ("", "none"):
        return None
    for effort in EFFORTS:
        if effort == word:
            return effort
    raise InvalidRequest(f"{ADDITIONAL} asks for effort {word!r}", hint=f"use {', '.join(EFFORTS)}", param=ADDITIONAL)


Entry = TypeVar("Entry", Block, Tool)


def with_markers(request: Request) -> Request:
    """Return a request with Anthropic's markers in place of its cache points, for a provider of another dialect.

    A point marks the block or the function before it. One without such a thing before it stays, and is lost like other blocks.
    """
    tools = _marked(request.tools)
    messages = tuple([msgspec.structs.replace(message, blocks=_marked(message.blocks)) for message in request.messages])
    if (tools, messages) == (request.tools, request.messages):
        return request
    return msgspec.structs.replace(request, tools=tools, messages=messages, body=None, body_bytes=b"")


def _marked(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return blocks or tools without the cache points among them, and those before these with a marker."""
    marked: list[Any] = []
    for entry in entries:
        own = entry.value if isinstance(entry, UnknownBlock) else getattr(entry.carried, "fields", None)
        point = own.get("cachePoint") if isinstance(own, dict) and len(own) == 1 else None
        before: Any = marked[-1] if marked else None
        plain = before is not None and not isinstance(before, UnknownBlock | ReasoningBlock)
        if not isinstance(point, dict) or not plain or getattr(before, "hosted", False):
            marked.append(entry)
            continue
        ttl = {"ttl": point["ttl"]} if point.get("ttl") else {}
        fields = {} if before.carried is None else before.carried.fields
        beside = {"cachePoint": left} if (left := without(point, "type", "ttl")) else {}
        carried = Carried(NAME, {**fields, MARKER: {"type": "ephemeral", **ttl}, **beside})
        marked[-1] = msgspec.structs.replace(before, carried=carried)
    return tuple(marked)
