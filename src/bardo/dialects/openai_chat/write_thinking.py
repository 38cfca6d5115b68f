"""The thinking of one streamed reply as deltas: `reasoning_content` for everyone, `reasoning_details` where there is more to say than text.

Clients join what they get by index, so the format of a block stands in its first piece only, and opaque state is written when the block is
left: until then a later state of the same kind takes its place (OpenAI sends a provisional ciphertext first).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bardo.dialects.openai_chat.chunks import json_bytes
from bardo.dialects.openai_chat.details import BLANK_LINE, UNKNOWN, piece_of_state, piece_of_text
from bardo.dialects.openai_chat.words import PLAIN_FORMATS
from bardo.values.blocks import Opaque
from bardo.values.events import BlockFields, OpaqueState, ThinkChunk, ThinkStart

Place = tuple[int, int]


class ThinkingWriter:
    """Writes deltas; `held` says whether opaque state waits to be written."""

    def __init__(self) -> None:
        self._formats: dict[Place, str] = {}
        self._said: dict[Place, str] = {}
        self._parts: dict[Place, int] = {}
        self._positions: dict[Place, dict[str, Any]] = {}
        self._last: dict[int, int] = {}
        self.held: dict[Place, dict[str, Opaque]] = {}

    def knows(self, place: Place) -> bool:
        """Whether the block is one of thinking."""
        return place in self._formats

    def start(self, item: ThinkStart, position: dict[str, Any]) -> None:
        """Take a block's format, and what stands before it."""
        self._formats[item.choice, item.block] = item.format
        if position:
            self._positions[item.choice, item.block] = position

    def chunk(self, item: ThinkChunk) -> bytes:
        """Return the delta of a piece of text."""
        place = (item.choice, item.block)
        style = self._formats.setdefault(place, "")
        if item.part is None and style in PLAIN_FORMATS:
            return b'{"reasoning_content":' + json_bytes(item.text) + b"}"
        begins = item.part is not None and self._parts.get(place, 0) != item.part
        if begins:
            self._parts[place] = item.part or 0
        piece = piece_of_text(item.text, item.part if begins or item.part is None else 0)
        gap = self._gap(item)
        text = json_bytes(gap + item.text if gap else piece.get("summary") or item.text)
        details = json_bytes([self._piece(place, piece, style)])
        return b'{"reasoning_content":' + text + b',"reasoning_details":' + details + b"}"

    def _gap(self, item: ThinkChunk) -> str:
        """Return the blank line between two stretches of thinking, for those who read them as one text: others read the details."""
        before = self._last.get(item.choice, item.block)
        if item.text:
            self._last[item.choice] = item.block
        return BLANK_LINE if item.text and before != item.block else ""

    def hold(self, item: OpaqueState) -> None:
        """Take opaque state of a block."""
        states = self.held.setdefault((item.choice, item.block), {})
        kind = item.opaque.kind
        states[f"{kind} {len(states)}" if kind == "redacted" else kind] = item.opaque

    def release(self, current: Place | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Give the deltas of all state that was held, but for the block that is being written."""
        for place in [place for place in self.held if place != current]:
            states = self.held.pop(place)
            pieces = [self._piece(place, piece_of_state(state), state.format) for state in states.values()]
            yield place[0], {"reasoning_details": _with_id(pieces)}

    def fields(self, item: BlockFields) -> dict[str, Any]:
        """Return the delta of further fields of a block."""
        place = (item.choice, item.block)
        piece = {"type": "reasoning.text", **item.fields}
        return {"reasoning_details": [self._piece(place, piece, self._formats[place])]}

    def _piece(self, place: Place, piece: dict[str, Any], style: str) -> dict[str, Any]:
        style = style or UNKNOWN
        if place in self._positions:
            piece = {**piece, **self._positions.pop(place)}
        if self._said.get(place) == style:
            return {**piece, "index": place[1]}
        self._said[place] = style
        return {**piece, "format": style, "index": place[1]}


def _with_id(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put a block's id on the piece beside it, where both are of one format."""
    ids = [piece for piece in pieces if "id" in piece]
    others = [piece for piece in pieces if "id" not in piece]
    if not ids or not others or ("format" in ids[0] and "format" in others[0]):
        return pieces
    return [{**ids[0], **others[0]}, *others[1:]]
