"""Chat messages to blocks: what a client sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.documents import picture_or_document, read_file, split_data_url
from bardo.dialects.jsonfield import kind_of, optional, required, take
from bardo.dialects.openai_chat.constants import NAME
from bardo.dialects.openai_chat.details import PlacedDetail, decode_details, plain_before
from bardo.dialects.openai_chat.extra import decode_states
from bardo.dialects.openai_chat.thinking_blocks import ThinkingBlocks
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}
_SPEAKERS = _ROLES.keys() - {"tool", "function"}
_READ = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "function_call", "refusal", "extra_content"}
    | {"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"}
)
_READ_OF_CALL = frozenset({"id", "type", "function", "custom", "index", "extra_content"})


def decode_message(value: Any, at: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    fields = take(value, dict, at)
    text, wire_role = fields.get("content"), fields.get("role")
    if len(fields) == 2 and type(text) is str and type(wire_role) is str and wire_role in _SPEAKERS:
        return Message(_ROLES[wire_role], (TextBlock(text),) if text else ())
    wire_role = required(fields, "role", str, f"{at}.")
    role = _ROLES.get(wire_role)
    if role is None:
        known = ", ".join(sorted(_ROLES))
        raise InvalidRequest(f"{at}.role is {wire_role!r}", hint=f"use one of {known}", param=f"{at}.role")
    if wire_role in ("tool", "function"):
        return Message(role, (_tool_result(fields, wire_role, at),))
    states, extra = decode_states(fields.get("extra_content"))
    said = [*decode_content(fields.get("content"), f"{at}.content", states), *_refusal(fields, at)]
    blocks = interleaved(_reasoning(fields, at), said, _calls(fields, at))
    rest = {**_unknown_fields(fields), **({"extra_content": extra} if extra else {})}
    return Message(role, tuple(blocks), Carried(NAME, rest) if rest else None)


def _unknown_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _READ and value is not None}


def _reasoning(fields: dict[str, Any], at: str) -> list[PlacedDetail]:
    """Return the thinking a client gives back: of the details, else of the first plain field; state alone goes with plain text."""
    details = fields.get("reasoning_details")
    if isinstance(details, str):
        return [PlacedDetail(ReasoningBlock(text=details, format="reasoning_details"))] if details else []
    listed = optional(fields, "reasoning_details", list, f"{at}.") or []
    details = [take(detail, dict, f"{at}.reasoning_details[{place}]") for place, detail in enumerate(listed)]
    blocks = optional(fields, "thinking_blocks", list, f"{at}.") or []
    placed = decode_details(details or ThinkingBlocks().pieces(blocks))
    plain = [(name, optional(fields, name, str, f"{at}.")) for name in ("reasoning_content", "reasoning")]
    name, text = next(((name, text) for name, text in plain if text), ("", ""))
    readable = [one.block.readable for one in placed if one.block.readable]
    if not text or readable:
        before = plain_before(text, readable)
        return [PlacedDetail(ReasoningBlock(text=before, format=name)), *placed] if before else placed
    states = tuple(state for one in placed for state in one.block.opaque)
    return [PlacedDetail(ReasoningBlock(text=text, format=placed[0].block.format if placed else name, opaque=states))]


def _refusal(fields: dict[str, Any], at: str) -> list[Block]:
    refusal = optional(fields, "refusal", str, f"{at}.")
    return [RefusalBlock(refusal)] if refusal else []


def _calls(fields: dict[str, Any], at: str) -> list[Block]:
    calls = optional(fields, "tool_calls", list, f"{at}.") or []
    blocks: list[Block] = [_call(call, f"{at}.tool_calls[{place}]") for place, call in enumerate(calls)]
    older = optional(fields, "function_call", dict, f"{at}.")
    if older:
        name = required(older, "name", str, f"{at}.function_call.")
        arguments = optional(older, "arguments", str, f"{at}.function_call.") or ""
        blocks.append(
            ToolCallBlock(id="", name=name, arguments=arguments, carried=Carried(NAME, {"function_call": True}))
        )
    return blocks


def _call(value: Any, at: str) -> Block:
    call = take(value, dict, at)
    kind = "custom" if call.get("type") == "custom" else "function"
    if call.get(kind) is None:
        return UnknownBlock(NAME, {"tool_call": call})
    fields = take(call[kind], dict, f"{at}.{kind}")
    text = "input" if kind == "custom" else "arguments"
    states, extra = decode_states(call.get("extra_content"))
    rest = {name: held for name, held in call.items() if name not in _READ_OF_CALL and held is not None}
    more = {name: held for name, held in fields.items() if name not in ("name", text) and held is not None}
    rest |= {"function": more} if more else {}
    rest |= {"extra_content": extra} if extra else {}
    rest |= {"type": kind} if kind == "custom" else {}
    return ToolCallBlock(
        id=optional(call, "id", str, f"{at}.") or "",
        name=required(fields, "name", str, f"{at}.{kind}."),
        arguments=_arguments(fields.get(text), f"{at}.{kind}.{text}"),
        opaque=states,
        carried=Carried(NAME, rest) if rest else None,
    )


def _arguments(value: Any, at: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    hint = "arguments are JSON text, not JSON" if isinstance(value, dict) else ""
    raise InvalidRequest(f"{at} must be a string, not {kind_of(value)}", hint=hint, param=at)


def _tool_result(fields: dict[str, Any], wire_role: str, at: str) -> ToolResultBlock:
    older = wire_role == "function"
    rest = {name: value for name, value in _unknown_fields(fields).items() if not (older and name == "name")}
    return ToolResultBlock(
        call_id="" if older else required(fields, "tool_call_id", str, f"{at}."),
        name=(required if older else optional)(fields, "name", str, f"{at}.") or "",
        content=_result_content(fields.get("content"), f"{at}.content"),
        carried=Carried(NAME, rest) if rest else None,
    )


def _result_content(content: Any, at: str) -> tuple[ResultPart, ...]:
    found: list[ResultPart] = []
    for place, block in enumerate(decode_content(content, at, ())):
        if not isinstance(block, ResultPart):
            raise InvalidRequest(f"{at}[{place}] cannot stand in the result of a tool", param=f"{at}[{place}]")
        found.append(block)
    return tuple(found)


def interleaved(thoughts: Sequence[PlacedDetail], said: Sequence[Block], calls: Sequence[Block]) -> list[Block]:
    """Return the blocks of a message, each stretch of thinking behind as much text and as many calls as it says."""
    blocks: list[Block] = []
    rest, characters, called = list(said), 0, 0
    for one in thoughts:
        before, rest = _split_blocks(rest, one.characters - characters)
        blocks += before
        characters += sum(_length(block) for block in before)
        upto = min(max(called, one.calls), len(calls))
        blocks += calls[called:upto]
        called = upto
        blocks.append(one.block)
    return [*blocks, *rest, *calls[called:]]


def _split_blocks(blocks: Sequence[Block], characters: int) -> tuple[list[Block], list[Block]]:
    """Return the blocks that hold the first characters of the text, and the others. Text with state or fields is not cut."""
    first: list[Block] = []
    for place, block in enumerate(blocks):
        if characters <= 0:
            return first, list(blocks[place:])
        length = _length(block)
        if length > characters and isinstance(block, TextBlock) and not block.opaque and block.carried is None:
            first.append(TextBlock(block.text[:characters]))
            return first, [TextBlock(block.text[characters:]), *blocks[place + 1 :]]
        first.append(block)
        characters -= length
    return first, []


def _length(block: Block) -> int:
    return len(block.text) if isinstance(block, TextBlock) else 0


def decode_content(content: Any, at: str, states: Sequence[Opaque]) -> list[Block]:
    """Return the blocks of `content`; opaque `states` of the message belong to its last text."""
    blocks: list[Block]
    if content is None or isinstance(content, str):
        blocks = [TextBlock(content)] if content else []
    else:
        blocks = [_part(part, f"{at}[{place}]") for place, part in enumerate(take(content, (list,), at))]
    return _with_states(blocks, tuple(states)) if states else blocks


def _with_states(blocks: list[Block], states: tuple[Opaque, ...]) -> list[Block]:
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if isinstance(block, TextBlock):
            return [*blocks[:place], msgspec.structs.replace(block, opaque=states), *blocks[place + 1 :]]
    return [*blocks, TextBlock("", opaque=states)]


def _part(value: Any, at: str) -> Block:
    if isinstance(value, str):
        return TextBlock(value)
    part = take(value, dict, at)
    match required(part, "type", str, f"{at}."):
        case "text" | "input_text" | "output_text":
            carried = _carried_of_part(part, "type", "text")
            return TextBlock(take(part.get("text"), str, f"{at}.text"), carried=carried)
        case "refusal":
            return RefusalBlock(take(part.get("refusal"), str, f"{at}.refusal"))
        case "image_url":
            return _image(part, at)
        case "file":
            return _file(part, at)
        case "thinking":
            return _thinking(part, at)
        case _:
            return UnknownBlock(NAME, part)


def _carried_of_part(part: dict[str, Any], *read: str) -> Carried | None:
    rest = {name: held for name, held in part.items() if name not in read and held is not None}
    return Carried(NAME, rest) if rest else None


def _file(part: dict[str, Any], at: str) -> DocumentBlock | UnknownBlock:
    """Return a document. What was uploaded before is known to its provider only."""
    file = take(part.get("file"), dict, f"{at}.file")
    data, name = (optional(file, key, str, f"{at}.file.") or "" for key in ("file_data", "filename"))
    found = read_file(data, name) if data and file.keys() <= {"file_data", "filename"} else None
    if found is None:
        return UnknownBlock(NAME, part)
    return msgspec.structs.replace(found, carried=_carried_of_part(part, "type", "file"))


def _image(part: dict[str, Any], at: str) -> ImageBlock | DocumentBlock:
    """Return a picture; a data URL of another type is a document, which some clients send so."""
    image = part.get("image_url")
    fields = {"url": image} if isinstance(image, str) else take(image, dict, f"{at}.image_url")
    url = required(fields, "url", str, f"{at}.image_url.")
    carried = _carried_of_part(part, "type", "image_url")
    detail = optional(fields, "detail", str, f"{at}.image_url.") or ""
    inline = split_data_url(url)
    if inline:
        return picture_or_document(*inline, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _thinking(part: dict[str, Any], at: str) -> ReasoningBlock:
    inner = part.get("thinking")
    pieces = inner if isinstance(inner, list) else [inner]
    signature = optional(part, "signature", str, f"{at}.")
    return ReasoningBlock(
        text="".join(_thought_text(piece, f"{at}.thinking[{place}]") for place, piece in enumerate(pieces)),
        format="content_list",
        opaque=(Opaque("signature", signature, "content_list"),) if signature else (),
    )


def _thought_text(piece: Any, at: str) -> str:
    if isinstance(piece, dict):
        return optional(piece, "text", str, f"{at}.") or ""
    return "" if piece is None else take(piece, str, at)
