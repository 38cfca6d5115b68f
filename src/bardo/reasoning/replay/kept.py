"""What is kept of one reply: its reasoning and opaque state, and where between text and calls each of them stood.

The answer itself is not kept, only how long its texts were: the client has it.
"""

from __future__ import annotations

import msgspec

from bardo.reasoning.replay.prefix import Prefix
from bardo.values.blocks import Opaque, Origin, ReasoningBlock


class Thought(msgspec.Struct, frozen=True, tag="t", array_like=True):
    """A stretch of thinking."""

    block: ReasoningBlock


class Said(msgspec.Struct, frozen=True, tag="s", array_like=True):
    """A text of so many characters, and its state."""

    length: int
    opaque: tuple[Opaque, ...] = ()


class Called(msgspec.Struct, frozen=True, tag="c", array_like=True):
    """A call, and its state."""

    id: str
    opaque: tuple[Opaque, ...] = ()


Part = Thought | Said | Called


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """One reply. `prefix` is what it was made behind, for models that bind their state to that."""

    origin: Origin
    parts: tuple[Part, ...]
    prefix: Prefix | None = None

    @property
    def states(self) -> list[Opaque]:
        """All opaque state of the reply."""
        return [
            state for part in self.parts for state in (part.block.opaque if isinstance(part, Thought) else part.opaque)
        ]

    @property
    def readable(self) -> str:
        """The thinking as text."""
        texts = [part.block.readable for part in self.parts if isinstance(part, Thought)]
        return "\n\n".join(text for text in texts if text)


class Memory(msgspec.Struct, frozen=True):
    """A reply to keep, and the keys to keep it under."""

    keys: tuple[str, ...]
    kept: Kept


encode_kept = msgspec.msgpack.Encoder().encode
_DECODER = msgspec.msgpack.Decoder(Kept)


def decode_kept(raw: bytes) -> Kept | None:
    """Return what was kept; None for what another version wrote."""
    try:
        return _DECODER.decode(raw)
    except (ValueError, msgspec.MsgspecError):
        return None
