"""`reasoning_details`: OpenRouter's typed pieces of reasoning, which several hosts share.

A piece is `reasoning.text` (text, maybe a signature), `reasoning.summary` or `reasoning.encrypted`; in streams each is a fragment, and the
pieces of one block share an `index`. Clients that join fragments by index (OpenAI's library does, string by string) get one piece that is
all of these at once; it is read as well. bardo's own names are `part`: a piece with it belongs to the block before it, whatever its index,
and a part above 0 begins a further part of the summary, after a blank line; and `position`: how many characters of the content and how many
calls stand before a block, where any do.
Source: the recordings of OpenRouter, Vercel's gateway, Venice, MiniMax and Snowflake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.openai_chat.constants import ANTHROPIC, BEDROCK, NAME, PLAIN_FORMATS
from bardo.values.blocks import Carried, Opaque, OpaqueKind, ReasoningBlock, fields_for

BLANK_LINE = "\n\n"
UNKNOWN = "unknown"
_TYPES = frozenset({"reasoning.text", "reasoning.summary", "reasoning.encrypted"})
_READ = frozenset({"type", "text", "summary", "signature", "data", "id", "format", "index", "part", "position"})


def text_of(detail: dict[str, Any]) -> str:
    """Return a piece's full text."""
    text = detail.get("text")
    return text if isinstance(text, str) else ""


def summary_of(detail: dict[str, Any]) -> str:
    """Return a piece's summary; the blank line before a further part is not of it."""
    summary = detail.get("summary")
    if not isinstance(summary, str):
        return ""
    return summary.removeprefix(BLANK_LINE) if part_of(detail) else summary


def part_of(detail: dict[str, Any]) -> int | None:
    """Return which part of a summary a piece begins, where it says so."""
    part = detail.get("part")
    return part if isinstance(part, int) and not isinstance(part, bool) and 0 <= part < 1 << 20 else None


def format_of(detail: dict[str, Any], otherwise: str = UNKNOWN) -> str:
    """Return whose piece it is; later fragments of a block may leave that out."""
    style = detail.get("format")
    return style if isinstance(style, str) and style else otherwise


def opaque_of(detail: dict[str, Any], style: str) -> list[Opaque]:
    """Return a piece's id, signature and ciphertext."""
    # The redacted blocks of Anthropic, and of Bedrock, travel as encrypted pieces.
    data: OpaqueKind = "redacted" if style in (ANTHROPIC, BEDROCK) else "encrypted"
    fields: tuple[tuple[str, OpaqueKind], ...] = (("id", "id"), ("signature", "signature"), ("data", data))
    return [
        Opaque(kind, value, style) for field, kind in fields if isinstance(value := detail.get(field), str) and value
    ]


def rest_of(detail: dict[str, Any]) -> dict[str, Any]:
    """Return what a piece says beside that: further fields, and a type of its own."""
    rest = {name: value for name, value in detail.items() if name not in _READ and value is not None}
    kind = detail.get("type")
    return rest | ({"type": kind} if isinstance(kind, str) and kind not in _TYPES else {})


def piece_of_text(text: str, part: int | None) -> dict[str, Any]:
    """Return a piece of text, or of one part of a summary."""
    if part is None:
        return {"type": "reasoning.text", "text": text}
    if part == 0:
        return {"type": "reasoning.summary", "summary": text}
    return {"type": "reasoning.summary", "summary": BLANK_LINE + text, "part": part}


def piece_of_state(state: Opaque) -> dict[str, Any]:
    """Return a piece that holds nothing but opaque state."""
    match state.kind:
        case "signature":
            return {"type": "reasoning.text", "signature": state.data}
        case "id":
            return {"type": "reasoning.text", "text": "", "id": state.data}
        case _:
            return {"type": "reasoning.encrypted", "data": state.data}


def is_bare(piece: dict[str, Any]) -> bool:
    """Return whether a piece holds no content, so that it may stand in a piece of any type."""
    return not (piece.get("text") or piece.get("summary") or "data" in piece or "signature" in piece)


def encode_position(characters: int, calls: int) -> dict[str, Any]:
    """Return the field that says what stands before a block; nothing where that is nothing."""
    return {"position": {"content": characters, "tool_calls": calls}} if characters or calls else {}


