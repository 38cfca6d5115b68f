"""`thinking_blocks`: LiteLLM's form of signed thinking, beside the same text in `reasoning_content`.

A message lists blocks as Anthropic writes them (`thinking` with a `signature`, `redacted_thinking` with `data`). A delta has one block
with a piece of its text, and the signature comes alone at its end. The blocks go back in the message of the next request.
Source: docs.litellm.ai, "Thinking / Reasoning Content", 2026-11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bardo.values.blocks import ReasoningBlock

FORMAT = "thinking_blocks"


class ThinkingBlocks:
    """Gives the blocks of one reply as typed pieces, whose index tells one block from the next."""

    __slots__ = ("_ended", "_index")

    def __init__(self) -> None:
        self._index = 0
        self._ended = False

    def pieces(self, blocks: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the pieces of a message or a delta."""
        found: list[dict[str, Any]] = []
        for block in blocks:
            piece = piece_of(block)
            if piece is None:
                continue
            if self._ended:
                self._index += 1
            # A signature ends its block, and so does what has no text.
            self._ended = "signature" in piece or "data" in piece
            found.append({**piece, "index": self._index})
        return found


def piece_of(block: Any) -> dict[str, Any] | None:
    """Return a block as a typed piece; None where it says nothing."""
    if not isinstance(block, dict):
        return None
    text, signature, data = (_text(block.get(name)) for name in ("thinking", "signature", "data"))
    if data:
        return {"type": "reasoning.encrypted", "data": data, "format": FORMAT}
    if not text and not signature:
        return None
    signed = {"signature": signature} if signature else {}
    return {"type": "reasoning.text", "text": text, "format": FORMAT, **signed}


def replay_blocks(thoughts: Sequence[ReasoningBlock]) -> list[dict[str, Any]]:
    """Return the blocks as LiteLLM takes them back: those alone that its own servers signed."""
    blocks: list[dict[str, Any]] = []
    for thought in thoughts:
        for state in thought.opaque:
            if state.format != FORMAT:
                continue
            if state.kind == "signature":
                blocks.append({"type": "thinking", "thinking": thought.text, "signature": state.data})
            elif state.kind in ("encrypted", "redacted"):
                blocks.append({"type": "redacted_thinking", "data": state.data})
    return blocks


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
