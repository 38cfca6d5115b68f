"""The targets of a workload whose route is a list of steps: the best place first, then those that lack something."""

from __future__ import annotations

from collections.abc import Iterable

from bardo.engine.route import Provider, Target
from bardo.routing.fallback_route import FallbackRoute, Offer, follow
from bardo.routing.workloads import Workload


def targets_in_steps(workload: Workload | None, providers: Iterable[Provider]) -> tuple[Target, ...]:
    """Return the models of providers that a workload's steps lead to, in their order; none for one without steps."""
    if workload is None or not workload.route:
        return ()
    by_id = {provider.id: provider for provider in providers}
    offers = [
        Offer(provider=one.id, row=one.row.id, model=model) for one in by_id.values() for model in sorted(one.models)
    ]
    found = follow(FallbackRoute(subsystem=workload.name, step=workload.route), offers)
    return tuple([Target(provider=by_id[one.offer.provider], model=one.offer.model) for one in found])
