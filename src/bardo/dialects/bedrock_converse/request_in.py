"""A client's Converse request to a Request. Model and streaming stand in the path, so they come with the Arrival.

The messages of a request: Converse's content blocks to ours. What a block holds beside what we know is carried in its own shape.

What a request says beside its messages: tools, output format, and how to think in the words of one model family.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.bedrock_converse.wire import FIELD, NAME, SAMPLING, SIGNED_BLOCKS, THOUGHT, unknown_fields
from bardo.dialects.shared.control_fields import decode_sampling
from bardo.dialects.shared.json_values import arguments_of, decode_object, optional, required, take, without, write_json
from bardo.dialects.shared.media import MEDIA_TYPES
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.states import Carrier, settled
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

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_CALL: dict[str, Any] = {"toolUse": {"toolUseId": None, "name": None, "input": None}}
_DOCUMENT: dict[str, Any] = {"document": {"format": None, "name": None, "source": None}}
_IMAGE: dict[str, Any] = {"image": {"format": None, "source": {"bytes": None}}}


def read_system(value: list[Any] | None) -> tuple[Message, ...]:
    """Return the system prompt as the first message."""
    if not value:
        return ()
    return (Message("system", _content(value, "system")),)


def read_message(message: dict[str, Any], at: str) -> Message:
    """Return one message."""
    role = required(message, "role", str, at)
    if role not in _ROLES:
        raise InvalidRequest(f"{at}role is {role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    content = _content(required(message, "content", list, at), f"{at}content")
    return Message(_ROLES[role], content, carried(without(message, "role", "content")))


def with_tool_names(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return each tool result the name of the tool that was called, which other dialects ask for."""
    names = {
        block.id: block.name for message in messages for block in message.blocks if isinstance(block, ToolCallBlock)
    }
    return tuple(
        msgspec.structs.replace(message, blocks=tuple(_with_tool_name(block, names) for block in message.blocks))
        for message in messages
    )


def _with_tool_name(block: Block, names: dict[str, str]) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    return msgspec.structs.replace(block, name=names.get(block.call_id, ""))


def carried(fields: dict[str, Any]) -> Carried | None:
    """Return fields of this dialect to be passed on, or None where there are none."""
    return Carried(NAME, fields) if fields else None


def _content(value: list[Any], at: str) -> tuple[Block, ...]:
    blocks: list[Block | Carrier] = []
    for place, item in enumerate(value):
        _read_block(take(item, dict, f"{at}[{place}]"), f"{at}[{place}].", blocks)
    return settled(blocks)


def _read_block(block: dict[str, Any], at: str, before: list[Block | Carrier]) -> None:
    if block.get(FIELD) is not None:
        _read_thought(block, at, before)
    elif block.get("toolUse") is not None and not _is_hosted(block["toolUse"]):
        before.append(_read_call(block, at))
    elif block.get("toolResult") is not None and block["toolResult"] and not _is_hosted_result(block["toolResult"]):
        before.append(_read_result(block, at))
    else:
        before.append(_read_plain(block, at))


def _is_hosted(use: Any) -> bool:
    return isinstance(use, dict) and str(use.get("type") or "tool_use") != "tool_use"


def _is_hosted_result(result: Any) -> bool:
    # Bedrock names the tool it ran itself; a caller's result has no type.
    return isinstance(result, dict) and str(result.get("type") or "tool_result") != "tool_result"


def _read_plain(block: dict[str, Any], at: str) -> ResultPart:
    """Return a block that may stand in a tool result too."""
    if block.get("text") is not None:
        return TextBlock(required(block, "text", str, at), carried=carried(without(block, "text")))
    if block.get("image") is not None:
        return _read_image(block, at)
    if block.get("document") is not None:
        return _read_document(block, at)
    if block.get("citationsContent") is not None:
        return _read_cited(block, at)
    return UnknownBlock(NAME, block)


def _read_image(block: dict[str, Any], at: str) -> ImageBlock | UnknownBlock:
    image = take(block["image"], dict, f"{at}image")
    form = required(image, "format", str, f"{at}image.")
    source = required(image, "source", dict, f"{at}image.")
    if source.get("bytes") is None:
        return UnknownBlock(NAME, block)
    data = required(source, "bytes", str, f"{at}image.source.")
    return ImageBlock(media_type=f"image/{form}", data=data, carried=carried(unknown_fields(block, _IMAGE)))


def _read_document(block: dict[str, Any], at: str) -> DocumentBlock | UnknownBlock:
    document = take(block["document"], dict, f"{at}document")
    at = f"{at}document."
    source = required(document, "source", dict, at)
    media_type = MEDIA_TYPES.get(optional(document, "format", str, at) or "txt", "")
    kind = next((kind for kind in ("bytes", "text") if source.get(kind) is not None), None)
    if not media_type or kind is None or source.keys() != {kind}:
        return UnknownBlock(NAME, block)
    content = required(source, kind, str, f"{at}source.")
    name = optional(document, "name", str, at) or ""
    held: dict[str, Any] = {"data" if kind == "bytes" else "text": content}
    return DocumentBlock(media_type=media_type, name=name, **held, carried=carried(unknown_fields(block, _DOCUMENT)))


