"""Opaque state in the two fields the dialect has for it: `signature` of reasoning text and `redactedContent`.

Bedrock's own state stands there natively. Anybody else's is sealed: in the signature of its stretch of thinking, or, where it belongs
to text or a tool call, in a redacted block behind that, which names whose it is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.bedrock_converse.words import FIELD, FORMAT
from bardo.dialects.sealing import seal, unseal
from bardo.values.blocks import Opaque

_OWNER = "bardo-block"


class Found(msgspec.Struct, frozen=True):
    """Opaque state read from a block. `owner` is the id of the tool call it belongs to, "" for the text before it, None for thinking."""

    states: tuple[Opaque, ...] = ()
    owner: str | None = None


def read_signature(signature: str) -> tuple[Opaque, ...]:
    """Return what a signature holds: Bedrock's own, or what bardo sealed."""
    if not signature:
        return ()
    sealed = unseal(signature)
    return sealed if sealed is not None else (Opaque("signature", signature, FORMAT),)


def read_redacted(data: str) -> Found:
    """Return what a redacted block holds, and whose it is."""
    sealed = unseal(data)
    if sealed is None:
        return Found((Opaque("redacted", data, FORMAT),))
    owners = [state.data for state in sealed if state.format == _OWNER]
    states = tuple(state for state in sealed if state.format != _OWNER)
    return Found(states, owners[0] if owners else None)


def join_redacted(pieces: Sequence[str]) -> str:
    """Return one blob that came in pieces, each in base64 of its own."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except binascii.Error:
        return "".join(pieces)


def carrier(states: Sequence[Opaque], owner: str) -> dict[str, Any]:
    """Return the block that carries foreign state of a tool call (its id) or of text ("")."""
    return redacted(seal([*states, Opaque("id", owner, _OWNER)]))


class Signed(msgspec.Struct, frozen=True):
    """Where the states of one stretch of thinking go: its signature, and blocks of their own behind it."""

    signature: str
    behind: tuple[dict[str, Any], ...]
    only_behind: bool
    """Whether there is nothing for reasoning text to hold, unless words do."""


def sign(states: Sequence[Opaque]) -> Signed:
    """Place the states of one stretch of thinking."""
    own = [state for state in states if state.format == FORMAT]
    foreign = [state for state in states if state.format != FORMAT]
    signatures = [state.data for state in own if state.kind == "signature"]
    behind = [redacted(state.data) for state in own if state.kind != "signature"]
    signature = signatures[-1] if signatures else seal(foreign) if foreign else ""
    if signatures and foreign:
        behind.append(thinking("", seal(foreign)))
    return Signed(signature, tuple(behind), bool(behind) and not signature)


def thinking(text: str, signature: str) -> dict[str, Any]:
    """Return a block of reasoning text; models that sign nothing refuse a signature that is empty."""
    return {FIELD: {"reasoningText": {"text": text, **({"signature": signature} if signature else {})}}}


def redacted(data: str) -> dict[str, Any]:
    """Return a redacted block."""
    return {FIELD: {"redactedContent": data}}