def encode_details(block: ReasoningBlock, index: int, position: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the pieces of one whole block. `position` is what `encode_position` gave."""
    named = {"format": block.format or UNKNOWN, "index": index}
    pieces = [{**piece_of_text(block.text, None), **named}] if block.text else []
    pieces += [{**piece_of_text(part, number), **named} for number, part in enumerate(block.summary)]
    for state in sorted(block.opaque, key=lambda state: state.kind == "id"):
        _add_state(pieces, state, index)
    rest = fields_for(NAME, block.carried)
    if rest:
        pieces = pieces or [{"type": "reasoning.text", **named}]
        pieces[0] = {**pieces[0], **rest}
    if position and pieces:
        pieces[0] = {**pieces[0], **position}
    return pieces


def replay_details(block: ReasoningBlock, index: int) -> list[dict[str, Any]]:
    """Return the pieces of one whole block as OpenRouter takes them back: without the names that are bardo's own."""
    pieces = encode_details(block, index)
    for piece in pieces:
        if piece.pop("part", None):
            piece["summary"] = piece["summary"].removeprefix(BLANK_LINE)
        piece["format"] = UNKNOWN if piece["format"] in PLAIN_FORMATS else piece["format"]
    return pieces


def _add_state(pieces: list[dict[str, Any]], state: Opaque, index: int) -> None:
    """Put a signature on the text and an id on the ciphertext, where there are such; else it is a piece of its own."""
    style = state.format or UNKNOWN
    first, last = (pieces[0], pieces[-1]) if pieces else ({}, {})
    if state.kind == "signature" and first.get("format") == style and "text" in first and "signature" not in first:
        first["signature"] = state.data
    elif state.kind == "id" and last.get("format") == style and "id" not in last:
        last["id"] = state.data
    else:
        pieces.append({**piece_of_state(state), "format": style, "index": index})


class PlacedDetail(msgspec.Struct, frozen=True):
    """A block of thinking, and how many characters of the content and how many calls stand before it."""

    block: ReasoningBlock
    characters: int = 0
    calls: int = 0


def decode_details(details: Sequence[dict[str, Any]]) -> list[PlacedDetail]:
    """Return the blocks of a whole list of pieces: those with one index, in a row, are one block, and so are those with a `part`."""
    blocks: list[list[dict[str, Any]]] = []
    for detail in details:
        index = detail.get("index")
        same = index is not None and bool(blocks) and blocks[-1][-1].get("index") == index
        if same or (blocks and part_of(detail) is not None):
            blocks[-1].append(detail)
        else:
            blocks.append([detail])
    return [PlacedDetail(_block(pieces), *_position(pieces)) for pieces in blocks]


def plain_before(text: str, readable: Sequence[str]) -> str:
    """Return the thinking in a plain field that stands before what the details say of it, "" where they say all."""
    behind = BLANK_LINE + BLANK_LINE.join(readable)
    return text.removesuffix(behind) if text.endswith(behind) else ""


def _position(pieces: Sequence[dict[str, Any]]) -> tuple[int, int]:
    said = next((found for piece in pieces if isinstance(found := piece.get("position"), dict)), {})
    counts = (said.get("content"), said.get("tool_calls"))
    characters, calls = (count if type(count) is int and count > 0 else 0 for count in counts)
    return characters, calls


def _block(pieces: list[dict[str, Any]]) -> ReasoningBlock:
    style = format_of(pieces[0])
    rest = {name: value for piece in pieces for name, value in rest_of(piece).items()}
    states = [state for piece in pieces for state in opaque_of(piece, format_of(piece, style))]
    return ReasoningBlock(
        text="".join(map(text_of, pieces)),
        summary=_summary(pieces),
        format=style,
        opaque=tuple(dict.fromkeys(states)),
        carried=Carried(NAME, rest) if rest else None,
    )


def _summary(pieces: list[dict[str, Any]]) -> tuple[str, ...]:
    parts: dict[int, str] = {}
    number = 0
    for piece in pieces:
        part = part_of(piece)
        number = number if part is None else part
        text = summary_of(piece)
        if text:
            parts[number] = parts.get(number, "") + text
    return tuple(parts[number] for number in sorted(parts))
