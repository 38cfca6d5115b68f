"""The one vocabulary between decoding and encoding.

A reply is `ReplyStart`, then blocks, then `Finish` for each choice, with `UsageUpdate`, `Carried` and `Degraded` anywhere. A
`block` number names one block within its choice, in order of first appearance; pieces of several blocks may alternate, and opaque
state may reach a block after later ones began. Whatever goes wrong inside a reply is `Failed`, after which nothing follows.

`ToolCallEnd` says that a call is complete. Of a call without one no more came: the reply broke off in it, and nobody may execute it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.values.blocks import Opaque
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.usage import Usage

FinishReason = Literal["stop", "length", "tool_calls", "refusal", "pause", "error", "unknown"]


class ReplyStart(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's id and model for the reply, once known."""

    id: str = ""
    model: str = ""
    created: int | None = None


class ThinkStart(msgspec.Struct, frozen=True, gc=False):
    """A stretch of thinking begins."""

    block: int
    format: str = ""
    choice: int = 0


class ThinkChunk(msgspec.Struct, frozen=True, gc=False):
    """Thinking, as it arrives. `part` numbers the parts of a summary and is None for full text."""

    block: int
    text: str
    part: int | None = None
    choice: int = 0


class ThinkEnd(msgspec.Struct, frozen=True, gc=False):
    """A stretch of thinking is over. Opaque state of the block may still follow."""

    block: int
    choice: int = 0


class EmptyThought(msgspec.Struct, frozen=True, gc=False):
    """The reply holds a block of thinking with nothing in it: the model did not think."""

    choice: int = 0


class WithheldThought(msgspec.Struct, frozen=True, gc=False):
    """Thinking that could be read came here, and was left out because the caller does not want it."""

    choice: int = 0


class ContentChunk(msgspec.Struct, frozen=True, gc=False):
    """Answer text, as it arrives. A new block number begins a new text block."""

    block: int
    text: str
    choice: int = 0


class RefusalChunk(msgspec.Struct, frozen=True, gc=False):
    """Words of a refusal, as they arrive."""

    block: int
    text: str
    choice: int = 0


class ToolCallStart(msgspec.Struct, frozen=True, gc=False):
    """The model calls a tool. `state_follows`: opaque state of the call comes next, before its arguments."""

    block: int
    id: str
    name: str
    choice: int = 0
    state_follows: bool = False


class ToolCallChunk(msgspec.Struct, frozen=True, gc=False):
    """A piece of the call's arguments: JSON text, cut anywhere."""

    block: int
    arguments: str
    choice: int = 0


class ToolCallEnd(msgspec.Struct, frozen=True, gc=False):
    """The call is complete: the provider said all of its arguments. There is none for a call in which the reply broke off."""

    block: int
    choice: int = 0


class OpaqueState(msgspec.Struct, frozen=True):
    """A signature, ciphertext or id that belongs to a block of any kind."""

    block: int
    opaque: Opaque
    choice: int = 0


class BlockFields(msgspec.Struct, frozen=True):
    """Fields of `dialect` that decorate a block (citations, annotations): merged, lists appended."""

    block: int
    dialect: str
    fields: dict[str, Any]
    choice: int = 0


class UnknownContent(msgspec.Struct, frozen=True):
    """A whole block of `dialect` that has no counterpart here."""

    block: int
    dialect: str
    value: Any
    choice: int = 0


class ReplyFields(msgspec.Struct, frozen=True):
    """Fields of `dialect` on the reply itself (or on its choice) that bardo has no word for."""

    dialect: str
    fields: dict[str, Any]
    choice: int | None = None


class UsageUpdate(msgspec.Struct, frozen=True):
    """Token counts so far. A later one replaces an earlier one."""

    usage: Usage


class Degraded(msgspec.Struct, frozen=True):
    """Something was changed or lost on the way."""

    degradation: Degradation


class Finish(msgspec.Struct, frozen=True, gc=False):
    """A choice is over: our word for why, and the provider's."""

    reason: FinishReason
    raw: str = ""
    stop_sequence: str | None = None
    choice: int = 0

    def __repr__(self) -> str:
        """Return what is said of the end, without what is not."""
        parts = {"reason": self.reason, "raw": self.raw, "stop_sequence": self.stop_sequence, "choice": self.choice}
        return f"Finish({', '.join(f'{name}={part!r}' for name, part in parts.items() if part not in (None, '', 0))})"


BREAKS_OFF: frozenset[FinishReason] = frozenset(("length", "refusal", "error"))
"""The reasons for which a reply may end in the middle of what the model was saying."""


class Failed(msgspec.Struct, frozen=True):
    """The reply failed; what came before it stands."""

    error: BardoError


class Extension(msgspec.Struct, frozen=True):
    """What bardo itself has to say, for the end of a reply: the chain, the receipt, ids."""

    fields: dict[str, Any]


class Partial(msgspec.Struct, frozen=True):
    """A typed answer as far as it has come. Later ones only add to it. `size` is how many characters were read for it."""

    value: Any
    size: int = 0


Event = (
    ReplyStart
    | ThinkStart
    | ThinkChunk
    | ThinkEnd
    | EmptyThought
    | WithheldThought
    | ContentChunk
    | RefusalChunk
    | ToolCallStart
    | ToolCallChunk
    | ToolCallEnd
    | OpaqueState
    | BlockFields
    | UnknownContent
    | ReplyFields
    | UsageUpdate
    | Degraded
    | Finish
    | Failed
    | Extension
    | Partial
)
"""Everything that a reply says, in the order in which it comes."""
