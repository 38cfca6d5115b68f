"""One block while it arrives, how a block of no known kind grows from its pieces, and how redacted thinking is joined."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from bardo.dialects.wire import INVALID_JSON, is_object
from bardo.values.blocks import has_no_arguments

Kind = Literal["text", "think", "redacted", "call", "other"]


class Arriving:
    """One block. `spoke` says whether any piece said something; `value` is what a block of no known kind holds."""

    __slots__ = ("kind", "number", "pieces", "spoke", "value")

    def __init__(self, number: int, kind: Kind) -> None:
        self.number = number
        self.kind: Kind = kind
        self.spoke = False
        self.pieces: list[str] = []
        self.value: dict[str, Any] = {}


def grow(block: Arriving, delta: dict[str, Any]) -> None:
    """Add a piece to a block of no known kind."""
    for name, piece in delta.items():
        if name == "toolUse" and isinstance(piece, dict) and isinstance(piece.get("input"), str):
            block.pieces.append(piece["input"])
        elif name == "toolResult" and isinstance(piece, list):
            block.value[name] = _merged(block.value.get(name), {"content": piece})
        else:
            block.value[name] = _merged(block.value.get(name), piece)


def _merged(held: Any, piece: Any) -> Any:
    if isinstance(held, dict) and isinstance(piece, dict):
        return held | {name: _merged(held.get(name), item) for name, item in piece.items()}
    joins = isinstance(held, str | list) and type(held) is type(piece)
    return held + piece if joins else piece


def complete(block: Arriving) -> dict[str, Any]:
    """Return a block of no known kind as the whole reply would have it."""
    text = "".join(block.pieces)
    use = block.value.get("toolUse")
    if not text or not isinstance(use, dict):
        return block.value
    wrapped = {} if has_no_arguments(text) else {INVALID_JSON: text}
    given = msgspec.json.decode(text) if is_object(text) else wrapped
    return {**block.value, "toolUse": {**use, "input": given}}


def join_redacted(pieces: Sequence[str]) -> str:
    """Return one blob that came in pieces, each in base64 of its own."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except binascii.Error:
        return "".join(pieces)
