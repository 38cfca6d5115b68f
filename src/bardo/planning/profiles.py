"""Lay an inference profile over a request, before it is planned.

What the caller's own fields say goes before the profile, unless the profile is locked: then it holds, and the difference is reported. What
only some providers take stays in the options, for `profile_fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bardo.routing.profiles import LOCKED
from bardo.values.degradation import Degradation
from bardo.values.profile import InferenceProfile, ResponseSchema
from bardo.values.request import BardoOptions, OutputFormat, ReasoningPolicy, Request, Sampling

PER_TARGET = ("prompt_cache_key", "cache_control", "web_search", "tee_mode", "predicted_output")
"""The fields that are settled for each provider."""
_SAMPLED = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "seed")
_CHOOSE = ("top_p", "top_k", "min_p")
"""Three ways to cut off unlikely tokens: a caller who names one has chosen, and a profile's other one would be laid on top."""


def apply_profile(request: Request) -> Request:
    """Return the request with the profile of its options laid under its own fields; a locked profile is laid over them.

    What is left in the options is what each target settles for itself. A request without a profile is returned as it is.
    """
    profile = request.options.profile
    if profile is None:
        return request
    merge = _ProfileMerge(request, locked=request.options.profile_locked)
    sampling = merge.sampling(profile)
    merge.plain("max_output_tokens", profile.max_tokens, "max_tokens")
    merge.value("output_format", profile.response_schema, "response_format", _format_of)
    options = merge.reasoning(profile)
    # The effort stays, so that a model without a control of its thinking is told in words.
    left = {name: getattr(profile, name) for name in (*PER_TARGET, "reasoning_effort", "visible_thinking")}
    return msgspec.structs.replace(
        request,
        **merge.fields,
        sampling=sampling,
        options=msgspec.structs.replace(options, profile=InferenceProfile(**left), profile_locked=False),
        degraded=(*request.degraded, *merge.degraded),
    )


class _ProfileMerge:
    """The fields of a request while a profile is laid over or under them."""

    def __init__(self, request: Request, *, locked: bool) -> None:
        self.request = request
        self.locked = locked
        self.fields: dict[str, Any] = {}
        self.degraded: list[Degradation] = []

    def holds(self, own: Any, wanted: Any, what: str, *, shown: Callable[[Any], Any] = lambda value: value) -> bool:
        """Whether the profile's value is taken in the place of the request's, which is reported where that says something else."""
        if own is None or own == ():
            return True
        if self.locked and own != wanted:
            self.degraded.append(Degradation(what, asked=shown(own), sent=shown(wanted), why=LOCKED))
        return self.locked

    def plain(self, name: str, wanted: Any, what: str) -> None:
        """Settle a field of the request that has the profile's form."""
        if wanted is not None and self.holds(getattr(self.request, name), wanted, what):
            self.fields[name] = wanted

    def value(self, name: str, wanted: Any, what: str, form: Callable[[Any], Any]) -> None:
        """Settle a field of the request that has a form of its own; what is shown of both is the name."""
        if wanted is not None and self.holds(getattr(self.request, name), form(wanted), what, shown=_name_of):
            self.fields[name] = form(wanted)

    def sampling(self, profile: InferenceProfile) -> Sampling:
        """Return the sampling of the request with that of the profile."""
        own = self.request.sampling
        chosen = any(getattr(own, name) is not None for name in _CHOOSE)
        taken: dict[str, Any] = {}
        for name in _SAMPLED:
            wanted = getattr(profile, name)
            left = name in _CHOOSE and chosen and not self.locked
            if wanted is not None and not left and self.holds(getattr(own, name), wanted, name):
                taken[name] = wanted
        if profile.stop_sequences and self.holds(own.stop, profile.stop_sequences, "stop"):
            taken["stop"] = profile.stop_sequences
        return msgspec.structs.replace(own, **taken)

    def reasoning(self, profile: InferenceProfile) -> BardoOptions:
        """Return the options with the reasoning that the profile asks for."""
        options, said = self.request.options, self.request.options.reasoning or self.request.reasoning
        wanted = _policy_of(profile)
        if profile.visible_thinking is False and (said is None or said.visible is None or self.locked):
            options = msgspec.structs.replace(options, omit_reasoning=True)
        if wanted is None:
            return options
        if said is not None and not _same(said, wanted):
            if not self.locked or profile.reasoning_effort is None:
                return self._shown(options, said, profile.visible_thinking)
            self.degraded.append(Degradation("reasoning", asked=_word(said), sent=_word(wanted), why=LOCKED))
        return msgspec.structs.replace(options, reasoning=wanted)

    def _shown(self, options: BardoOptions, said: ReasoningPolicy, visible: bool | None) -> BardoOptions:
        """Return the options with the caller's own policy, which says nothing of whether it shall be readable."""
        if visible is None or said.visible is not None:
            return options
        return msgspec.structs.replace(options, reasoning=msgspec.structs.replace(said, visible=visible))


def _policy_of(profile: InferenceProfile) -> ReasoningPolicy | None:
    effort, visible = profile.reasoning_effort, profile.visible_thinking
    if effort == "none":
        return ReasoningPolicy(mode="off")
    if effort is not None:
        return ReasoningPolicy(mode="effort", effort=effort, visible=visible)
    return ReasoningPolicy(mode="auto", visible=True) if visible else None


def _same(one: ReasoningPolicy, other: ReasoningPolicy) -> bool:
    return (one.mode, one.effort, one.budget) == (other.mode, other.effort, other.budget)


def _word(policy: ReasoningPolicy) -> str | int:
    return policy.effort or policy.budget or policy.mode


def _format_of(schema: ResponseSchema) -> OutputFormat:
    return OutputFormat(mode="json_schema", name=schema.name, schema=schema.schema, strict=schema.strict)


def _name_of(wanted: OutputFormat) -> str:
    return wanted.name or wanted.mode
