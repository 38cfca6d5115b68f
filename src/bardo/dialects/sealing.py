"""Opaque state of one provider, kept whole inside another dialect's opaque field.

A client that speaks Anthropic gets OpenAI's ciphertext as the signature of a thinking block, and sends it back unread. The seal says
what it is and whose: it is never a provider's own signature, and bardo opens it before anything is sent on.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from bardo.values.blocks import Opaque

# Base64 of b"bardo1:" and a separator, so that a field that must be base64 (Gemini's) can hold it too.
_PREFIX = b"bardo1::"


def seal(states: Sequence[Opaque]) -> str:
    """Return base64 text that holds `states` with their kinds and formats."""
    return base64.b64encode(_PREFIX + msgspec.json.encode(list(states))).decode()


_SEALED = base64.b64encode(_PREFIX[:6]).decode()
_SEALED_BYTES = _SEALED.encode()


def holds_seal(body: bytes) -> bool:
    """Whether a client's body holds sealed state, or a text that begins like it, so that it must not go to a provider as it came."""
    return _SEALED_BYTES in body


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
