"""Profiles of a configuration: which models think how, which layers work on a call before it is sent, and how deep its model thinks for the
subsystem that asks.
"""

from __future__ import annotations

from typing import Any, Literal

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
    """Return the profile `name` with what `over` sets, and what is not honoured of it.

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
    return max((one for one in DEPTHS if _ORDER.index(one) < rank), key=_ORDER.index, default="none")


SecurityClass = Literal["standard", "private"]


class PipelineProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set of layers, by their names (`L1` to `L8`), the milliseconds they are expected to take, and what it is for."""

    name: str
    layers: tuple[str, ...]
    milliseconds: tuple[float, float]
    purpose: str


class PipelineChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pipeline profile and the reasoning of one subsystem."""

    subsystem: str
    pipeline: str
    reasoning: ReasoningConfig


class PipelineRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pipeline profiles, and who gets which. `otherwise` is for subsystems without a row, `private` for private work."""

    profile: tuple[PipelineProfile, ...]
    choice: tuple[PipelineChoice, ...]
    otherwise: PipelineChoice
    private: PipelineChoice

    def named(self, name: str) -> PipelineProfile:
        """Return a pipeline profile by its name. Raises KeyError for a name that no row has."""
        for profile in self.profile:
            if profile.name == name:
                return profile
        raise KeyError(name)


def select_profile_and_reasoning(
    subsystem: str, security_class: SecurityClass, rules: PipelineRules
) -> tuple[PipelineProfile, ReasoningConfig]:
    """Return the pipeline profile of a subsystem, and how deep its model thinks.

    Private work always gets the profile of `rules.private`: the code of 000 §5 gives it to subsystems without a row only, which leaves out
    the masking of personal data exactly where the work is private. Which reasoning a subsystem has does not depend on it.
    Source: 000 §5.
    """
    chosen = next((row for row in rules.choice if row.subsystem == subsystem), None)
    if security_class == "private":
        return rules.named(rules.private.pipeline), (chosen or rules.private).reasoning
    chosen = chosen or rules.otherwise
    return rules.named(chosen.pipeline), chosen.reasoning
