"""Chat messages to blocks: what a client sends."""

from __future__ import annotations

from typing import Any

from bardo.dialects.jsonfield import kind_of, optional, required, take
from bardo.dialects.openai_chat.choice import GEMINI, NAME, thought_signature
from bardo.dialects.openai_chat.details import read_details
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
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
_READ = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "refusal", "reasoning_content", "reasoning", "reasoning_details"}
)


def read_message(value: Any, at: str) -> Message:
    """Return one message. Raises InvalidRequest naming the field."""
    fields = take(value, dict, at)
    wire_role = required(fields, "role", str, f"{at}.")
    role = _ROLES.get(wire_role)
    if role is None:
        known = ", ".join(sorted(_ROLES))
        raise InvalidRequest(f"{at}.role is {wire_role!r}", hint=f"use one of {known}", param=f"{at}.role")
    if wire_role in ("tool", "function"):
        blocks: list[Block] = [_tool_result(fields, wire_role, at)]
    else:
        blocks = [
            *_reasoning(fields, at),
            *_content(fields.get("content"), f"{at}.content"),
            *_refusal(fields, at),
            *_calls(fields, at),
        ]
    return Message(role, tuple(blocks), _carried(fields, wire_role))


def _carried(fields: dict[str, Any], wire_role: str) -> Carried | None:
    rest = {name: value for name, value in fields.items() if name not in _READ and value is not None}
    if wire_role in ("developer", "function"):
        rest["role"] = wire_role
    return Carried(NAME, rest) if rest else None


def _content(content: Any, at: str) -> list[Block]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextBlock(content)] if content else []
    return [_part(part, f"{at}[{place}]") for place, part in enumerate(take(content, (list,), at))]


def _part(value: Any, at: str) -> Block:
    if isinstance(value, str):
        return TextBlock(value)
    part = take(value, dict, at)
    kind = required(part, "type", str, f"{at}.")
    if kind in ("text", "input_text", "output_text"):
        rest = {name: held for name, held in part.items() if name not in ("type", "text")}
        return TextBlock(take(part.get("text"), str, f"{at}.text"), carried=Carried(NAME, rest) if rest else None)
    if kind == "refusal":
        return RefusalBlock(take(part.get("refusal"), str, f"{at}.refusal"))
    if kind == "image_url":
        return _image(part, at)
    if kind == "thinking":
        return _thinking(part, at)
    return UnknownBlock(NAME, part)


def _image(part: dict[str, Any], at: str) -> ImageBlock:
    image = part.get("image_url")
    fields = {"url": image} if isinstance(image, str) else take(image, dict, f"{at}.image_url")
    url = required(fields, "url", str, f"{at}.image_url.")
    rest = {name: held for name, held in part.items() if name not in ("type", "image_url")}
    carried = Carried(NAME, rest) if rest else None
    detail = optional(fields, "detail", str, f"{at}.image_url.") or ""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return ImageBlock(media_type=head[5:], data=data, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _thinking(part: dict[str, Any], at: str) -> ReasoningBlock:
    inner = part.get("thinking")
    pieces = inner if isinstance(inner, list) else [inner]
    texts = [piece.get("text") if isinstance(piece, dict) else piece for piece in pieces]
    signature = optional(part, "signature", str, f"{at}.")
    return ReasoningBlock(
        text="".join(text for text in texts if isinstance(text, str)),
        format="content_list",
        opaque=(Opaque("signature", signature, "content_list"),) if signature else (),
    )


def _reasoning(fields: dict[str, Any], at: str) -> list[ReasoningBlock]:
    details = fields.get("reasoning_details")
    if isinstance(details, list) and details:
        blocks = read_details(details)
        if any(block.readable for block in blocks):
            return blocks
    else:
        blocks = []
    for name in ("reasoning_content", "reasoning"):
        text = fields.get(name)
        if isinstance(text, str) and text:
            # Signatures alone belong to the text beside them.
            states = tuple(state for block in blocks for state in block.opaque)
            style = blocks[0].format if blocks else name
            return [ReasoningBlock(text=text, format=style, opaque=states)]
        if text is not None and not isinstance(text, str | dict):
            raise InvalidRequest(f"{at}.{name} must be a string, not {kind_of(text)}", param=f"{at}.{name}")
    return blocks


def _refusal(fields: dict[str, Any], at: str) -> list[Block]:
    refusal = optional(fields, "refusal", str, f"{at}.")
    return [RefusalBlock(refusal)] if refusal else []


def _calls(fields: dict[str, Any], at: str) -> list[Block]:
    calls = optional(fields, "tool_calls", list, f"{at}.") or []
    return [_call(call, f"{at}.tool_calls[{place}]") for place, call in enumerate(calls)]


def _call(value: Any, at: str) -> Block:
    call = take(value, dict, at)
    function = call.get("function")
    if function is None:
        return UnknownBlock(NAME, {"tool_call": call})
    fields = take(function, dict, f"{at}.function")
    rest = {name: held for name, held in call.items() if name not in ("id", "type", "function", "index")}
    signature = thought_signature(rest.get("extra_content"))
    if signature:
        del rest["extra_content"]
    return ToolCallBlock(
        id=optional(call, "id", str, f"{at}.") or "",
        name=required(fields, "name", str, f"{at}.function."),
        arguments=optional(fields, "arguments", str, f"{at}.function.") or "",
        opaque=(Opaque("signature", signature, GEMINI),) if signature else (),
        carried=Carried(NAME, rest) if rest else None,
    )


def _tool_result(fields: dict[str, Any], wire_role: str, at: str) -> ToolResultBlock:
    content = tuple(
        block if isinstance(block, TextBlock | ImageBlock | UnknownBlock) else UnknownBlock(NAME, {})
        for block in _content(fields.get("content"), f"{at}.content")
    )
    if wire_role == "function":
        return ToolResultBlock(call_id="", name=required(fields, "name", str, f"{at}."), content=content)
    return ToolResultBlock(
        call_id=required(fields, "tool_call_id", str, f"{at}."),
        name=optional(fields, "name", str, f"{at}.") or "",
        content=content,
    )
