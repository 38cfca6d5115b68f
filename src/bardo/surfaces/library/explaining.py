"""Explain, without sending anything, where a request would go and as what."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.config.routing import workloads_of
from bardo.adapters.config.settings import Settings, data_folder, load_settings, profiles_named, provider_of
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.context.layer import KeptReply
from bardo.dialects import DEFAULT_DIALECT, DIALECTS
from bardo.dialects import dialect as dialect_named
from bardo.planning.explaining import explain as explain_route
from bardo.planning.explanation import Explanation
from bardo.planning.knowledge import Knowledge, candidate_of, chat_models
from bardo.planning.model_names import Aliases, ResolvedModel, with_alias_fields, with_effort, with_thinking_name
from bardo.planning.route import Provider, Target, resolve, target_at
from bardo.planning.routing import Routed, route
from bardo.planning.workloads import (
    NOTHING_FOUND,
    CallNeeds,
    Steps,
    check_contradiction,
    needs_of,
    record_of,
    targets_in_steps,
    with_found,
    without_workload,
)
from bardo.routing.candidates import Candidate, CandidateIndex, CandidateList, Candidates
from bardo.routing.workloads import PREFIX, unknown_workload
from bardo.services.facts.directory import ProviderDirectory, with_keys
from bardo.services.facts.price_book import PriceBook
from bardo.services.facts.server_choice import idle_servers
from bardo.services.pipeline.call_layers import CallLayers
from bardo.services.pipeline.pipeline import Pipeline
from bardo.surfaces.presets import check_known, provider_named, target_unconfigured
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, UnknownModel, Unsupported
from bardo.values.request import Request
from bardo.values.wire import Arrival
from bardo.wiring import make_services, model_facts

_MOST_SHOWN = 32
_NAMED = "it was named"
_OF_CATALOG = "nobody is configured for it; the catalog's provider of such names"


class PlannedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A request with all that it needs, the targets that would be asked in order, and how they were found.

    `why` they are the targets where no route was looked for, `routed` the decision where the request says what it needs.
    """

    request: Request
    targets: Sequence[Target]
    knowledge: Knowledge
    why: str = ""
    routed: Routed | None = None


