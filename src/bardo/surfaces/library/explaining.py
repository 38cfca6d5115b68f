"""`bardo.explain`: what would be sent for a request, and why, without sending it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from bardo.dialects import DEFAULT_DIALECT, DIALECTS
from bardo.dialects import dialect as dialect_named
from bardo.edge.assembly import model_facts
from bardo.edge.call_routing import candidate_index
from bardo.edge.directory import with_keys
from bardo.edge.keys import Keyring
from bardo.edge.model_facts import ModelFacts
from bardo.edge.settings import Settings, load_settings, provider_of
from bardo.edge.settings_routing import RoutingSettings
from bardo.engine.explaining import explain as explain_route
from bardo.engine.explanation import Explanation
from bardo.engine.model_features import candidate_of
from bardo.engine.route import Provider, Target, resolve, target_at
from bardo.engine.routing import Routed, route
from bardo.routing.candidate_index import CandidateList, Candidates
from bardo.surfaces.presets import provider_named, target_of_catalog
from bardo.values.errors import InvalidRequest, UnknownModel
from bardo.values.intent import Intent
from bardo.values.request import Request
from bardo.values.wire import Arrival

_MOST_SHOWN = 32

Config = str | Path | Settings | None


def explain(
    request: Mapping[str, Any],
    dialect: str = DEFAULT_DIALECT,
    provider: str = "",
    *,
    model: str | None = None,
    config: Config = None,
) -> Explanation:
    """Return what would be sent for a client's request: the exact upstream body, the route, and every difference. Nothing is sent.

    `request` is the body in the client's `dialect`. `provider` is one that is configured, or a row of the catalog, which needs no
    configuration; without it the model's name is routed as by the gateway, and where nobody is configured for it, the catalog's provider
    of such names is meant. `model` goes before the body's. `config` is a bardo.toml, its Settings, or None for what is found.
    Raises InvalidRequest, UnknownModel, ConfigError, and Unsupported where the request cannot be put to anybody.
    """
    settings = config if isinstance(config, Settings) else load_settings(config)
    read = read_request(request, dialect, model)
    providers, facts = providers_of(settings), model_facts(settings)
    if read.options.intent is not None and not provider:
        routed = route_of(read, read.options.intent, providers, facts, settings.routing)
        return explain_route(read, routed.targets, knowledge=facts.knowledge(routed.targets), routed=routed)
    targets, why = find_targets(read.model, provider, providers)
    return explain_route(read, targets, why=why, knowledge=facts.knowledge(targets))


def route_of(
    request: Request, intent: Intent, providers: Sequence[Provider], facts: ModelFacts, settings: RoutingSettings
) -> Routed:
    """Return who would be asked for what a request needs, of the models that the configuration lists.

    Raises UnknownModel, Unsupported and Unavailable.
    """
    candidates: Candidates = candidate_index(providers, facts, settings.private_providers)
    if intent.model is not None:
        targets, _ = find_targets(intent.model, "", providers)
        private = settings.private_providers
        candidates = CandidateList(
            candidate_of(at, facts.of(at, asks=False), private=at.provider.id in private) for at in targets
        )
        providers = [at.provider for at in targets]
    by_id = {one.id: one for one in providers}
    return route(request, candidates, by_id, strategy=settings.strategy, most=_MOST_SHOWN)


def read_request(request: Mapping[str, Any], dialect: str, model: str | None = None) -> Request:
    """Return a client's body as a Request. Raises InvalidRequest."""
    if dialect not in DIALECTS:
        near = get_close_matches(dialect, DIALECTS, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(DIALECTS)}"
        raise InvalidRequest(f"no dialect is called {dialect!r}", hint=hint, param="dialect")
    fields = dict(request)
    named = model or fields.get("model")
    if dialect_named(dialect).model_in_path:
        fields.pop("model", None)
    elif named is not None:
        fields["model"] = named
    try:
        body = msgspec.json.encode(fields)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidRequest(f"the request cannot be written as JSON: {str(problem)[:200]}") from problem
    return dialect_named(dialect).decode_request(body, Arrival(model=named if isinstance(named, str) else ""))


def providers_of(settings: Settings) -> list[Provider]:
    """Return the providers of a configuration; one without any has those whose keys are set."""
    return [provider_of(entry, settings.source) for entry in settings.providers] or with_keys(Keyring())


def find_targets(model: str, provider: str, providers: Sequence[Provider]) -> tuple[list[Target], str]:
    """Return who is meant, best first, and why where no route was looked for. Raises UnknownModel or InvalidRequest."""
    if provider:
        return [target_at(provider_named(provider, providers), model)], "it was named"
    try:
        return resolve(model, providers), ""
    except UnknownModel as problem:
        found = target_of_catalog(model)
        if found is None:
            raise UnknownModel(problem.message, hint=f"{problem.hint}; or name the provider to ask") from problem
        return [found], "nobody is configured for it; the catalog's provider of such names"
