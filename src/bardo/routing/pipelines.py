"""Which layers work on a call before it is sent, and how deep its model thinks: both chosen by the subsystem that asks."""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.routing.profiles import ReasoningConfig

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
