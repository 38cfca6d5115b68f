"""How deep a model shall think for one part of an agent, and what of it shall be seen."""

from __future__ import annotations

import msgspec

from bardo.values.profile import ProfileEffort

DEPTHS: tuple[ProfileEffort, ...] = ("none", "low", "medium", "high", "max")
"""The levels of the documents, in rising order (003, "ReasoningEffort enum")."""
_ORDER: tuple[ProfileEffort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class ReasoningConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How deep a model thinks, whether the thinking must be readable, and whether it goes on between tool calls (000 §5)."""

    depth: ProfileEffort = "medium"
    visible: bool = False
    interleaved: bool = False


def downgrade(depth: ProfileEffort) -> ProfileEffort:
    """Return the next level of `DEPTHS` below, or `none`."""
    rank = _ORDER.index(depth)
    return max((one for one in DEPTHS if _ORDER.index(one) < rank), key=_ORDER.index, default="none")