class RoutePlanner:
    """Finds who would be asked, by one configuration. `providers` are its own with the models that they list, where they were asked."""

    def __init__(self, settings: Settings, providers: Sequence[Provider] = ()) -> None:
        configured = [provider_of(entry, settings.source) for entry in settings.providers]
        self.providers: list[Provider] = [*providers] or configured or with_keys(Keyring())
        self._facts = model_facts(settings)
        self._aliases = Aliases(settings.aliases)
        self._workloads = workloads_of(settings.workloads)
        self._settings = settings.routing
        self.settings = settings
        self._prices = PriceBook(settings.prices)
        self._index: CandidateIndex | None = None

    def may_have_layers(self, request: Request) -> bool:
        """Whether layers could work on a request before it is sent."""
        options, settings = request.options, self.settings
        named = bool(settings.inference.pipeline.profile) or any(profiles_named(settings))
        return named or options.pipeline is not None or bool(options.layers)

    def plan(
        self,
        request: Request,
        provider: str = "",
        layers_found: Mapping[str, Any] = NOTHING_FOUND,
        *,
        every_server: bool = False,
    ) -> PlannedRoute:
        """Return who would be asked for a request; `provider` names one, and then no other is looked for.

        `layers_found` are fields of an intent that layers found the call to need. `every_server`: a layer chooses among all servers of a
        provider, of which a call is else put to four.

        Raises UnknownModel, InvalidRequest, Unsupported and Unavailable, as a call does.
        """
        found = self._found(request.model)
        request = with_alias_fields(with_effort(request, found), found)
        needs = needs_of(request, found, self._workloads)
        if needs is not None and not provider:
            return self._route(with_found(needs, layers_found), every_server=every_server)
        request = without_workload(request, self._workloads) if needs is None else needs.request
        names = (found.model, *found.fallbacks) if needs is None else needs.models
        targets, skipped, why = self._targets(names or (request.model,), provider)
        return self._plan(request, targets, skipped, why=why, every_server=every_server)

    def _route(self, needs: CallNeeds, *, every_server: bool) -> PlannedRoute:
        request, providers = needs.request, self.providers
        skipped: tuple[Degradation, ...] = ()
        candidates: Candidates
        steps: Steps = {}
        if needs.models:
            names = [name for model in needs.models for name in self._names(model)]
            targets, skipped, _ = self._targets(names, "")
            candidates = CandidateList([self.candidate(at) for at in targets])
            providers = [at.provider for at in targets]
        elif (in_steps := targets_in_steps(needs, self.providers, self.candidate))[0]:
            steps = in_steps[1]
            candidates = CandidateList([self.candidate(at) for at in in_steps[0]])
        else:
            self._check_lists()
            self._index = self._index or CandidateIndex(
                self.candidate(Target(provider=provider, model=model))
                for provider in self.providers
                for model in chat_models(provider)
            )
            candidates = self._index
        by_id = {provider.id: provider for provider in providers}
        routed = route(request, candidates, by_id, strategy=self._settings.strategy, most=_MOST_SHOWN)
        check_contradiction(needs, routed.decision)
        routed = msgspec.structs.replace(routed, record=record_of(routed.record, needs, steps))
        return self._plan(request, routed.targets, skipped, routed=routed, every_server=every_server)

    def _check_lists(self) -> None:
        """Raise Unsupported where no provider's models are known: here no server is asked for its list."""
        if self.providers and not any(map(chat_models, self.providers)):
            ids = ", ".join(provider.id for provider in self.providers)
            hint = (
                'ask for their lists with --lists, write models = ["..."] at a provider in bardo.toml, or name a model'
            )
            raise Unsupported(f"the models of {ids} are not known here", hint=hint, param="model")

    def _plan(
        self,
        request: Request,
        targets: Sequence[Target],
        skipped: Sequence[Degradation],
        *,
        why: str = "",
        routed: Routed | None = None,
        every_server: bool,
    ) -> PlannedRoute:
        if skipped:
            request = msgspec.structs.replace(request, degraded=(*request.degraded, *skipped))
        targets = idle_servers(targets, request, every=every_server)
        knowledge = self._facts.knowledge(targets)
        return PlannedRoute(request=request, targets=targets, knowledge=knowledge, why=why, routed=routed)

    def candidate(self, at: Target) -> Candidate:
        """Return a target as routing compares it."""
        private = at.provider.id in self._settings.private_providers
        price = self._prices.price(at.provider, at.model, time.time())
        return candidate_of(at, self._facts.of(at, asks=False), private=private, price=price)

    def _names(self, model: str) -> tuple[str, ...]:
        found = self._found(model)
        return (found.model, *found.fallbacks)

    def _found(self, model: str) -> ResolvedModel:
        return with_thinking_name(self._aliases.find(model), self.providers)

    def _targets(self, names: Sequence[str], provider: str) -> tuple[list[Target], tuple[Degradation, ...], str]:
        """Return who serves some models, best first, which of them nobody serves, and why where no route was looked for."""
        if provider:
            return [target_at(provider_named(provider, self.providers), names[0])], (), _NAMED
        targets: list[Target] = []
        problems: dict[str, UnknownModel] = {}
        for name in dict.fromkeys(names):
            try:
                targets += [target for target in resolve(name, self.providers) if target not in targets]
            except UnknownModel as missing:
                problems[name] = missing
        if targets:
            facts = self._facts.of(targets[0], asks=False)
            if not facts.layers:
                check_known(targets[0], facts.known.found)
            skipped = (Degradation("model", asked=name, why=one.message) for name, one in problems.items())
            return targets, tuple(skipped), ""
        problem = problems[names[0]]
        if names[0].startswith(PREFIX):
            raise unknown_workload(names[0].removeprefix(PREFIX), self._workloads) from problem
        return [target_unconfigured(names[0], self.providers, problem)], (), _OF_CATALOG


T = TypeVar("T")
Config = str | Path | Settings | None


def explain(
    request: Mapping[str, Any],
    dialect: str = DEFAULT_DIALECT,
    provider: str = "",
    *,
    model: str | None = None,
    stream: bool | None = None,
    config: Config = None,
) -> Explanation:
    """Return what would be sent for a client's request: the exact upstream body, the route, and every difference. Nothing is sent.

    `request` is the body in the client's `dialect`. `provider` is one that is configured, or a row of the catalog, which needs no
    configuration; without it the model's name is routed as by the gateway: it may be an alias or a workload, and the `bardo` object may
    hold an intent. Where nobody is configured for a model, the catalog's provider of such names is meant.
    `model` goes before the body's. `stream` says whether the reply is asked for as a stream, which Gemini's and Bedrock's clients say in
    the path; None: as the body says. `config` is a bardo.toml, its Settings, or None for what is found.
    Raises InvalidRequest, UnknownModel, ConfigError, and Unsupported where the request cannot be put to anybody.
    """
    settings = config if isinstance(config, Settings) else load_settings(config)
    return explain_by(RoutePlanner(settings), read_request(request, dialect, model, stream=stream), provider)


