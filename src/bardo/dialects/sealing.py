"""Opaque state of one provider, kept whole inside another dialect's opaque field.

A client that speaks Anthropic gets OpenAI's ciphertext as the signature of a thinking block, and sends it back unread. The seal says
what it is and whose: it is never a provider's own signature, and bardo opens it before anything is sent on.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from bardo.dialects.repeated_items import holds
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.histories import Messages, fold_history
from bardo.values.request import Message, Request

# Base64 of b"bardo1:" and a separator, so that a field that must be base64 (Gemini's) can hold it too.
_PREFIX = b"bardo1::"


def seal(states: Sequence[Opaque]) -> str:
    """Return base64 text that holds `states` with their kinds and formats."""
    return base64.b64encode(_PREFIX + msgspec.json.encode(list(states))).decode()


_SEALED = base64.b64encode(_PREFIX[:6]).decode()
_SEALED_BYTES = _SEALED.encode()


def holds_seal(request: Request) -> bool:
    """Whether a client's own body holds sealed state, or state that begins like it, so that it must not go to a provider as it came."""
    # Most conversations have no state and no fields of their own, and a long body is not looked through for nothing.
    if not fold_history(request.messages, "sealing.may", None, False, _may_hold_seal):
        return False
    return holds(request.body or {}, request.body_bytes, _SEALED_BYTES)


def _may_hold_seal(found: bool, messages: Messages, place: int) -> bool:
    return found or any(map(_has_fields, messages[place:]))


def _has_fields(message: Message) -> bool:
    return message.carried is not None or any(map(_is_more_than_text, message.blocks))


def _is_more_than_text(block: Block) -> bool:
    if isinstance(block, UnknownBlock | ToolResultBlock):
        return isinstance(block, UnknownBlock) or any(map(_is_more_than_text, block.content))
    return block.carried is not None or (
        isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock) and bool(block.opaque)
    )


def unseal(text: str) -> tuple[Opaque, ...] | None:
    """Return what `seal` put in, or None where `text` is somebody's own. A damaged seal counts as somebody's own."""
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
