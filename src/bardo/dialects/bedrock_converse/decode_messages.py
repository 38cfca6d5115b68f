"""The messages of a request: Converse's content blocks to ours. What a block holds beside what we know is carried in its own shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.bedrock_converse.constants import FIELD, NAME, SIGNED_BLOCKS, THOUGHT, unknown_fields
from bardo.dialects.carriers import Carrier, settled
from bardo.dialects.documents import MEDIA_TYPES
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.wire import arguments_of, without, write_json
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
from bardo.values.request import Message, Role

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
