"""The savings of an agent whose means run out: how its vitality changes an intent, how deep a model thinks, and a temperature.

Vitality is a number from 0 to 1: the remaining part of an agent's life. Pressure is 1 less that. The numbers, and the parts of the agent
that are exempt, are a `PressureRules` value: rows of whoever brings such an agent.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from bardo.routing.profiles import ReasoningConfig, downgrade
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile, ProfileEffort
from bardo.values.request import QUALITIES, Intent, Quality

Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]


class PressureRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of pressure, and who is exempt.

    `cost_weight` is how much full pressure adds to an intent's cost sensitivity. Above a pressure of `quality_above` an intent's quality
    is one step lower, down to `lowest_quality`; above `depth_above` reasoning is one level lower, and above `no_thinking_above` there is
    none. `temperature_weight` is how much of the way to `analytical_temperature` a temperature goes at full pressure. The three lists
    name the subsystems that pressure does not reach.
    """

    cost_weight: Fraction
    quality_above: Fraction
    lowest_quality: Quality
    depth_above: Fraction
    no_thinking_above: Fraction
    analytical_temperature: float
    temperature_weight: Fraction
    intent_exempt: tuple[str, ...] = ()
    reasoning_exempt: tuple[str, ...] = ()
    temperature_exempt: tuple[str, ...] = ()


class SubsystemPressure(msgspec.Struct, frozen=True, kw_only=True):
    """How falling vitality changes the calls of one subsystem. The exemptions of `rules` go by the names of its `intent` and `profile`."""

    rules: PressureRules
    intent: str
    profile: str

    def intent_at(self, intent: Intent, vitality: float) -> Intent:
        """Return the subsystem's intent at a vitality from 0 to 1. Raises InvalidRequest for one out of range."""
        named = msgspec.structs.replace(intent, subsystem=self.intent)
        pressed = apply_mortality_pressure(named, vitality, self.rules)
        return msgspec.structs.replace(pressed, subsystem=intent.subsystem)

    def effort_at(self, effort: ProfileEffort, vitality: float) -> ProfileEffort:
        """Return how deep the subsystem's model thinks at a vitality. Raises InvalidRequest for one out of range."""
        return apply_mortality_to_reasoning(ReasoningConfig(depth=effort), self.intent, vitality, self.rules).depth

    def profile_at(self, profile: InferenceProfile, vitality: float) -> InferenceProfile:
        """Return the subsystem's profile at a vitality: its effort and its temperature. Raises InvalidRequest for one out of range."""
        effort, temperature = profile.reasoning_effort, profile.temperature
        if effort is not None:
            effort = self.effort_at(effort, vitality)
        if temperature is not None:
            temperature = apply_mortality_temperature(temperature, vitality, self.profile, self.rules)
        return msgspec.structs.replace(profile, reasoning_effort=effort, temperature=temperature)


def pressure_at(vitality: float) -> float:
    """Return the pressure, 0 to 1. Raises InvalidRequest for a vitality that is no number from 0 to 1."""
    if not 0 <= vitality <= 1:
        hint = "vitality is a number from 0 (dying) to 1 (healthy)"
        raise InvalidRequest(f"vitality {vitality!r} is out of range", hint=hint, param="vitality")
    return 1 - vitality


def apply_mortality_pressure(intent: Intent, vitality: float, rules: PressureRules) -> Intent:
    """Return the intent under pressure: more sensitive to cost, and under high pressure content with less quality.

    Source: 003, "Mortality pressure modification". Raises InvalidRequest for a vitality out of range.
    """
    pressure = pressure_at(vitality)
    if intent.subsystem in rules.intent_exempt:
        return intent
    quality = intent.quality
    if pressure > rules.quality_above:
        rank, floor = QUALITIES.index(quality), QUALITIES.index(rules.lowest_quality)
        quality = quality if rank <= floor else QUALITIES[rank - 1]
    sensitivity = min(intent.cost_sensitivity + pressure * rules.cost_weight, 1.0)
    return msgspec.structs.replace(intent, cost_sensitivity=sensitivity, quality=quality)


def apply_mortality_to_reasoning(
    config: ReasoningConfig, subsystem: str, vitality: float, rules: PressureRules
) -> ReasoningConfig:
    """Return how a model thinks under pressure: one level less under high pressure, not at all near the end.

    Source: 000 §5, "Reasoning budget and mortality". Raises InvalidRequest for a vitality out of range.
    """
    pressure = pressure_at(vitality)
    if subsystem in rules.reasoning_exempt:
        return config
    depth = downgrade(config.depth) if pressure > rules.depth_above else config.depth
    return msgspec.structs.replace(config, depth="none" if pressure > rules.no_thinking_above else depth)


def apply_mortality_temperature(base_temp: float, vitality: float, subsystem: str, rules: PressureRules) -> float:
    """Return a temperature under pressure: part of the way to the analytical one.

    Source: 003, "Mortality-aware temperature adjustment". Raises InvalidRequest for a vitality out of range.
    """
    pressure = pressure_at(vitality)
    if subsystem in rules.temperature_exempt:
        return base_temp
    return base_temp - (base_temp - rules.analytical_temperature) * pressure * rules.temperature_weight
