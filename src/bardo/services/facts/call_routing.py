"""Whom calls that say what they need are put to: every model of every provider as a candidate, as it is known now.

Candidates are made once and kept until a provider's list changes or its server says something new. A call that names models has only their
targets as candidates, in their order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.adapters.stores.log.row import LogRow
from bardo.planning.knowledge import candidate_of, chat_models
from bardo.planning.route import Provider, Target
from bardo.planning.routing import Routed, route
from bardo.planning.workloads import (
    Steps,
    check_contradiction,
    needs_of,
    record_of,
    targets_in_steps,
    with_found,
    without_workload,
)
from bardo.routing.candidates import (
    NO_CONDITIONS,
    Candidate,
    CandidateIndex,
    CandidateList,
    Candidates,
    Conditions,
    RankedCandidate,
    Refusals,
    ranked,
)
from bardo.routing.decision import Strategy
from bardo.services.facts.directory import Placement, ProviderDirectory
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.services.facts.server_choice import ServerChoice, ServerFacts
from bardo.values.errors import Unavailable
from bardo.values.request import Intent, Request

if TYPE_CHECKING:
    # Loaded for the strategy `learned` alone.
    from bardo.routing.learned.router import LearnedState
    from bardo.services.facts.learned_routing import LearnedRouting


_DAY = 86_400
_DIEM = "diem"
_AT_ONCE = 16
"""How many candidates are made before other calls have their turn: one takes about a millisecond."""


class _ProviderCandidates(msgspec.Struct, frozen=True, eq=False):
    """The candidates of one provider, and what they were made from."""

    provider: Provider
    revision: tuple[int, int, int]
    candidates: tuple[Candidate, ...]


class CallRouting:
    """Finds who is asked. `private` are ids of providers that keep nothing of a call, by the operator's word.

    `servers` asks servers of their models before they are sent a call.
    """

    def __init__(
        self,
        directory: ProviderDirectory,
        facts: ModelFacts,
        *,
        strategy: Strategy = "order",
        private: Collection[str] = (),
        learned: LearnedRouting | None = None,
        health: HealthKeeper | None = None,
        prices: PriceBook | None = None,
        clock: Callable[[], float] = time.time,
        servers: ServerFacts | None = None,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.strategy = strategy
        self._prices = prices or PriceBook()
        self._learned = learned
        self._clock = clock
        self._directory = directory
        self._facts = facts
        self._private = frozenset(private)
        self.health = health or HealthKeeper()
        self._watch = watch
        self._server_facts = servers
        self.servers = ServerChoice(self.health, watch, servers)
        self._health_mark = (0, 0, 0, 0, 0)
        self._made: dict[str, _ProviderCandidates] = {}
        self._index = CandidateIndex(())
        self._making: asyncio.Lock | None = None
        self._places = {
            host.id: tuple([server.place for server in host.servers]) for host in directory.providers if host.addresses
        }

    @property
    def learned(self) -> LearnedState | None:
        """The state of the strategy `learned`; None for another strategy. It changes with every call."""
        return None if self._learned is None else self._learned.router.state

    def note(self, row: LogRow) -> None:
        """Take how well a finished call went."""
        if self._learned is not None:
            self._learned.note(row)

    def await_verdict(self, request_id: str) -> None:
        """Learn from the answer of this call only when `judge` has said whether it is good enough."""
        if self._learned is not None:
            self._learned.await_verdict(request_id)

    def judge(self, request_id: str, *, good: bool) -> None:
        """Take the verdict on the answer of a call in a cascade."""
        if self._learned is not None:
            self._learned.judge(request_id, good=good)

    def note_feedback(self, request_id: str, score: float) -> None:
        """Take what a client thinks of one of the last calls, from 0 to 1."""
        if self._learned is not None:
            self._learned.correct(request_id, score, self._clock())

    async def find(
        self,
        request: Request,
        request_id: str = "",
        *,
        found: Mapping[str, Any] | None = None,
        discounts: Callable[[Request], Mapping[tuple[str, str], float]] | None = None,
    ) -> tuple[Request, Placement]:
        """Return a request with all that it needs, and who is asked for it, best first. `found` are fields of an intent that layers found.

        `discounts` returns by how much less the call costs where its conversation is cached, as `route` takes it.

        Raises UnknownModel, InvalidRequest, Unsupported and Unavailable.
        """
        directory = self._directory
        options, model = request.options, directory.meaning_of(request.model)
        needs = None
        if options.intent is not None or options.private or model.workload is not None:
            needs = needs_of(request, model, directory.workloads)
        if needs is None:
            if request.options.vitality is not None:
                request = without_workload(request, directory.workloads)
            return request, await self._ready(await directory.placement(request.model))
        needs = with_found(needs, found) if found else needs
        placement: Placement | None = None
        targets: Sequence[Target] = ()
        steps: Steps = {}
        if needs.models:
            placement = await directory.placement(*needs.models)
            targets = placement.targets
        else:
            if needs.workload is not None and needs.workload.route:
                await directory.discover()
            targets, steps = targets_in_steps(needs, directory.providers, self.candidate)
        routed = await self.route(
            needs.request,
            targets or None,
            request_id=request_id,
            workload="" if needs.workload is None else needs.workload.name,
            discounts=None if discounts is None else discounts(needs.request),
        )
        check_contradiction(needs, routed.decision)
        skipped = () if placement is None else placement.skipped
        made = Placement(routed.targets, skipped=skipped, route=record_of(routed.record, needs, steps))
        return needs.request, await self._ready(made)

    async def placement(self, *models: str) -> Placement:
        """Return who may serve the models, best first, each server asked once what it knows of its models. Raises UnknownModel."""
        return await self._ready(await self._directory.placement(*models))

    async def _ready(self, placement: Placement) -> Placement:
        """Return who is asked with those last that are down, each server asked once what it knows of its models."""
        if self.health.store.troubled:
            placement = self.health.ordered_placement(placement, self._watch)
        if self._server_facts is not None:
            await self._server_facts.ask_before(placement.targets)
        return placement

    async def route(
        self,
        request: Request,
        targets: Sequence[Target] | None = None,
        *,
        request_id: str = "",
        workload: str = "",
        discounts: Mapping[tuple[str, str], float] | None = None,
    ) -> Routed:
        """Return who is asked for a request's intent: of the `targets` that its model has, or of all there are.

        By `request_id` a learned choice can be made again; `workload` is whose calls it is compared with. `discounts` are by how much less
        the call costs where its conversation is cached, in USD per million tokens, by provider and model.

        Raises Unsupported and Unavailable if there is no target.
        """
        candidates: Candidates = await self.index() if targets is None else self.named(targets)
        providers = {provider.id: provider for provider in self._directory.providers}
        if discounts and self.strategy != "order":
            candidates = WarmCandidates(candidates, discounts)
        learned = None
        if self._learned is not None:
            learned = await self._learned.call(request, request_id, self._clock(), workload)
        try:
            return route(request, candidates, providers, strategy=self.strategy, learned=learned)
        except Unavailable:
            # All who could take it are down: the one that is due first is asked all the same, for a window may be wrong.
            candidates = CandidateIndex(msgspec.structs.replace(option, health="unknown") for option in self._index)
            return route(request, candidates, providers, strategy=self.strategy, learned=learned)

    def named(self, targets: Sequence[Target]) -> CandidateList:
        """Return the candidates that targets are, in their order."""
        return CandidateList([self._observed(self.candidate(target)) for target in targets])

    def candidate(self, target: Target) -> Candidate:
        """Return a target as routing compares it, without what was seen of it."""
        facts = self._facts.of(target, asks=False)
        price = self._prices.price(target.provider, target.model, self._clock())
        return candidate_of(target, facts, private=target.provider.id in self._private, price=price)

    async def index(self) -> CandidateIndex:
        """Return all candidates, with the models that providers list now."""
        await self._directory.discover()
        self._making = self._making or asyncio.Lock()
        async with self._making:
            made = {provider.id: await self._of(provider) for provider in self._directory.providers}
            now = self._watch()
            mark = (*self.health.mark(now), self.health.balances.revision, int(self._clock() // _DAY))
            if made != self._made or self._health_mark != mark:
                self._made, self._health_mark = made, mark
                self._index = CandidateIndex(
                    self._observed(candidate, now) for group in made.values() for candidate in group.candidates
                )
        return self._index

    async def _of(self, provider: Provider) -> _ProviderCandidates:
        # Prices change with a listing, and at midnight.
        prices = (self._prices.revision, int(self._clock() // _DAY))
        made, revision = self._made.get(provider.id), (self._facts.revision(provider), *prices)
        if made is not None and made.provider is provider and made.revision == revision:
            return made
        candidates: list[Candidate] = []
        for place, model in enumerate(chat_models(provider)):
            if place % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            candidates.append(self.candidate(Target(provider=provider, model=model)))
        return _ProviderCandidates(provider, revision, tuple(candidates))

    def _observed(self, candidate: Candidate, now: float | None = None) -> Candidate:
        """Return a candidate with the latency that was seen of it, and with a time whether calls to it fail then.

        Of targets that somebody named none is left out: those that are down are asked last.
        """
        provider, model = candidate.provider, candidate.model
        if self.health.balances.is_spent(provider, _DIEM, self._clock()):
            left = tuple(payment for payment in candidate.payments if payment != _DIEM)
            candidate = msgspec.structs.replace(candidate, payments=left)
        places = self._places.get(provider, (provider,))
        latency = min((p90 for place in places if (p90 := self.health.p90_ms(place, model)) is not None), default=None)
        out = now is not None and all(self.health.is_out(place, model, now) for place in places)
        if latency is None and not out:
            return candidate
        return msgspec.structs.replace(candidate, latency_ms=latency, health="down" if out else candidate.health)


class WarmCandidates:
    """`candidates`, of which those named in `discounts` (provider and model) cost so much less, in USD per million tokens.

    They have the conversation in their prompt cache. Leaving a warm cache costs once, in the call at hand; staying saves in every call to
    come. So the present saving is divided by the number of calls that are expected.
    """

    def __init__(self, candidates: Candidates, discounts: Mapping[tuple[str, str], float]) -> None:
        self._candidates = candidates
        by_name = {name: _find(candidates, *name) for name in discounts}
        self._warm = {
            name: msgspec.structs.replace(candidate, stay_discount=discounts[name])
            for name, candidate in by_name.items()
            if candidate is not None
        }

    def __iter__(self) -> Iterator[Candidate]:
        return (self._warm.get((candidate.provider, candidate.model), candidate) for candidate in self._candidates)

    def search(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Iterator[tuple[RankedCandidate, ...]]:
        """Yield the groups of `candidates`, and with them those that would not have been the best without the discount."""
        left = dict(self._warm)
        for group in self._candidates.search(intent, conditions):
            ranking = []
            for candidate in group:
                warm = left.pop((candidate.candidate.provider, candidate.candidate.model), None)
                ranking.append(candidate if warm is None else ranked(warm, intent))
            yield tuple(ranking)
        if intent.model is None:
            further = tuple([ranked(other, intent) for other in left.values() if other.meets(intent, conditions)])
            if further:
                yield further

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Refusals:
        """Return who cannot do it, and why."""
        return self._candidates.refusals(intent, conditions)


def _find(candidates: Candidates, provider: str, model: str) -> Candidate | None:
    """Return a candidate by its provider and model, or None if it is not one."""
    named = candidates.named(f"{provider}/{model}") if isinstance(candidates, CandidateIndex) else candidates
    return next((candidate for candidate in named if (candidate.provider, candidate.model) == (provider, model)), None)
