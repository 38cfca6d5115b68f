"""Opaque state in dialects that have two fields for it: the signature of thinking, and redacted thinking (Anthropic, Converse).

State in the dialect's own format is written there as it is. Any other state is sealed: in the signature of its thinking block, or, where
it belongs to text or to a tool call, in a redacted block of its own, which names its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bardo.dialects.block_writer import BlockWriter
from bardo.dialects.sealing import seal, unseal
from bardo.values.blocks import Opaque

_OWNER = "bardo-block"
BEFORE = ""
"""The owner of state that belongs to the text before its block."""
NEXT = "next text"
"""The owner of state that belongs to the next text behind its block."""
EMPTY = "empty text"
"""The owner of state that belongs to an empty text in the place of its block."""
AFTER = "empty text after the next"
"""The owner of state that belongs to an empty text behind the next text."""


class RedactedState(msgspec.Struct, frozen=True):
    """Opaque state of a redacted block. `owner` is the id of its tool call, or says which text; None for thinking."""

    states: tuple[Opaque, ...] = ()
    owner: str | None = None

    def number_of_owner(self, last_text: int | None, calls: Mapping[str, int]) -> int | None:
        """Return the block that the state belongs to: the last text, or the call with the owner's id; None for thinking."""
        return last_text if self.owner == "" else calls.get(self.owner or "")


class SignedThinking(msgspec.Struct, frozen=True):
    """Where the opaque state of one stretch of thinking is written: its signature, and blocks of their own behind it."""

    signature: str
    behind: tuple[dict[str, Any], ...]
    only_behind: bool
    """Whether a thinking block is needed for its text only."""


@dataclass(frozen=True, slots=True)
class SignedBlocks:
    """The blocks of one dialect. `format` is that of its own state; `thinking` takes a text and a signature, `redacted` the data."""

    format: str
    thinking: Callable[[str, str], dict[str, Any]]
    redacted: Callable[[str], dict[str, Any]]

    def decode_signature(self, signature: str) -> tuple[Opaque, ...]:
        """Return the state in a signature: the dialect's own, or what bardo sealed."""
        if not signature:
            return ()
        sealed = unseal(signature)
        return sealed if sealed is not None else (Opaque("signature", signature, self.format),)

    def decode_redacted(self, data: str) -> RedactedState:
        """Return the state in a redacted block, and its owner."""
        sealed = unseal(data)
        if sealed is None:
            return RedactedState((Opaque("redacted", data, self.format),))
        owners = [state.data for state in sealed if state.format == _OWNER]
        states = tuple(state for state in sealed if state.format != _OWNER)
        return RedactedState(states, owners[0] if owners else None)

    def sign(self, states: Sequence[Opaque]) -> SignedThinking:
        """Return where the states of one stretch of thinking are written."""
        own = [state for state in states if self._is_own(state)]
        foreign = [state for state in states if not self._is_own(state)]
        signatures = [state.data for state in own if state.kind == "signature"]
        behind = [self.redacted(state.data) for state in own if state.kind != "signature"]
        signature = signatures[-1] if signatures else seal(foreign) if foreign else ""
        if signatures and foreign:
            behind.append(self.thinking("", seal(foreign)))
        return SignedThinking(signature, tuple(behind), bool(behind) and not signature)

    def carrier(self, states: Sequence[Opaque], owner: str) -> dict[str, Any]:
        """Return the block that carries state of a tool call (its id) or of a text."""
        return self.redacted(seal([*states, Opaque("id", owner, _OWNER)]))

    def late_blocks(self, block: BlockWriter | None, state: Opaque) -> Sequence[dict[str, Any]]:
        """Return the blocks that hold state of `block`, which ended before it came; None where there was no such block."""
        if block is None or block.kind != "thinking":
            return [self.carrier([state], "" if block is None else block.owner)]
        signed = self.sign([state])
        return signed.behind or [self.thinking("", signed.signature)]

    def _is_own(self, state: Opaque) -> bool:
        # An id is not the provider's: hosts that pass Claude's thinking on give it one (Snowflake, OpenRouter).
        return state.format == self.format and state.kind != "id"
