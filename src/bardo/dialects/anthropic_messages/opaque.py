"""Opaque state in the two fields the dialect has for it: `signature` of thinking and `data` of redacted thinking.

Anthropic's own state stands there natively. Anybody else's is sealed: in the signature of its thinking block, or, where it belongs
to text or a tool call, in a redacted block behind that, which names whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.anthropic_messages.words import FORMAT
from bardo.dialects.sealing import seal, unseal
from bardo.values.blocks import Opaque

_OWNER = "bardo-block"


class Found(msgspec.Struct, frozen=True):
    """Opaque state read from a block. `owner` is the id of the tool call it belongs to, "" for the text before it, None for thinking."""

    states: tuple[Opaque, ...] = ()
    owner: str | None = None


def read_signature(signature: str) -> tuple[Opaque, ...]:
    """Return what the signature of a thinking block holds: Anthropic's own, or what bardo sealed."""
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


def carrier(states: Sequence[Opaque], owner: str) -> dict[str, Any]:
    """Return the block that carries foreign state of a tool call (its id) or of text ("")."""
    return {"type": "redacted_thinking", "data": seal([*states, Opaque("id", owner, _OWNER)])}


class Signed(msgspec.Struct, frozen=True):
    """Where the states of one stretch of thinking go: its signature, and blocks of their own behind it."""

    signature: str
    behind: tuple[dict[str, Any], ...]
    only_behind: bool
    """Whether there is nothing for a thinking block to hold, unless text does."""


def sign(states: Sequence[Opaque]) -> Signed:
    """Place the states of one stretch of thinking."""
    # An id is not Anthropic's: hosts that pass its thinking on give it one (Snowflake, OpenRouter).
    own = [state for state in states if _is_own(state)]
    foreign = [state for state in states if not _is_own(state)]
    signatures = [state.data for state in own if state.kind == "signature"]
    behind = [redacted(state.data) for state in own if state.kind != "signature"]
    signature = signatures[-1] if signatures else seal(foreign) if foreign else ""
    if signatures and foreign:
        behind.append(thinking("", seal(foreign)))
    return Signed(signature, tuple(behind), bool(behind) and not signature)


def _is_own(state: Opaque) -> bool:
    return state.format == FORMAT and state.kind != "id"


def thinking(text: str, signature: str) -> dict[str, Any]:
    """Return a thinking block."""
    return {"type": "thinking", "thinking": text, "signature": signature}


def redacted(data: str) -> dict[str, Any]:
    """Return a redacted thinking block."""
    return {"type": "redacted_thinking", "data": data}
