"""Profiles of a configuration: which models think how."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.values.degradation import Degradation
from bardo.values.profile import InferenceProfile, ProfileEffort

_DEFAULTS = InferenceProfile()
LOCKED = "this profile is locked: its values hold"


def set_fields(profile: InferenceProfile) -> dict[str, Any]:
    """Return the fields that a profile sets, by their names."""
    return {name: value for name, value in msgspec.structs.asdict(profile).items() if value is not None}


def merge_profiles(base: InferenceProfile | None, over: InferenceProfile | None) -> InferenceProfile:
    """Return `base` with what `over` sets in the place of its own. None sets nothing."""
    if base is None or over is None:
        return over or base or _DEFAULTS
    return msgspec.structs.replace(base, **set_fields(over))


def override_profile(
    name: str, base: InferenceProfile, over: InferenceProfile, *, locked: bool
) -> tuple[InferenceProfile, tuple[Degradation, ...]]:
    """Return the profile `name` with the fields that `over` sets, and those of them that are not honoured.

    A locked profile keeps every field that it sets; a field that it leaves open may still be set. Source: 003, "Locked profiles".
    """
    if not locked:
        return merge_profiles(base, over), ()
    held = set_fields(base)
    wanted = set_fields(over)
    refused = tuple(
        Degradation(f"profile.{name}.{field}", asked=value, sent=held[field], why=LOCKED)
        for field, value in wanted.items()
        if field in held and held[field] != value
    )
    open_fields = {field: value for field, value in wanted.items() if field not in held}
    return msgspec.structs.replace(base, **open_fields), refused


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
    return max((depth for depth in DEPTHS if _ORDER.index(depth) < rank), key=_ORDER.index, default="none")
