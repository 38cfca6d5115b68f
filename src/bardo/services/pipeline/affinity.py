"""The tokens that targets have probably cached, by this process: for the layer `affinity`, routing and the report of health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bardo.catalog.routing_rows import routing_rows
from bardo.context.affinity.layer import ExpectSession, FindServerStates, ForgetSession, RecordSession, Servers
from bardo.context.affinity.server_order import (
    HALF_LIFE_SECONDS,
    NO_PREFIX,
    LoadBounds,
    PrefixReader,
    PromptPrefix,
    ServerState,
)
from bardo.context.affinity.warm_prefixes import ExpectedTokens, Place, WarmPrefix, WarmPrefixes
from bardo.context.layer import TargetFacts
from bardo.planning.token_counting import estimate_request
from bardo.services.facts.cache_health import CacheHealth, CacheUsage
from bardo.services.facts.health import HealthKeeper
from bardo.values.request import Request

if TYPE_CHECKING:
    from bardo.adapters.config.pipeline import AffinitySettings
    from bardo.services.facts.directory import ProviderDirectory
    from bardo.services.facts.price_book import PriceBook
    from bardo.services.pipeline.effects import Effects, EndedCall, LayerHost
    from bardo.services.pipeline.session_memory import SharedSessions

_LAYER = "affinity"
_CallKey = tuple[str, str, int, int, str, float]
"""A place of a session as other processes are told of it: server, model, tokens, messages, the label of a key, and when."""
_MOST_PLACES = 1024
_LEAST_WARM_SECONDS, _MOST_WARM_SECONDS = 60.0, 14_400.0
_NANOS = 1_000_000_000
_INPUT_SHARE = routing_rows().score.input_share


class _LatestCall(NamedTuple):
    """The look-up for the latest call before its layers worked, so that it is not repeated."""

    session: str
    request: Request | None
    prefix: PromptPrefix
    targets: tuple[TargetFacts, ...]
    expected: list[ExpectedTokens]


_TOKENS = attrgetter("tokens")
_NO_CALL = _LatestCall("", None, NO_PREFIX, (), [])


class Affinity:
    """Keeps what was sent where. `clock` gives Unix time, `half_life` is assumed of caches at first.

    `shared` is what other processes learn of a session by, or None if there are none.
    """

    def __init__(
        self,
        health: HealthKeeper,
        clock: Callable[[], float],
        *,
        half_life: float = HALF_LIFE_SECONDS,
        turns_ahead: float = 3.0,
        shared: SharedSessions | None = None,
    ) -> None:
        self._shared = shared
        self.warm = WarmPrefixes(half_life)
        self._health = health
        self._clock = clock
        self._prefixes = PrefixReader()
        self._usage = CacheUsage(_MOST_PLACES)
        self._kinds: dict[Place, Place] = {}
        self._turns_ahead = turns_ahead
        self._counts_reads: set[Place] = set()
        self._latest = _NO_CALL

    @property
    def shares(self) -> bool:
        """Whether other processes are told of sessions, and tell of theirs."""
        return self._shared is not None

    async def recall(self, session: str) -> None:
        """Learn where other processes sent the calls of a session."""
        raw = None if self._shared is None or not session else await self._shared.find(_LAYER, session)
        if raw:
            with suppress(msgspec.DecodeError):
                told = msgspec.msgpack.decode(raw, type=tuple[_CallKey, ...])
                self.warm.adopt(
                    session,
                    {
                        (server, model): WarmPrefix(tokens, messages, key, at)
                        for server, model, tokens, messages, key, at in told
                    },
                )

    async def _share(self, session: str) -> None:
        """Share with other processes where the calls of a session were sent and answered."""
        if self._shared is None or not session:
            return
        told = [
            (*place, prefix.tokens, prefix.messages, prefix.key, prefix.at)
            for place, prefix in self.warm.places(session).items()
            if prefix.answered
        ]
        await self._shared.put(_LAYER, session, msgspec.msgpack.encode(told))

    def prefix(self, request: Request) -> PromptPrefix:
        """Return the part of a request's prompt that other sessions may have too."""
        return self._prefixes.read(request)

    def with_warm_tokens(
        self, session: str, request: Request, targets: tuple[TargetFacts, ...]
    ) -> tuple[TargetFacts, ...]:
        """Return targets with how many tokens of a session's prompt each probably has cached."""
        prefix = self._prefixes.read(request)
        prefixes = self._expected(session, request, prefix, targets)
        if any(map(_TOKENS, prefixes)):
            targets = tuple(
                [
                    msgspec.structs.replace(target, warm_tokens=prefix_of.tokens) if prefix_of.tokens else target
                    for target, prefix_of in zip(targets, prefixes, strict=True)
                ]
            )
        self._latest = _LatestCall(session, request, prefix, targets, prefixes)
        return targets

    def look(self, effect: FindServerStates) -> Servers:
        """Return the facts about the targets of a call."""
        latest, targets, self._latest = self._latest, effect.targets, _NO_CALL
        if latest.request is effect.request and latest.targets is targets and latest.session == effect.session:
            prefix, expected_there = latest.prefix, latest.expected
        else:
            # Another call came between, or a layer changed the request or its targets.
            prefix = self._prefixes.read(effect.request)
            expected_there = self._expected(effect.session, effect.request, prefix, targets)
        now = self._clock()
        return Servers(tuple(map(self._state, targets, expected_there, repeat(now))), prefix)

    def _expected(
        self, session: str, request: Request, prefix: PromptPrefix, targets: Sequence[TargetFacts]
    ) -> list[ExpectedTokens]:
        """Return what each target probably has cached of a session's prompt."""
        now, messages, expected = self._clock(), len(request.messages), self.warm.expected
        return [
            expected(_target_name(place), session, prefix, now, messages=messages, kind=(place.provider, place.model))
            for place in targets
        ]

    def _state(self, target: TargetFacts, prefix: ExpectedTokens, now: float) -> ServerState:
        """Return the facts about one target. For a provider with one address its load does not matter."""
        if not target.address:
            return ServerState(warm_tokens=prefix.tokens, session_tokens=prefix.session, ready=not target.down)
        place = _target_name(target)
        return ServerState(
            warm_tokens=prefix.tokens,
            session_tokens=prefix.session,
            in_flight=self._health.in_flight(place[0]),
            tokens_per_call=self._usage.new_tokens(place),
            placed_tokens=self.warm.placed_tokens(place, now),
            ready=not target.down,
        )

    def expect(self, effect: ExpectSession) -> None:
        """Note where a session is about to be sent."""
        place = _target_name(effect.target)
        self.warm.expect(
            place, effect.session, effect.prefix, self._clock(), tokens=effect.tokens, messages=effect.messages
        )

    async def note(self, effect: RecordSession, call: EndedCall) -> None:
        """Note that a call was answered, and by whom."""
        if call.answered is None:
            return
        target, key = call.answered
        place, kind = (target.provider.place, target.model), (target.provider.id, target.model)
        now, cached = self._clock(), self._cached(kind, effect.cached)
        expected = effect.expected.get((target.provider.id, target.provider.address, target.model), 0)
        prefix = effect.prefix
        if prefix is None:
            prefix = NO_PREFIX if effect.request is None else self._prefixes.read(effect.request)
        forgotten = self._usage.count(place, effect.tokens, cached or 0, min(expected, effect.tokens))
        if forgotten is not None:
            self._kinds.pop(forgotten, None)
        self._kinds[place] = kind
        self.warm.note(
            place,
            effect.session,
            prefix,
            now,
            tokens=effect.tokens,
            cached=cached,
            messages=effect.messages,
            key=key,
            kind=kind,
        )
        await self._share(effect.session)

    def forget(self, effect: ForgetSession) -> None:
        """Forget where a session was about to be sent."""
        self.warm.forget_session(effect.session)

    def discounts(
        self, session: str, request: Request, directory: ProviderDirectory, prices: PriceBook
    ) -> dict[tuple[str, str], float]:
        """Return by how much less a call of a session costs where its prompt is cached, in USD per million tokens, by provider and model.

        The saving of this call is spread over the expected calls; see `bardo.services.facts.call_routing.WarmCandidates`.
        """
        places = self.warm.places(session) if session else {}
        if not places:
            return {}
        prefix, now, messages = self._prefixes.read(request), self._clock(), len(request.messages)
        providers, size = {provider.id: provider for provider in directory.providers}, max(1, estimate_request(request))
        discounts: dict[tuple[str, str], float] = {}
        for place in places:
            kind = self._kinds.get(place, place)
            provider = providers.get(kind[0])
            price = None if provider is None else prices.price(provider, place[1], now)
            saved = 0 if price is None else price.schedule.rates.cache_discount
            if saved:
                expected = self.warm.expected(place, session, prefix, now, messages=messages, kind=kind)
                share = min(1.0, expected.tokens / size)
                amount = share * saved / _NANOS * _INPUT_SHARE / self._turns_ahead
                discounts[kind] = max(amount, discounts.get(kind, 0.0))
        return discounts

    def warm_seconds(self, provider: str, model: str) -> float:
        """Return for how long a conversation keeps its key: until half of its prompt is gone, but a minute to four hours."""
        place = provider, model
        half_life = self.warm.survival(self._kinds.get(place, place)).half_life()
        return min(max(half_life, _LEAST_WARM_SECONDS), _MOST_WARM_SECONDS)

    def forget_server(self, server: str) -> None:
        """Forget what a server had cached that was not there: it may come back as another one."""
        self.warm.forget_server(server, self._clock())

    def report(self, place_name: str, provider: str) -> tuple[CacheHealth, ...]:
        """Return the caches of all models at one server of a provider, by the server's place."""
        return self._usage.report(place_name, lambda model: self.warm.survival((provider, model)))

    def _cached(self, kind: Place, cached: int | None) -> int | None:
        """Return how many tokens were read from a cache. Some servers (vLLM) leave the count out where it is 0."""
        if cached is None:
            return 0 if kind in self._counts_reads else None
        if len(self._counts_reads) < _MOST_PLACES:
            self._counts_reads.add(kind)
        return cached


def _target_name(target: TargetFacts) -> Place:
    name = f"{target.provider} at {target.address}" if target.address else target.provider
    return name, target.model


def open_affinity(
    host: LayerHost, effects: Effects, settings: AffinitySettings, shared: SharedSessions | None = None
) -> Affinity:
    """Begin to record which prompts are sent where, and perform the effects of the layer."""
    made = Affinity(
        host.health, host.clock, half_life=settings.half_life_seconds, turns_ahead=settings.turns_ahead, shared=shared
    )
    effects.register_at_once(FindServerStates, made.look)
    effects.register_at_once(ExpectSession, made.expect, writes=True)
    effects.register_of_call(RecordSession, made.note)
    effects.register_at_once(ForgetSession, made.forget, writes=True)
    host.health.tell_of_losses(made.forget_server)
    host.keyring.rotation.measure_by(made.warm_seconds)
    return made


def bounds_of(settings: AffinitySettings) -> LoadBounds:
    """Return the settings as the layer goes by them."""
    return LoadBounds(bound=settings.load_bound, free=settings.free_calls, balance=settings.balance)
