"""Opaque state of texts, in dialects that carry it in a block of its own: where that block stands, and which text it means.

Clients look at the last block of a reply for its answer (Claude Code prints that block alone), so the block stands before its text. In
a stream the state may come after the text was written: it is then written before the next block, or not at all where the text is the
last one, and the replay store gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from bardo.dialects.block_writer import BlockWriter, Frames
from bardo.dialects.open_block import add_states
from bardo.dialects.signed_blocks import AFTER, BEFORE, EMPTY, NEXT, RedactedState, SignedBlocks
from bardo.values.blocks import Opaque
from bardo.values.events import ContentChunk, Event

_LATE_STATE: Final = {
    "what": "opaque state",
    "asked": "text",
    "sent": None,
    "why": "it came after the answer, which must be the last block; the replay store keeps it",
}


class PendingState:
    """Blocks with opaque state that are written before the next block of a stream."""

    def __init__(self, frames: Frames, put_before_text: Callable[[dict[str, Any]], bool]) -> None:
        self._frames = frames
        self._put_before_text = put_before_text
        self._blocks: list[dict[str, Any]] = []
        self._behind_text = False

    def hold(self, blocks: Sequence[dict[str, Any]]) -> None:
        """Keep blocks until another one begins."""
        self._blocks.extend(blocks)

    def write(self) -> None:
        """Write what is held, because something else follows."""
        blocks, self._blocks = self._blocks, []
        for block in blocks:
            self._frames.write_block(block)
            self._behind_text = False

    def close(self, block: BlockWriter, form: SignedBlocks) -> None:
        """Take the state of a block that has ended, where that is a text."""
        if block.kind != "text" or block.begun:
            self._behind_text = block.kind == "text"
        if block.kind != "text" or not block.states:
            return
        states = block.states.states()
        if self._frames.streamed:
            self.hold([form.carrier(states, BEFORE if block.begun else EMPTY)])
        elif not self._put_before_text(form.carrier(states, NEXT if block.begun else AFTER)):
            self._frames.write_block(form.carrier(states, EMPTY))

    def end(self, extension: dict[str, Any]) -> dict[str, Any]:
        """Write what is held at the end of a reply, unless its last block is text; return bardo's fields, which say so."""
        if not self._blocks:
            return extension
        if not self._behind_text:
            self.write()
            return extension
        return with_late_state(extension)


class TextStates:
    """State that a reply's reader met before its text."""

    def __init__(self) -> None:
        self._next: list[Opaque] = []
        self._after: list[tuple[Opaque, ...]] = []

    def take(self, state: RedactedState) -> bool:
        """Keep state whose text follows; False for any other."""
        if state.owner == NEXT:
            self._next.extend(state.states)
        elif state.owner == AFTER:
            self._after.append(state.states)
        return state.owner in (NEXT, AFTER)

    def open_text(self, number: int, out: list[Event]) -> None:
        """Return the text that begins its state."""
        states, self._next = self._next, []
        if states:
            give(number, tuple(states), out)

    def close_text(self, number: int, out: list[Event]) -> int:
        """Return the empty texts behind a text that ends; the first has this number. Return the number of the next block."""
        waiting, self._after = self._after, []
        for states in waiting:
            give(number, states, out)
            number += 1
        return number


def with_late_state(extension: dict[str, Any]) -> dict[str, Any]:
    """Return bardo's fields of a reply, which say that state after the last text was not written."""
    before = extension.get("degraded")
    return {**extension, "degraded": [*(before if isinstance(before, list) else ()), _LATE_STATE]}


def give(number: int, states: tuple[Opaque, ...], out: list[Event]) -> None:
    """Begin a text with its state."""
    out.append(ContentChunk(number, ""))
    add_states(number, states, out)
