"""What the choice of tools remembers between calls, and the effects by which it is found and kept.

All of it is bounded, and belongs to one tenant, but for the vectors of tools, which say nothing of who uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from bardo.context.layer import Effect
from bardo.context.tool_choice.ranking import ToolUses, ToolVectors, Vector


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one session, in the order in which they are sent. Later turns only append to it.

    `functions`: the other tools are found by functions.
    """

    names: tuple[str, ...]
    functions: bool = False

    @classmethod
    def decode(cls, value: bytes | None) -> Self | None:
        """Return a plan that was kept as bytes; None where there is none that can be read."""
        try:
            return None if value is None else msgspec.msgpack.decode(value, type=cls)
        except msgspec.MsgspecError:
            return None

    def encode(self) -> bytes:
        """Return the plan as bytes."""
        return msgspec.msgpack.encode(self)


class FindToolVectors(Effect, frozen=True):
    """Ask for the vectors of tools by the digests of their texts. It is answered with a mapping of those that are there."""

    digests: tuple[bytes, ...]


class StoreToolVectors(Effect, frozen=True):
    """Keep the vectors of tools by the digests of their texts."""

    vectors: Mapping[bytes, ToolVectors]


class FindToolUses(Effect, frozen=True):
    """Ask for the earlier uses of tools, measured with the embedding of this fingerprint. It is answered with a mapping by names."""

    tenant: str
    names: tuple[str, ...]
    fingerprint: str


class BuildWordIndex(Effect, frozen=True):
    """Build the index of the words of many tools, as `word_index` keeps it, while other calls have their turn."""

    tools: tuple[tuple[str, str], ...]


class RecordToolUse(Effect, frozen=True):
    """Note that tools were called for a text, given as its vector."""

    tenant: str
    names: tuple[str, ...]
    vector: Vector
    fingerprint: str


class FindToolTurns(Effect, frozen=True):
    """Ask for the turns behind calls that a client saw, by the ids of the calls. It is answered with a mapping by ids."""

    tenant: str
    ids: tuple[str, ...]


FoundUses = Mapping[str, ToolUses]