def _read_cited(block: dict[str, Any], at: str) -> TextBlock:
    cited = take(block["citationsContent"], dict, f"{at}citationsContent")
    at = f"{at}citationsContent.content"
    pieces = optional(cited, "content", list, at.removesuffix("content")) or []
    text = "".join(
        optional(take(piece, dict, f"{at}[{place}]"), "text", str, f"{at}[{place}].") or ""
        for place, piece in enumerate(pieces)
    )
    fields = {"citations": [], **without(cited, "content")}
    if pieces != [{"text": text}]:
        fields["content"] = pieces
    if more := without(block, "citationsContent"):
        fields["block"] = more
    return TextBlock(text, carried=carried(fields))


def _read_thought(block: dict[str, Any], at: str, before: list[Block | Carrier]) -> None:
    thought = take(block[FIELD], dict, f"{at}{FIELD}")
    rest = carried(unknown_fields(block, THOUGHT))
    data = optional(thought, "redactedContent", str, f"{at}{FIELD}.")
    spoken = optional(thought, "reasoningText", dict, f"{at}{FIELD}.")
    if spoken is not None or data is None:
        inner = f"{at}{FIELD}.reasoningText."
        text = optional(spoken or {}, "text", str, inner) or ""
        states = SIGNED_BLOCKS.decode_signature(optional(spoken or {}, "signature", str, inner) or "")
        form = states[0].format if states else FIELD
        before.append(ReasoningBlock(text=text, format=form, opaque=states, carried=rest))
    if data is not None:
        before.append(_read_redacted(data, rest))


def _read_redacted(data: str, rest: Carried | None) -> ReasoningBlock | Carrier:
    found = SIGNED_BLOCKS.decode_redacted(data)
    form = found.states[0].format if found.states else FIELD
    thinking = ReasoningBlock(format=form, opaque=found.states, carried=rest)
    return thinking if found.owner is None else Carrier(found.states, found.owner, thinking)


def _read_call(block: dict[str, Any], at: str) -> ToolCallBlock:
    use = take(block["toolUse"], dict, f"{at}toolUse")
    at = f"{at}toolUse."
    given = use.get("input")
    return ToolCallBlock(
        id=required(use, "toolUseId", str, at),
        name=required(use, "name", str, at),
        arguments=arguments_of(take({} if given is None else given, dict, f"{at}input")),
        carried=carried(unknown_fields(block, _CALL)),
    )


def _read_result(block: dict[str, Any], at: str) -> ToolResultBlock:
    result = take(block["toolResult"], dict, f"{at}toolResult")
    at = f"{at}toolResult."
    status = optional(result, "status", str, at)
    known: dict[str, Any] = {"toolUseId": None, "content": None}
    if status == "error":
        known["status"] = None
    parts = optional(result, "content", list, at) or []
    return ToolResultBlock(
        call_id=required(result, "toolUseId", str, at),
        content=tuple(
            _read_part(take(part, dict, f"{at}content[{place}]"), f"{at}content[{place}].")
            for place, part in enumerate(parts)
        ),
        is_error=status == "error",
        carried=carried(unknown_fields(block, {"toolResult": known})),
    )


def _read_part(part: dict[str, Any], at: str) -> ResultPart:
    if "json" in part and part.get("text") is None:
        # Other dialects take text, so the value is told as its JSON, and goes back to Converse as it was.
        return TextBlock(write_json(part["json"]).decode(), carried=Carried(NAME, part))
    return _read_plain(part, at)


ADDITIONAL = "additionalModelRequestFields"
AMOUNTS: dict[str, Any] = {
    "thinking": {"type": None, "budget_tokens": None},
    "output_config": {"effort": None},
    "reasoning_effort": None,
    "reasoning": {"effort": None},
    "reasoning_config": {"type": None, "budget_tokens": None},
    "reasoningConfig": {"type": None, "maxReasoningEffort": None},
}
"""The additional fields that say how to think, in all families, and which of their words say how much."""
_READ = {**AMOUNTS, "thinking": {**AMOUNTS["thinking"], "display": None}}
_SPEC: dict[str, Any] = {"toolSpec": {"name": None, "description": None, "inputSchema": {"json": None}, "strict": None}}


def read_tool(value: Any, at: str) -> Tool:
    """Return a function, or an entry of another kind (a system tool, a cache point), which is carried whole."""
    tool = take(value, dict, at)
    if tool.get("toolSpec") is None:
        system = optional(tool, "systemTool", dict, f"{at}.") or {}
        name = optional(system, "name", str, f"{at}.systemTool.") or next(iter(tool), "")
        return Tool(name=name, hosted=True, carried=Carried(NAME, tool))
    spec = take(tool["toolSpec"], dict, f"{at}.toolSpec")
    at = f"{at}.toolSpec."
    return Tool(
        name=required(spec, "name", str, at),
        description=optional(spec, "description", str, at) or "",
        schema=optional(required(spec, "inputSchema", dict, at), "json", dict, f"{at}inputSchema."),
        strict=optional(spec, "strict", bool, at),
        carried=carried(unknown_fields(tool, _SPEC)),
    )


