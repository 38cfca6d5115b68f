"""Whom calls that say what they need are put to: every model of every provider as a candidate, as it is known now.

Candidates are made once and kept until a provider's list changes or its server says something new. A call that names models has only their
targets as candidates, in their order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from bardo.edge.directory import Directory
from bardo.edge.log.row import LogRow
from bardo.edge.model_facts import ModelFacts
from bardo.edge.observed_latency import ObservedLatency
from bardo.engine.model_features import candidate_of, chat_models
from bardo.engine.route import Provider, Target
from bardo.engine.routing import Routed, route
from bardo.routing.candidate_index import CandidateIndex, CandidateList, Candidates
from bardo.routing.candidates import Candidate
from bardo.routing.decision import Strategy
from bardo.values.request import Request

if TYPE_CHECKING:
    # Loaded for the strategy `learned` alone.
    from bardo.edge.learned_routing import LearnedRouting

_AT_ONCE = 16
"""How many candidates are made before other calls have their turn: one takes about a millisecond."""


@dataclass(frozen=True, slots=True, eq=False)
class _ProviderCandidates:
    """The candidates of one provider, and what they were made from."""

    provider: Provider
    revision: int
    candidates: tuple[Candidate, ...]


def candidate_index(providers: Sequence[Provider], facts: ModelFacts, private: Collection[str] = ()) -> CandidateIndex:
    """Return the models that are known of providers as candidates, all at once: for programs that serve nobody meanwhile."""
    return CandidateIndex(
        candidate_of(at, facts.of(at, asks=False), private=provider.id in private)
        for provider in providers
        for at in (Target(provider=provider, model=model) for model in chat_models(provider))
    )


class CallRouting:
    """Finds who is asked. `private` are ids of providers that keep nothing of a call, by the operator's word."""

    def __init__(
        self,
        directory: Directory,
        facts: ModelFacts,
        *,
        strategy: Strategy = "order",
        private: Collection[str] = (),
        learned: LearnedRouting | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.strategy = strategy
        self._learned = learned
        self._clock = clock
        self._directory = directory
        self._facts = facts
        self._private = frozenset(private)
        self._latency = ObservedLatency()
        self._latency_revision = 0
        self._made: dict[str, _ProviderCandidates] = {}
        self._index = CandidateIndex(())
        self._making: asyncio.Lock | None = None

    def note(self, row: LogRow) -> None:
        """Take how long a finished call took, to the first byte of a stream or to the end of a whole reply, and how well it went."""
        if self._learned is not None:
            self._learned.note(row)
        if row.outcome == "ok" and row.attempts == 1 and row.operation == "generate":
            seconds = row.first_byte_seconds if row.streamed else row.seconds
            if seconds is not None:
                self._latency.note(row.provider, row.model, seconds)

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

    async def route(
        self,
        request: Request,
        targets: Sequence[Target] | None = None,
        *,
        request_id: str = "",
        workload: str = "",
    ) -> Routed:
        """Return who is asked for a request's intent: of the `targets` that its model has, or of all there are.

        By `request_id` a learned choice can be made again; `workload` is whose calls it is compared with.

        Raises Unsupported and Unavailable where there is nobody.
        """
        candidates: Candidates = await self.index() if targets is None else self.named(targets)
        providers = {one.id: one for one in self._directory.providers}
        learned = None
        if self._learned is not None:
            learned = await self._learned.call(request, request_id, self._clock(), workload)
        return route(request, candidates, providers, strategy=self.strategy, learned=learned)

    def named(self, targets: Sequence[Target]) -> CandidateList:
        """Return the candidates that targets are, in their order."""
        return CandidateList([self._timed(self._candidate(target)) for target in targets])

    async def index(self) -> CandidateIndex:
        """Return all candidates, with the models that providers list now."""
        await self._directory.discover()
        self._making = self._making or asyncio.Lock()
        async with self._making:
            made = {one.id: await self._of(one) for one in self._directory.providers}
            if made != self._made or self._latency_revision != self._latency.revision:
                self._made, self._latency_revision = made, self._latency.revision
                self._index = CandidateIndex(
                    self._timed(candidate) for one in made.values() for candidate in one.candidates
                )
        return self._index

    async def _of(self, provider: Provider) -> _ProviderCandidates:
        made, revision = self._made.get(provider.id), self._facts.revision(provider)
        if made is not None and made.provider is provider and made.revision == revision:
            return made
        found: list[Candidate] = []
        for place, model in enumerate(chat_models(provider)):
            if place % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            found.append(self._candidate(Target(provider=provider, model=model)))
        return _ProviderCandidates(provider, revision, tuple(found))

    def _timed(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the latency that was seen of it."""
        known = self._latency.p90_ms(candidate.provider, candidate.model)
        return candidate if known is None else msgspec.structs.replace(candidate, latency_ms=known)

    def _candidate(self, target: Target) -> Candidate:
        facts = self._facts.of(target, asks=False)
        return candidate_of(target, facts, private=target.provider.id in self._private)
