"""The models that may answer a call, each at one provider with all that routing knows of it, and the search among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

from bardo.catalog.matching import plain_id
from bardo.catalog.models import builtin_models
from bardo.catalog.routing_rows import CallSize, routing_rows
from bardo.catalog.rows import Payment
from bardo.routing import reasons
from bardo.values.request import Intent, Quality, Resolution

Health = Literal["healthy", "degraded", "down", "unknown"]
_ROWS = routing_rows()
USUAL_CALL = _ROWS.usual_call
_PRIVACY = "privacy"


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of a model, in USD per million tokens."""

    input: float
    output: float

    @property
    def blended(self) -> float:
        """The price of a million tokens of which most are input: `score.input_share` of `routing.toml` says how many."""
        share = _ROWS.score.input_share
        return share * self.input + (1 - share) * self.output

    def of(self, size: CallSize) -> float:
        """Return what a call of this size costs, in USD."""
        return (self.input * size.input_tokens + self.output * size.output_tokens) / 1_000_000


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions beside an intent, which are never relaxed.

    `private`: only private providers may see the call. Models rated above a cap are not asked. `down` are the ids of providers to which
    calls fail now.
    """

    private: bool = False
    tier_cap: Quality | None = None
    phase_cap: Quality | None = None
    down: frozenset[str] = frozenset()


NO_CONDITIONS = Conditions()


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one provider, by its id in the configuration, with its facts.

    `rating` is the quality of its answers from 0 to 1, `latency_ms` the time in which nine of ten calls are answered, or None if unknown.
    `payments` are the ways in which the provider is paid. Calls that are private go to candidates with the feature `privacy` only.
    `stay_discount` is how much less a million tokens of this call cost because their beginning is cached there, in USD.
    """

    provider: str
    model: str
    features: frozenset[str] = frozenset()
    prices: Prices | None = None
    rating: float | None = None
    latency_ms: int | None = None
    payments: tuple[Payment, ...] = ()
    health: Health = "unknown"
    stay_discount: float = 0.0

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> tuple[str, ...]:
        """Return every reason (`reasons.py`) for which it does not fit the intent, or none if it fits."""
        why = [reasons.lacks(name) for name in dict.fromkeys(intent.require) if name not in self.features]
        if conditions.private and _PRIVACY not in self.features:
            why.append(reasons.PRIVATE)
        if self._is_above(conditions.tier_cap):
            why.append(reasons.TIER_CAP)
        if self._is_above(conditions.phase_cap):
            why.append(reasons.PHASE_CAP)
        if (
            self.latency_ms is not None
            and intent.max_latency_ms is not None
            and self.latency_ms > intent.max_latency_ms
        ):
            why.append(reasons.latency(self.latency_ms))
        if self.health == "down" or self.provider in conditions.down:
            why.append(reasons.DOWN)
        return tuple(why)

    def meets(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> bool:
        """Whether it can do what the intent requires: it has no `refusals`."""
        if not self.features.issuperset(intent.require):
            return False
        if conditions is NO_CONDITIONS and intent.max_latency_ms is None:
            return self.health != "down"
        return not self.refusals(intent, conditions)

    def resolve(
        self, intent: Intent, conditions: Conditions = NO_CONDITIONS, size: CallSize = USUAL_CALL
    ) -> Resolution | None:
        """Return what the intent comes to here, or None if a requirement is not met. The name of the model is not looked at."""
        return self.resolution(intent, size) if self.meets(intent, conditions) else None

    def resolution(self, intent: Intent, size: CallSize = USUAL_CALL) -> Resolution:
        """Return what the intent comes to if it is asked, whatever it lacks."""
        return Resolution(
            model=self.model,
            provider=self.provider,
            estimated_cost_usd=self.cost(size, diem=intent.diem_available),
            features=tuple(sorted(self.features)),
            degraded=self.lacking(intent),
        )

    def lacking(self, intent: Intent) -> tuple[str, ...]:
        """Return the wanted features that it does not have, the preferred ones first."""
        wanted = dict.fromkeys((*intent.prefer, *intent.require))
        return tuple([name for name in wanted if name not in self.features])

    def cost(self, size: CallSize, *, diem: bool = False) -> float | None:
        """Return what a call costs, in USD, or None if no price is known. With `diem` a provider that takes it costs nothing."""
        if diem and "diem" in self.payments:
            return 0.0
        return None if self.prices is None else self.prices.of(size)

    def price(self, *, diem: bool = False) -> float | None:
        """Return the blended price of a million tokens, in USD, or None if no price is known."""
        if diem and "diem" in self.payments:
            return 0.0
        return None if self.prices is None else max(0.0, self.prices.blended - self.stay_discount)

    def _is_above(self, cap: Quality | None) -> bool:
        return cap is not None and self.rating is not None and self.rating > _ROWS.quality[cap]


_MOST_SEARCHES = 256
"""Clients choose the features and bounds that they want."""
_UNKNOWN = routing_rows().score.unknown
_MAX_COST = routing_rows().score.max_cost_per_m_token

_MOST_LISTED_EACH, _MOST_LISTED = 8, 64
"""How many refused candidates are listed of each provider, and of all."""

V = TypeVar("V")
_Key = tuple[frozenset[str], frozenset[str], int | None, bool, Conditions]


class RankedCandidate(NamedTuple):
    """A candidate that meets the requirements, and how good it is in each respect; more is better in all of them.

    `preferred` counts the preferred features that it has; the others are from 0 to 1.
    """

    candidate: Candidate
    preferred: int
    rating: float
    cheapness: float
    quickness: float

    def beats(self, other: RankedCandidate) -> bool:
        """Whether it is as good as another in every respect."""
        return (
            self.preferred >= other.preferred
            and self.rating >= other.rating
            and self.cheapness >= other.cheapness
            and self.quickness >= other.quickness
        )


class Refusals(NamedTuple):
    """The candidates that are not asked, each with its reasons, the first of every provider; `more` are counted and not listed."""

    listed: tuple[tuple[Candidate, tuple[str, ...]], ...]
    more: int


class Candidates(Protocol):
    """Who may be asked, as a search finds them."""

    def __iter__(self) -> Iterator[Candidate]: ...

    def search(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Iterator[tuple[RankedCandidate, ...]]:
        """Yield groups in the order in which they are asked: of each the best is."""
        ...

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Refusals:
        """Return who cannot do it, and why."""
        ...


class CandidateList:
    """Candidates that somebody named, in the order in which they are asked: none is chosen over an earlier one."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = tuple(candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def search(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Iterator[tuple[RankedCandidate, ...]]:
        """Yield each candidate that can do it, by itself."""
        for candidate in self.candidates:
            if candidate.meets(intent, conditions):
                yield (ranked(candidate, intent),)

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Refusals:
        """Return who cannot do it, and why."""
        return _refusals([self.candidates], intent, conditions)


NO_CANDIDATES = CandidateList(())


class CandidateIndex:
    """Candidates by provider, in the order in which they are given. Never changed once made.

    A search looks at few of them: candidates that another one beats in every respect are never the best, and are left out once for all
    calls that want the same features.
    """

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        by_provider: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            by_provider.setdefault(candidate.provider, []).append(candidate)
        self.providers: tuple[tuple[Candidate, ...], ...] = tuple(map(tuple, by_provider.values()))
        self._by_name = _by_name(self.providers)
        self._searches: dict[_Key, list[tuple[RankedCandidate, ...] | None]] = {}
        self._refusals: dict[_Key, Refusals] = {}

    def __iter__(self) -> Iterator[Candidate]:
        return (candidate for provider in self.providers for candidate in provider)

    def named(self, model: str) -> CandidateList:
        """Return the candidates for a model's name: a name at `provider/model`, or an id however hosts spell it."""
        return self._by_name.get(model.lower()) or self._by_name.get(spelled(model)) or NO_CANDIDATES

    def search(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Iterator[tuple[RankedCandidate, ...]]:
        """Yield for each provider in order those of its candidates that can do it and may be the best; nothing for one that has none."""
        if intent.model is not None:
            yield from self.named(intent.model).search(intent, conditions)
            return
        cached = self._cached_candidates(intent, conditions)
        for place, provider in enumerate(self.providers):
            best = cached[place]
            if best is None:
                best = cached[place] = _best_of(provider, intent, conditions)
            if best:
                yield best

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Refusals:
        """Return who cannot do it, and why."""
        if intent.model is not None:
            return self.named(intent.model).refusals(intent, conditions)
        key = _key(intent, conditions)
        refusals = self._refusals.get(key)
        if refusals is None:
            refusals = _refusals(self.providers, intent, conditions)
            _keep(self._refusals, key, refusals)
        return refusals

    def _cached_candidates(self, intent: Intent, conditions: Conditions) -> list[tuple[RankedCandidate, ...] | None]:
        key = _key(intent, conditions)
        cached = self._searches.get(key)
        if cached is None:
            cached = [None] * len(self.providers)
            _keep(self._searches, key, cached)
        return cached


@lru_cache(maxsize=4096)
def spelled(model: str) -> str:
    """Return a model's id as the catalog spells it: without a path, a host's prefix, a date or a variant around it."""
    return plain_id(builtin_models().spelled(model))


def cheapness(price: float | None) -> float:
    """Return how cheap a price per million tokens is, from 0 (`max_cost_per_m_token` or more) to 1 (free)."""
    return _UNKNOWN if price is None else min(1.0, max(0.0, 1 - price / _MAX_COST))


def quickness(latency: int | None, most: int | None) -> float:
    """Return how quick a latency is, from 0 (as long as allowed, or longer) to 1; any is as good as another where nothing is bounded."""
    if most is None:
        return 1.0
    return _UNKNOWN if latency is None else min(1.0, max(0.0, 1 - latency / most))


def _by_name(providers: Iterable[tuple[Candidate, ...]]) -> dict[str, CandidateList]:
    by_name: dict[str, list[Candidate]] = {}
    for provider in providers:
        names: dict[str, list[Candidate]] = {}
        for candidate in provider:
            own = candidate.model.lower()
            for name in {spelled(candidate.model), own, f"{candidate.provider}/{own}"}:
                names.setdefault(name, []).append(candidate)
        for name, held in names.items():
            # Of several spellings of a model at one provider the one that the name is goes first.
            by_name.setdefault(name, []).extend(sorted(held, key=lambda candidate: candidate.model.lower() != name))
    return {name: CandidateList(held) for name, held in by_name.items()}


def _key(intent: Intent, conditions: Conditions) -> _Key:
    return (
        frozenset(intent.require),
        frozenset(intent.prefer),
        intent.max_latency_ms,
        intent.diem_available,
        conditions,
    )


def _keep(memory: dict[_Key, V], key: _Key, value: V) -> None:
    if len(memory) >= _MOST_SEARCHES:
        memory.pop(next(iter(memory)), None)
    memory[key] = value


def _refusals(providers: Iterable[Sequence[Candidate]], intent: Intent, conditions: Conditions) -> Refusals:
    listed: list[tuple[Candidate, tuple[str, ...]]] = []
    more = 0
    for candidates in providers:
        refused = [(candidate, why) for candidate in candidates if (why := candidate.refusals(intent, conditions))]
        room = min(_MOST_LISTED_EACH, _MOST_LISTED - len(listed))
        listed += refused[:room]
        more += len(refused) - len(refused[:room])
    return Refusals(tuple(listed), more)


def _best_of(candidates: Iterable[Candidate], intent: Intent, conditions: Conditions) -> tuple[RankedCandidate, ...]:
    """Return the candidates that can do it and that no other beats, in their order."""
    best: list[RankedCandidate] = []
    for candidate in candidates:
        if not candidate.meets(intent, conditions):
            continue
        rank = ranked(candidate, intent)
        if any(other.beats(rank) for other in best):
            continue
        best = [other for other in best if not rank.beats(other)]
        best.append(rank)
    return tuple(best)


def ranked(one: Candidate, intent: Intent) -> RankedCandidate:
    """Return how good a candidate is in each respect."""
    return RankedCandidate(
        candidate=one,
        preferred=sum([name in one.features for name in intent.prefer]),
        rating=_UNKNOWN if one.rating is None else one.rating,
        cheapness=cheapness(one.price(diem=intent.diem_available)),
        quickness=quickness(one.latency_ms, intent.max_latency_ms),
    )
