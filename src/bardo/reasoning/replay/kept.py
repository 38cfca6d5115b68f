"""What is kept of one reply: its reasoning and opaque state, and where between text and calls each of them stood.

The answer itself is not kept, only digests of its texts: the client has it. Blocks that only the reply's own dialect knows (what a
server's tools did) are kept, because most clients have no place for them and thinking is bound to them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.reasoning.replay.prefix import Prefix
from bardo.values.blocks import Opaque, Origin, ReasoningBlock, UnknownBlock


class Thought(msgspec.Struct, frozen=True, tag="t", array_like=True):
    """A stretch of thinking."""

    block: ReasoningBlock


class Said(msgspec.Struct, frozen=True, tag="s", array_like=True):
    """A text of so many characters with this digest, and its state."""

    length: int
    opaque: tuple[Opaque, ...] = ()
    digest: str = ""


class Called(msgspec.Struct, frozen=True, tag="c", array_like=True):
    """A call, and its state."""

    id: str
    opaque: tuple[Opaque, ...] = ()


class Other(msgspec.Struct, frozen=True, tag="o", array_like=True):
    """A block that only one dialect knows."""

    block: UnknownBlock


Part = Thought | Said | Called | Other


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """One reply. `prefix` is what it was made behind, for models that bind their state to that.

    `fields` are those fields of the reply that its provider takes back unmodified, in the dialect of `origin`.
    """

    origin: Origin
    parts: tuple[Part, ...]
    prefix: Prefix | None = None
    fields: dict[str, Any] = {}

    @property
    def states(self) -> list[Opaque]:
        """All opaque state of the reply."""
        return [state for part in self.parts for state in _states(part)]

    @property
    def readable(self) -> str:
        """The thinking as text."""
        texts = [part.block.readable for part in self.parts if isinstance(part, Thought)]
        return "\n\n".join(text for text in texts if text)


class Memory(msgspec.Struct, frozen=True):
    """A reply to keep, and the keys to keep it under. `choice` is its place among the choices of the response."""

    keys: tuple[str, ...]
    kept: Kept
    choice: int = 0


encode_kept = msgspec.msgpack.Encoder().encode
_DECODER = msgspec.msgpack.Decoder(Kept)


def decode_kept(raw: bytes) -> Kept | None:
    """Return what was kept; None for what another version wrote."""
    try:
        return _DECODER.decode(raw)
    except (ValueError, msgspec.MsgspecError):
        return None


def _states(part: Part) -> tuple[Opaque, ...]:
    match part:
        case Thought(block=block):
            return block.opaque
        case Other():
            return ()
        case _:
            return part.opaque
