"""The targets of a workload whose route is a list of steps: the best place first, then those that lack something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from bardo.planning.route import Provider, RouteRecord, Target
from bardo.planning.workload_requests import CallNeeds
from bardo.routing.candidates import Candidate
from bardo.routing.fallback_route import FallbackRoute, Offer, RouteStep, fits, follow
from bardo.values.degradation import Degradation
from bardo.values.profile import InferenceProfile
from bardo.values.request import Request

Steps = Mapping[tuple[str, str], RouteStep]
"""The step that leads to each target, by the id of the provider and the model there."""


def targets_in_steps(
    needs: CallNeeds, providers: Iterable[Provider], candidate: Callable[[Target], Candidate]
) -> tuple[tuple[Target, ...], dict[tuple[str, str], RouteStep]]:
    """Return the models of providers that the steps of a call's workload lead to, in their order, and the step of each.

    None for a workload without steps. `candidate` gives a target as routing compares it.
    """
    workload = needs.workload
    if workload is None or not workload.route:
        return (), {}
    by_id = {provider.id: provider for provider in providers}
    offers = [
        Offer(provider=one.id, row=one.row.id, model=model, candidate=candidate(Target(provider=one, model=model)))
        for one in by_id.values()
        for model in sorted(one.models)
        if any(fits(step, one.row.id, model) for step in workload.route)
    ]
    intent = needs.request.options.intent or workload.intent
    found = list(follow(FallbackRoute(subsystem=workload.name, step=workload.route), offers, intent))
    targets = tuple([_target(by_id[one.offer.provider], one.offer.model, one.step) for one in found])
    return targets, {(at.provider.id, at.model): one.step for at, one in zip(targets, found, strict=True)}


def _target(provider: Provider, model: str, step: RouteStep) -> Target:
    """Return the target of a step: the variant of the model that the step asks for, where the provider has it and the id names no other."""
    varies = step.variant in provider.row.model_variants and ":" not in model
    return Target(provider=provider, model=f"{model}:{step.variant}" if varies else model)


def record_of(record: RouteRecord, needs: CallNeeds, steps: Steps) -> RouteRecord:
    """Return the record of a route with its workload, the vitality and the step of its agent, and the steps that led to its targets."""
    if needs.workload is None:
        return record
    fields = {"workload": needs.workload.name, **record.fields}
    if needs.vitality is not None:
        fields["vitality"] = needs.vitality
    if needs.agent:
        fields["agent"] = needs.agent
    efforts = {} if needs.own_effort else {at: step for at, step in steps.items() if step.effort}
    return msgspec.structs.replace(record, fields=fields, efforts=efforts)


def with_effort_of_step(request: Request, route: RouteRecord | None, target: Target) -> Request:
    """Return the request with the effort that the step to a target asks for in the place of its profile's, which is reported.

    A request whose caller asks for an effort is returned as it is, unless its profile is locked.
    """
    step = None if route is None else route.efforts.get((target.provider.id, target.model))
    options = request.options
    said = options.reasoning or request.reasoning
    if step is None or not step.effort or (said is not None and not options.profile_locked):
        return request
    profile = options.profile or InferenceProfile()
    if profile.reasoning_effort == step.effort:
        return request
    changed = msgspec.structs.replace(profile, reasoning_effort=step.effort)
    lost = Degradation("reasoning_effort", asked=profile.reasoning_effort, sent=step.effort, why=step.why)
    return msgspec.structs.replace(
        request,
        options=msgspec.structs.replace(options, profile=changed),
        degraded=(*request.degraded, lost),
    )