def read_tool_choice(tools: dict[str, Any]) -> ToolChoice | None:
    """Return which tools may be called."""
    choice = optional(tools, "toolChoice", dict, "toolConfig.")
    if choice is None:
        return None
    at = "toolConfig.toolChoice."
    if (named := optional(choice, "tool", dict, at)) is not None:
        return ToolChoice(mode="named", name=required(named, "name", str, f"{at}tool."))
    if choice.get("any") is not None:
        return ToolChoice(mode="required")
    if choice.get("auto") is not None:
        return ToolChoice(mode="auto")
    raise InvalidRequest(f"{at[:-1]} is none of auto, any and tool", hint="use one of them", param=at[:-1])


def read_output_format(output: dict[str, Any]) -> OutputFormat | None:
    """Return the shape of the answer."""
    found = optional(output, "textFormat", dict, "outputConfig.")
    if found is None:
        return None
    at = "outputConfig.textFormat."
    kind = required(found, "type", str, at)
    if kind != "json_schema":
        raise InvalidRequest(f"{at}type is {kind!r}", hint="use json_schema", param=f"{at}type")
    structure = required(found, "structure", dict, at)
    at += "structure."
    given = required(structure, "jsonSchema", dict, at)
    at += "jsonSchema."
    return OutputFormat(
        mode="json_schema",
        name=optional(given, "name", str, at) or "",
        schema=_schema(required(given, "schema", str, at), f"{at}schema"),
        strict=True,
        description=optional(given, "description", str, at) or "",
    )


def _schema(text: str, param: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise InvalidRequest(f"{param} is not JSON: {problem}", param=param) from problem


def read_additional(additional: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """Return `top_k`, wherever its family has it, and the fields that are left."""
    left = {name: value for name, value in additional.items() if name not in (*AMOUNTS, "top_k")}
    top_k = optional(additional, "top_k", int, f"{ADDITIONAL}.")
    nested = left.get("inferenceConfig")
    if top_k is None and isinstance(nested, dict) and nested.keys() <= {"topK"}:
        top_k = optional(nested, "topK", int, f"{ADDITIONAL}.inferenceConfig.")
        del left["inferenceConfig"]
    return top_k, left


def read_reasoning(additional: dict[str, Any]) -> ReasoningPolicy | None:
    """Return how the model should think. What else stands in the fields that say it is carried."""
    fields = {name: additional[name] for name in AMOUNTS if additional.get(name) is not None}
    if not fields:
        return None
    at = f"{ADDITIONAL}."
    effort = _effort(fields, at)
    thinking = optional(fields, "thinking", dict, at)
    if thinking is None and isinstance(fields.get("reasoning_config"), dict):
        thinking = fields["reasoning_config"]
    config = optional(fields, "reasoningConfig", dict, at) or {}
    kind = _kind(thinking or config, at)
    budget = optional(thinking or {}, "budget_tokens", int, f"{at}thinking.")
    display = optional(thinking or {}, "display", str, f"{at}thinking.")
    if effort == "none" or kind == "disabled":
        mode = ReasoningPolicy(mode="off", effort=None if effort == "none" else _parse_effort(effort, at))
    elif kind == "enabled" and budget is not None:
        mode = ReasoningPolicy(mode="budget", budget=budget, effort=_parse_effort(effort, at))
    elif effort:
        mode = ReasoningPolicy(mode="effort", effort=_parse_effort(effort, at))
    else:
        mode = ReasoningPolicy(mode="auto")
    rest = unknown_fields(fields, _READ)
    return msgspec.structs.replace(
        mode,
        visible=None if display is None else display != "omitted",
        enables_thinking=fields.keys() != {"output_config"},
        between_tools=kind == "between_tools",
        carried=Carried(NAME, rest) if rest else None,
        raw_fields={ADDITIONAL: fields},
    )


def _kind(fields: dict[str, Any], at: str) -> str:
    return optional(fields, "type", str, at) or ""


def _effort(fields: dict[str, Any], at: str) -> str:
    """Return the level, from whichever field has it."""
    nested = (("output_config", "effort"), ("reasoning", "effort"), ("reasoningConfig", "maxReasoningEffort"))
    for outer, inner in nested:
        found = optional(optional(fields, outer, dict, at) or {}, inner, str, f"{at}{outer}.")
        if found:
            return found
    if isinstance(fields.get("reasoning_config"), dict):
        return optional(fields, "reasoning_effort", str, at) or ""
    return optional(fields, "reasoning_effort", str, at) or optional(fields, "reasoning_config", str, at) or ""


def _parse_effort(word: str, at: str) -> Effort | None:
    if not word:
        return None
    for effort in EFFORTS:
        if effort == word:
            return effort
    raise InvalidRequest(f"{at[:-1]} asks for effort {word!r}", hint=f"use {', '.join(EFFORTS)}", param=at[:-1])


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
