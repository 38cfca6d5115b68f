"""What a request needs, from all that says so: the workload that its model's name is, the caller's own intent, and the aliases.

The fields that the caller gives go before those of the workload, but for a locked profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import msgspec

from bardo.catalog.features import features
from bardo.planning.aliases import ResolvedModel
from bardo.planning.vitality import at_vitality
from bardo.routing.decision import Decision
from bardo.routing.profiles import merge_profiles, override_profile
from bardo.routing.workloads import PREFIX, Workload, Workloads, unknown_workload
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile
from bardo.values.request import BardoOptions, Intent, Request

PRIVACY = "privacy"
"""The feature of a provider that keeps nothing of a call."""
NOTHING_FOUND: Mapping[str, Any] = MappingProxyType({})
_NO_INTENT = Intent()
ANY_MODEL = "auto"
"""The workload that asks for nothing: a caller names it to have a model chosen by an intent alone."""


class CallNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its intent and profile complete, and the workload that it is, None where it is none.

    `models` are the names to look for in order; empty where any model will do. `vitality` is that of the agent that asks: the workload,
    the intent and the profile are as it makes them. `own_effort`: how deep a model thinks is said by the profile that the caller gives.
    `agent` is what is told of the step of an agent that the call is.
    """

    request: Request
    workload: Workload | None = None
    models: tuple[str, ...] = ()
    vitality: float | None = None
    own_effort: bool = False
    agent: dict[str, Any] = {}


def needs_of(request: Request, found: ResolvedModel, workloads: Workloads) -> CallNeeds | None:
    """Return what a request needs; None for one that only names models. Raises UnknownModel and InvalidRequest.

    `found` is what the name of its model stands for.
    """
    options = request.options
    named = workloads.find(found.model)
    if named is None and options.intent is None and not options.private:
        return None
    asked = options.intent or Intent()
    step = options.agent_step
    if step is not None:
        asked = msgspec.structs.replace(asked, subsystem=step.workload)
    given = _workload(asked, named, workloads, assigned=step is not None)
    if step is not None and step.profile is not None and given is not None:
        given = msgspec.structs.replace(given, profile=merge_profiles(given.profile, step.profile))
    workload, pressed = at_vitality(given, request, workloads)
    models = _models(asked, options, found, named, workload)
    intent = _intent(asked, options, workload)
    check_features(intent)
    profile, locked, refused = _profile(options.profile, workload)
    merged = msgspec.structs.replace(
        options,
        intent=msgspec.structs.replace(intent, model=models[0] if models else None),
        profile=profile,
        profile_locked=locked,
        private=options.private or (workload is not None and workload.private),
        vitality=None,
        agent_step=None,
    )
    request = msgspec.structs.replace(request, options=merged, degraded=(*request.degraded, *pressed, *refused))
    own = not locked and options.profile is not None and options.profile.reasoning_effort is not None
    return CallNeeds(
        request=request,
        workload=workload,
        models=models,
        vitality=options.vitality,
        own_effort=own,
        agent={} if step is None else step.record,
    )


def with_found(needs: CallNeeds, found: Mapping[str, Any]) -> CallNeeds:
    """Return needs with fields of the intent that layers found, where neither the caller nor the workload says anything else."""
    options = needs.request.options
    intent = options.intent or Intent()
    open_fields = {
        name: value
        for name, value in found.items()
        if name not in options.intent_fields and getattr(intent, name) == getattr(_NO_INTENT, name)
    }
    if not open_fields:
        return needs
    options = msgspec.structs.replace(options, intent=msgspec.structs.replace(intent, **open_fields))
    return msgspec.structs.replace(needs, request=msgspec.structs.replace(needs.request, options=options))


def check_features(intent: Intent) -> None:
    """Raise InvalidRequest for a feature that no row has, naming the nearest."""
    for field in ("require", "prefer"):
        for place, name in enumerate(getattr(intent, field)):
            if name not in features().names:
                param = f"bardo.intent.{field}[{place}]"
                raise InvalidRequest(f"no feature is called {name!r}", hint=near_feature(name), param=param)


def check_contradiction(needs: CallNeeds, decision: Decision) -> None:
    """Raise InvalidRequest where privacy is required of models that only providers have that are not private.

    Other features are given up where nobody has them, and reported; a call that is sent to a provider that keeps it cannot be taken back.
    """
    intent = decision.intent
    if (
        not needs.models
        or PRIVACY not in intent.require
        or not all(PRIVACY in one.degraded for one in decision.considered)
    ):
        return
    row = f"the workload {needs.workload.name!r}" if needs.workload is not None else "the intent"
    models = ", ".join(repr(name) for name in needs.models[:3])
    raise InvalidRequest(
        f"{row} contradicts itself: it requires {PRIVACY}, and no provider here that has {models} is private",
        hint=f"name a model of a private provider or none, prefer {PRIVACY} instead, or list the provider under [routing]: "
        "private_providers",
        param="bardo.intent.require",
    )


def near_feature(name: str) -> str:
    """Return which of the known features may be meant."""
    near = get_close_matches(name, features().names, n=2)
    return f"did you mean {' or '.join(near)}?" if near else f"features are {', '.join(features().names)}"


def _workload(
    asked: Intent, named: Workload | None, workloads: Workloads, *, assigned: bool = False
) -> Workload | None:
    """Return the workload of a call: the one that is its model's name, or its subsystem, which the gateway may have `assigned`."""
    if not asked.subsystem:
        return named
    found = workloads.get(asked.subsystem)
    if found is None:
        problem = unknown_workload(asked.subsystem, workloads)
        message = f"no subsystem or workload is called {asked.subsystem[:100]!r}"
        raise InvalidRequest(message, hint=problem.hint, param="bardo.intent.subsystem")
    if named is not None and not assigned and named.name not in (found.name, ANY_MODEL):
        message = f"the model names the workload {named.name!r}, and the subsystem is {found.name!r}"
        hint = f"name one of them; {PREFIX}{ANY_MODEL} is any model"
        raise InvalidRequest(message, hint=hint, param="bardo.intent.subsystem")
    return found


def _models(
    asked: Intent, options: BardoOptions, found: ResolvedModel, named: Workload | None, workload: Workload | None
) -> tuple[str, ...]:
    """Return the models to look for: the caller's own, then the workload's."""
    if "model" in options.intent_fields or asked.model is not None:
        return (asked.model,) if asked.model else ()
    if named is None and found.model:
        return (found.model, *found.fallbacks)
    if workload is None or workload.intent.model is None:
        return () if workload is None else workload.fallbacks
    return (workload.intent.model, *workload.fallbacks)


def _intent(asked: Intent, options: BardoOptions, workload: Workload | None) -> Intent:
    if workload is None:
        return asked
    given = {name: getattr(asked, name) for name in options.intent_fields}
    return msgspec.structs.replace(workload.intent, **{**given, "subsystem": workload.name})


def _profile(
    asked: InferenceProfile | None, workload: Workload | None
) -> tuple[InferenceProfile | None, bool, tuple[Degradation, ...]]:
    """Return the workload's profile with what the caller sets, whether it is locked, and what is not honoured of it."""
    if workload is None or workload.profile is None:
        return asked, False, ()
    if asked is None:
        return workload.profile, workload.locked, ()
    profile, refused = override_profile(workload.name, workload.profile, asked, locked=workload.locked)
    return profile, workload.locked, refused
