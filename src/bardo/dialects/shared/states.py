"""Opaque state, kept in dialects of other providers.

Dialects with two fields for it (Anthropic, Converse) have the signature of thinking and redacted thinking. State in the dialect's own
format is written there as it is; any other is sealed, that is, marked as whose it is. State of a tool call or of a text, for which a
dialect has no field, travels in a thinking block of its own: the carrier names what its state belongs to.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from bardo.dialects.shared.blocks import BlockWriter, Frames, add_states
from bardo.dialects.shared.json_values import JsonObject
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.events import ContentChunk, Event
from bardo.values.request import Message, Request

# Base64 of b"bardo1:" and a separator, so that a field that must be base64 (Gemini's) can hold it too.
_PREFIX = b"bardo1::"


def seal(states: Sequence[Opaque]) -> str:
    """Return base64 text that holds `states` with their kinds and formats."""
    return base64.b64encode(_PREFIX + msgspec.json.encode(list(states))).decode()


NO_STATE = seal(())
"""A seal that holds nothing, for what has to be signed: it is no state once it is read."""
_NO_STATE = NO_STATE.rstrip("=").encode()
_SEALED = base64.b64encode(_PREFIX[:6]).decode()
_SEALED_BYTES = _SEALED.encode()


def holds_seal(request: Request) -> bool:
    """Whether a client's own body holds sealed state, or state that begins like it, so that it must not go to a provider as it came."""
    # Looking through a long body takes less than looking at each block. A text may say the same, and is no state.
    body = request.body_bytes
    # `rfind` takes half the time of `in`, which goes slowly where it looks for few letters in many.
    return body.rfind(_SEALED_BYTES) >= 0 and (_NO_STATE in body or any(map(_has_fields, request.messages)))


def _has_fields(message: Message) -> bool:
    return message.carried is not None or any(map(_is_more_than_text, message.blocks))


def _is_more_than_text(block: Block) -> bool:
    if isinstance(block, UnknownBlock | ToolResultBlock):
        return isinstance(block, UnknownBlock) or any(map(_is_more_than_text, block.content))
    return block.carried is not None or (
        isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock) and bool(block.opaque)
    )


def unseal(text: str) -> tuple[Opaque, ...] | None:
    """Return what `seal` put in, or None if `text` is somebody's own. A damaged seal counts as somebody's own."""
    if not text.startswith(_SEALED):
        return None
    try:
        opened = base64.b64decode(text, validate=True)
        if not opened.startswith(_PREFIX):
            return None
        return tuple(msgspec.json.decode(opened[len(_PREFIX) :], type=list[Opaque]))
    except (ValueError, msgspec.MsgspecError):
        # Not base64, not UTF-8, or not what a seal holds.
        return None


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
    behind: tuple[JsonObject, ...]
    only_behind: bool
    """Whether a thinking block is needed for its text only."""


class SignedBlocks(msgspec.Struct, frozen=True):
    """The blocks of one dialect. `format` is that of its own state; `thinking` takes a text and a signature, `redacted` the data."""

    format: str
    thinking: Callable[[str, str], JsonObject]
    redacted: Callable[[str], JsonObject]

    def decode_signature(self, signature: str) -> tuple[Opaque, ...]:
        """Return the state in a signature: the dialect's own, or what bardo sealed."""
        if not signature:
            return ()
        # Nearly no signature is sealed: for the others no function is called to find that.
        sealed = unseal(signature) if signature.startswith(_SEALED) else None
        return sealed if sealed is not None else (Opaque("signature", signature, self.format),)

    def decode_redacted(self, data: str) -> RedactedState:
        """Return the state in a redacted block, and its owner."""
        sealed = unseal(data)
        if sealed is None:
            return RedactedState((Opaque("redacted", data, self.format),))
        owners = [state.data for state in sealed if state.format == _OWNER]
        return RedactedState(tuple(state for state in sealed if state.format != _OWNER), owners[0] if owners else None)

    def is_own(self, state: Opaque) -> bool:
        """Whether a state is the provider's. An id is not: hosts that pass Claude's thinking on give it one (Snowflake, OpenRouter)."""
        return state.format == self.format and state.kind != "id"

    def sign(self, states: Sequence[Opaque]) -> SignedThinking:
        """Return where the states of one stretch of thinking are written."""
        signatures: list[str] = []
        behind: list[JsonObject] = []
        foreign: list[Opaque] = []
        for state in states:
            if not self.is_own(state):
                foreign.append(state)
            elif state.kind == "signature":
                signatures.append(state.data)
            else:
                behind.append(self.redacted(state.data))
        signature = signatures[-1] if signatures else seal(foreign) if foreign else ""
        if signatures and foreign:
            behind.append(self.thinking("", seal(foreign)))
        return SignedThinking(signature, tuple(behind), bool(behind) and not signature)

    def carrier(self, states: Sequence[Opaque], owner: str) -> JsonObject:
        """Return the block that carries state of a tool call (its id) or of a text."""
        return self.redacted(seal([*states, Opaque("id", owner, _OWNER)]))

    def late_blocks(self, block: BlockWriter | None, state: Opaque) -> Sequence[JsonObject]:
        """Return the blocks that hold state of `block`, which ended before it came, or None if there was no such block."""
        if block is None or block.kind != "thinking":
            return [self.carrier([state], "" if block is None else block.owner)]
        signed = self.sign([state])
        return signed.behind or [self.thinking("", signed.signature)]


