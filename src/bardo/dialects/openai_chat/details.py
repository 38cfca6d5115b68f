"""`reasoning_details`: OpenRouter's typed pieces of reasoning, which several hosts share.

A piece is `reasoning.text` (text, maybe a signature), `reasoning.summary` or `reasoning.encrypted`; in streams each is a fragment, and the
pieces of one block share an `index`. Source: the recordings of OpenRouter, Vercel's gateway, Venice, MiniMax and Snowflake.
"""

from __future__ import annotations

from typing import Any

from bardo.values.blocks import Opaque, ReasoningBlock

ANTHROPIC = "anthropic-claude-v1"


def readable(detail: dict[str, Any]) -> tuple[str, bool]:
    """Return a piece's text, and whether it is a summary."""
    summary = detail.get("summary")
    if isinstance(summary, str) and detail.get("type") == "reasoning.summary":
        return summary, True
    text = detail.get("text")
    return (text if isinstance(text, str) else ""), False


def opaque_of(detail: dict[str, Any]) -> list[Opaque]:
    """Return a piece's signature, ciphertext and id."""
    style = format_of(detail)
    found = []
    for field, kind in (("signature", "signature"), ("data", "encrypted"), ("id", "id")):
        value = detail.get(field)
        if isinstance(value, str) and value:
            # Anthropic's redacted blocks travel as encrypted pieces.
            kind = "redacted" if kind == "encrypted" and style == ANTHROPIC else kind
            found.append(Opaque(kind, value, style))  # type: ignore[arg-type]
    return found


def format_of(detail: dict[str, Any]) -> str:
    """Return whose piece it is."""
    style = detail.get("format")
    return style if isinstance(style, str) and style else "unknown"


def write_details(block: ReasoningBlock, index: int) -> list[dict[str, Any]]:
    """Return the pieces of one whole block."""
    states = {state.kind: state.data for state in block.opaque if state.kind in ("signature", "id")}
    head = {"format": block.format or "unknown", "index": index}
    pieces: list[dict[str, Any]] = []
    if block.text or "signature" in states:
        pieces.append({"type": "reasoning.text", "text": block.text, **head})
        if "signature" in states:
            pieces[-1]["signature"] = states["signature"]
    pieces += [{"type": "reasoning.summary", "summary": part, **head} for part in block.summary]
    pieces += [
        {"type": "reasoning.encrypted", "data": state.data, **head}
        for state in block.opaque
        if state.kind in ("encrypted", "redacted")
    ]
    if "id" in states:
        target = pieces[-1] if pieces else {"type": "reasoning.text", "text": "", **head}
        target["id"] = states["id"]
        pieces = pieces or [target]
    return pieces


def read_details(details: list[Any]) -> list[ReasoningBlock]:
    """Return the blocks of a whole list of pieces: those with one index, in a row, are one block."""
    blocks: list[tuple[Any, list[dict[str, Any]]]] = []
    for detail in details:
        if not isinstance(detail, dict):
            continue
        index = detail.get("index")
        if blocks and blocks[-1][0] == index and index is not None:
            blocks[-1][1].append(detail)
        else:
            blocks.append((index, [detail]))
    return [_block(pieces) for _, pieces in blocks]


def _block(pieces: list[dict[str, Any]]) -> ReasoningBlock:
    texts = [readable(piece) for piece in pieces]
    return ReasoningBlock(
        text="".join(text for text, summary in texts if not summary),
        summary=tuple(text for text, summary in texts if summary),
        format=format_of(pieces[0]),
        opaque=tuple(state for piece in pieces for state in opaque_of(piece)),
    )
