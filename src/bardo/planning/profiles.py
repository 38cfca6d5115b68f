"""Lay an inference profile over a request before it is planned, and write its fields that only some providers take.

The caller's own fields go before the profile, unless the profile is locked: then it holds, and the difference is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from bardo.catalog.fragments import at_path, merge_fields
from bardo.catalog.hosted_tools import HostedForm, hosted_tools
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.profile_fields import FieldForm, ProfileField, profile_fields
from bardo.planning.route import Target
from bardo.routing.profiles import LOCKED
from bardo.values.blocks import Carried, TextBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.profile import InferenceProfile
from bardo.values.request import BardoOptions, OutputFormat, ReasoningPolicy, Request, Sampling, Tool

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
    schema = profile.response_schema
    if schema is not None:
        form = OutputFormat(mode="json_schema", name=schema.name, schema=schema.schema, strict=schema.strict)
        if merge.holds(request.output_format, form, "response_format", shown=lambda one: one.name or one.mode):
            merge.fields["output_format"] = form
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
        if said is not None and (said.mode, said.effort, said.budget) != (wanted.mode, wanted.effort, wanted.budget):
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


def _word(policy: ReasoningPolicy) -> str | int:
    return policy.effort or policy.budget or policy.mode


class TargetFields(NamedTuple):
    """JSON fields that go into the upstream body, and what cannot be sent."""

    fields: dict[str, Any]
    degraded: tuple[Degradation, ...]


NOTHING = TargetFields({}, ())
_LONGEST_SHOWN = 100


def fields_at(request: Request, target: Target) -> TargetFields:
    """Return what of a request's profile goes into the body for a target. It depends on the shape of the request only.

    A field that only some providers take is sent where a row says how, else reported.
    """
    profile = request.options.profile
    if profile is None:
        return NOTHING
    fields: dict[str, Any] = {}
    degraded: list[Degradation] = []
    for row, asked in _asked(profile):
        match form_at(row, target):
            case FieldForm(marker="") as form:
                if form.path.partition(".")[0] not in request.extra:
                    fields = merge_fields(fields, at_path(form.path, form.written(asked, target.model)))
            case HostedForm(field=field) as form:
                if field and field not in request.extra:
                    fields[field] = form.written
            case None:
                if not matches_any(target.provider.row.id, row.implied_at):
                    degraded.append(Degradation(row.name, asked=_shown(asked), why=row.why))
    return TargetFields(fields, tuple(degraded))


def with_content_of_profile(request: Request, target: Target) -> tuple[Request, tuple[Degradation, ...]]:
    """Return the request with the content that its profile asks for at a target, a hosted tool or a cache marker, and what cannot be."""
    profile = request.options.profile
    degraded: tuple[Degradation, ...] = ()
    for row, asked in () if profile is None else _asked(profile):
        match form_at(row, target):
            case FieldForm() as form:
                if form.marker:
                    request = _marked(request, row.name, form, form.written(asked, target.model))
            case HostedForm(field="") as form:
                if form.alone and request.tools and not any(tool.hosted for tool in request.tools):
                    why = "the provider runs it beside no functions"
                    degraded = (*degraded, Degradation(row.name, asked=_shown(asked), why=why))
                elif not any(tool.hosted for tool in request.tools):
                    tool = Tool(name=row.hosted, hosted=True, carried=Carried(form.dialect, form.written))
                    request = msgspec.structs.replace(request, tools=(*request.tools, tool))
    return request, degraded


def _asked(profile: InferenceProfile) -> Iterator[tuple[ProfileField, Any]]:
    for row in profile_fields():
        asked = getattr(profile, row.name)
        if asked:
            yield row, asked


def form_at(row: ProfileField, target: Target) -> FieldForm | HostedForm | None:
    """Return how a field goes to a target: in a form of its own, or as a tool that the provider runs, or None if it does not."""
    provider = target.provider.row
    form = row.form_at(provider.id, provider.dialect, plain_id(target.model))
    return form or (_hosted(row.hosted, target) if row.hosted else None)


def _hosted(name: str, target: Target) -> HostedForm | None:
    provider = target.provider.row
    tool = next((tool for tool in hosted_tools() if tool.name == name), None)
    return None if tool is None else tool.form_at(provider.dialect, provider.id, target.model)


def _marked(request: Request, name: str, form: FieldForm, value: Any) -> Request:
    """Return the request with a marker behind its system prompt; one that the caller marked stays as it is."""
    blocks = [block for message in request.messages for block in message.blocks if not isinstance(block, UnknownBlock)]
    carried = [one.carried for one in (*blocks, *request.tools)]
    if name in request.extra or any(one is not None and name in one.fields for one in carried):
        return request
    last: int | None = None
    for place, message in enumerate(request.messages):
        if message.role != "system":
            break
        end = message.blocks[-1] if message.blocks else None
        if isinstance(end, TextBlock) and end.carried is None:
            last = place
    if last is None:
        return request
    message = request.messages[last]
    block = message.blocks[-1]
    assert isinstance(block, TextBlock)
    marked = msgspec.structs.replace(block, carried=Carried(form.marker, {name: value}))
    changed = msgspec.structs.replace(message, blocks=(*message.blocks[:-1], marked))
    return msgspec.structs.replace(request, messages=(*request.messages[:last], changed, *request.messages[last + 1 :]))


def _shown(asked: Any) -> Any:
    return asked if isinstance(asked, bool) or len(asked) <= _LONGEST_SHOWN else f"{asked[:_LONGEST_SHOWN]}…"