class Carrier(msgspec.Struct, frozen=True):
    """State on its way back. `thinking` is what its block is read as where the owner is gone."""

    states: tuple[Opaque, ...]
    owner: str
    thinking: ReasoningBlock


def settled(blocks: Sequence[Block | Carrier]) -> tuple[Block, ...]:
    """Return the blocks of a message, with the state of its carriers given back."""
    if not any(isinstance(block, Carrier) for block in blocks):
        return tuple(block for block in blocks if not isinstance(block, Carrier))
    blocks = _texts_with_state(blocks)
    calls = {block.id for block in blocks if isinstance(block, ToolCallBlock)}
    owned: dict[str, tuple[Opaque, ...]] = {}
    for block in blocks:
        if isinstance(block, Carrier) and block.owner in calls:
            owned[block.owner] = (*owned.get(block.owner, ()), *block.states)
    result: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolCallBlock) and block.id in owned:
            result.append(msgspec.structs.replace(block, opaque=(*block.opaque, *owned.pop(block.id))))
        elif not isinstance(block, Carrier):
            result.append(block)
        elif not block.owner:
            # Clients leave out text that is empty.
            last = result.pop() if result and isinstance(result[-1], TextBlock) else TextBlock("")
            assert isinstance(last, TextBlock)
            result.append(msgspec.structs.replace(last, opaque=(*last.opaque, *block.states)))
        elif block.owner not in calls:
            result.append(block.thinking)
    return tuple(result)


def _texts_with_state(blocks: Sequence[Block | Carrier]) -> list[Block | Carrier]:
    """Return the texts behind their carriers the state, and make the empty texts that clients leave out."""
    texts: list[Block | Carrier] = []
    following: tuple[Opaque, ...] = ()
    behind: list[TextBlock] = []
    for block in blocks:
        if isinstance(block, Carrier) and block.owner in (NEXT, AFTER, EMPTY):
            if block.owner == NEXT:
                following = (*following, *block.states)
            else:
                (behind if block.owner == AFTER else texts).append(TextBlock("", block.states))
        elif isinstance(block, TextBlock):
            texts += [msgspec.structs.replace(block, opaque=(*block.opaque, *following)), *behind]
            following, behind = (), []
        else:
            texts.append(block)
    return [*texts, *([TextBlock("", following)] if following else ()), *behind]


_LATE_STATE: Final = {
    "what": "opaque state",
    "asked": "text",
    "sent": None,
    "why": "it came after the answer, which must be the last block; the replay store keeps it",
}


class PendingState:
    """Blocks with opaque state that are written before the next block of a stream."""

    def __init__(self, frames: Frames, put_before_text: Callable[[JsonObject], bool]) -> None:
        self._frames = frames
        self._put_before_text = put_before_text
        self._blocks: list[JsonObject] = []
        self._behind_text = False

    def hold(self, blocks: Sequence[JsonObject]) -> None:
        """Keep blocks until another one begins."""
        self._blocks.extend(blocks)

    def write(self) -> None:
        """Write the held blocks, because something else follows."""
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

    def end(self, extension: JsonObject) -> JsonObject:
        """Write the held blocks at the end of a reply, unless its last block is text; return bardo's fields, which say so."""
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


def with_late_state(extension: JsonObject) -> JsonObject:
    """Return bardo's fields of a reply, which say that state after the last text was not written."""
    before = extension.get("degraded")
    return {**extension, "degraded": [*(before if isinstance(before, list) else ()), _LATE_STATE]}


def give(number: int, states: tuple[Opaque, ...], out: list[Event]) -> None:
    """Begin a text with its state."""
    out.append(ContentChunk(number, ""))
    add_states(number, states, out)
