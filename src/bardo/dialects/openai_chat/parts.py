"""The content of a client's message, as text or as a list of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.openai_chat.words import NAME
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    UnknownBlock,
)


def read_content(content: Any, at: str, states: Sequence[Opaque]) -> list[Block]:
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
            carried = _rest(part, "type", "text")
            return TextBlock(take(part.get("text"), str, f"{at}.text"), carried=carried)
        case "refusal":
            return RefusalBlock(take(part.get("refusal"), str, f"{at}.refusal"))
        case "image_url":
            return _image(part, at)
        case "thinking":
            return _thinking(part, at)
        case _:
            return UnknownBlock(NAME, part)


def _rest(part: dict[str, Any], *read: str) -> Carried | None:
    rest = {name: held for name, held in part.items() if name not in read and held is not None}
    return Carried(NAME, rest) if rest else None


def _image(part: dict[str, Any], at: str) -> ImageBlock:
    image = part.get("image_url")
    fields = {"url": image} if isinstance(image, str) else take(image, dict, f"{at}.image_url")
    url = required(fields, "url", str, f"{at}.image_url.")
    carried = _rest(part, "type", "image_url")
    detail = optional(fields, "detail", str, f"{at}.image_url.") or ""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return ImageBlock(media_type=head[5:], data=data, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _thinking(part: dict[str, Any], at: str) -> ReasoningBlock:
    inner = part.get("thinking")
    pieces = inner if isinstance(inner, list) else [inner]
    signature = optional(part, "signature", str, f"{at}.")
    return ReasoningBlock(
        text="".join(_thought(piece, f"{at}.thinking[{place}]") for place, piece in enumerate(pieces)),
        format="content_list",
        opaque=(Opaque("signature", signature, "content_list"),) if signature else (),
    )


def _thought(piece: Any, at: str) -> str:
    if isinstance(piece, dict):
        return optional(piece, "text", str, f"{at}.") or ""
    return "" if piece is None else take(piece, str, at)