def explain_by(planner: RoutePlanner, request: Request, provider: str = "") -> Explanation:
    """Return what would be sent for a request by a planner's configuration. Raises as `explain` does."""
    if planner.may_have_layers(request):
        return _explain_with_layers(planner, request, provider)
    return _explain(planner.plan(request, provider))


def _explain(planned: PlannedRoute) -> Explanation:
    return explain_route(
        planned.request, planned.targets, why=planned.why, knowledge=planned.knowledge, routed=planned.routed
    )


def _explain_with_layers(planner: RoutePlanner, request: Request, provider: str) -> Explanation:
    """Return what would be sent for a request once its layers have worked on it, with their receipts."""

    plans: list[PlannedRoute] = []

    def plan(changed: Request, found: Mapping[str, Any], every_server: bool) -> tuple[Request, Sequence[Target]]:
        plans.append(planner.plan(changed, provider, found, every_server=every_server))
        return plans[0].request, plans[0].targets

    ran = _run(run_layers(planner.settings, request, plan))
    if ran is None:
        return _explain(planner.plan(request, provider))
    planned = msgspec.structs.replace(plans[0], request=ran.request, targets=ran.targets)
    found = _explain(planned)
    forwarded = found.forwarded and not ran.call.changes_reply
    return msgspec.structs.replace(found, pipeline=ran.call.fields(), forwarded=forwarded)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, also where an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def read_request(
    request: Mapping[str, Any], dialect: str, model: str | None = None, *, stream: bool | None = None
) -> Request:
    """Return a client's body as a Request; `stream` goes before what the body says. Raises InvalidRequest."""
    if dialect not in DIALECTS:
        near = get_close_matches(dialect, DIALECTS, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(DIALECTS)}"
        raise InvalidRequest(f"no dialect is called {dialect!r}", hint=hint, param="dialect")
    fields = dict(request)
    named = model or fields.get("model")
    if dialect_named(dialect).model_in_path:
        fields.pop("model", None)
    else:
        fields |= {"model": named} if named is not None else {}
        fields |= {"stream": stream} if stream is not None else {}
    try:
        body = msgspec.json.encode(fields)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidRequest(f"the request cannot be written as JSON: {str(problem)[:200]}") from problem
    return dialect_named(dialect).decode_request(
        body, Arrival(model=named if isinstance(named, str) else "", stream=stream)
    )


Plan = Callable[[Request, Mapping[str, Any], bool], tuple[Request, Sequence[Target]]]
"""Returns who would be asked for a request: by the fields of an intent that layers found, and whether a layer chooses among all servers."""


class DryRun(msgspec.Struct, frozen=True):
    """A request as it would be sent, to whom, and what the layers did."""

    request: Request
    targets: Sequence[Target]
    call: CallLayers


async def run_layers(settings: Settings, request: Request, plan: Plan) -> DryRun | None:
    """Return what layers make of a request, or None if it has none. `plan` returns who would be asked for a request.

    Raises BardoError where a layer refuses the call, and what `plan` raises.
    """
    transport, keyring = HttpTransport(), Keyring()
    services = make_services(
        ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic),
        transport,
        keyring,
        facts=model_facts(settings),
        client_keys=ClientKeys(settings.keys),
        prices=PriceBook(settings.prices),
        pipeline=lambda host: Pipeline.of(settings, host, data_folder(settings), os.environ),
    )
    pipeline = services.pipeline
    assert pipeline is not None
    try:
        call = await pipeline.of_call(request, dry=True)
        if call is None:
            return None
        request = await pipeline.before_route(call, request, _not_given)
        request, targets = plan(request, call.needs, call.plan.has("affinity"))
        request, cached = await pipeline.after_route(call, request, tuple(targets))
        return DryRun(request, cached, call)
    finally:
        await pipeline.close()
        await transport.close()


async def _not_given(cached: KeptReply, request: Request) -> None:
    """Leave a kept reply where it is: the receipt says that it would have been given."""
