"""What is known of models while the program runs: an operator's rows, what servers said, and what replies and refusals taught.

It is read from memory, once for each call: planning waits for nobody.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from bardo.catalog.matching import matches_any
from bardo.catalog.models import Facts, ModelRow
from bardo.catalog.rows import ProviderRow
from bardo.edge.daily_searches import DailySearches
from bardo.edge.introspect import Introspector, LiveFacts, log_override
from bardo.edge.introspect.layers import layers_of
from bardo.edge.introspect.live import FactsAnswer
from bardo.edge.listings import ListedModel, Listing, Listings
from bardo.edge.listings.listings import context_of, features_of, layers_of_list
from bardo.edge.model_warnings import ModelWarnings
from bardo.engine.knowledge import (
    BUILTIN,
    Knowledge,
    Lesson,
    MissingEndpoint,
    PlaceName,
    RejectedField,
    RenderedPrompt,
    TargetFacts,
    control_target,
    place_name,
)
from bardo.engine.refused_fields import RefusedField
from bardo.engine.request_shape import PlanCache
from bardo.engine.route import Provider, Target, endpoints_of
from bardo.engine.text_formats import SeenStart
from bardo.reasoning.control import ControlTarget, Layer, RouteFact, know
from bardo.structured.modes import Form

K = TypeVar("K")
V = TypeVar("V")

_MOST_KEPT = 4096
_MOST_KNOWN = 256
_MOST_FIELDS = 32
"""Clients choose the names of models, so the memory may not grow with them."""
DAYS_TO_REMEMBER = 1
"""A refusal may have been a mistake of the provider's, and models change."""
_EPOCH = datetime.date(1970, 1, 1).toordinal()


class _Resolved(NamedTuple):
    """The facts of one target, and what they were made from: they hold as long as that is the same."""

    row: ProviderRow
    live: LiveFacts | None
    listed: ListedModel | None
    learned: RouteFact | None
    missing: bool
    facts: TargetFacts


class _PlanKnowledge(NamedTuple):
    """What the plans of calls to `targets` are made from: it holds as long as the version and what servers say now are the same."""

    targets: tuple[Target, ...]
    version: tuple[int, int, int]
    live: Sequence[tuple[Target, LiveFacts | None]]
    knowledge: Knowledge


class ModelFacts:
    """The facts of models that lie over the catalog. `rows` are the operator's, `settings` what planning draws on beside the facts.

    `introspector` asks servers, None where nobody is asked; `listings` are the providers' lists that were kept. `clock` gives Unix time.
    """

    def __init__(
        self,
        rows: Sequence[ModelRow] = (),
        *,
        settings: Knowledge = BUILTIN,
        introspector: Introspector | None = None,
        listings: Listings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rows = tuple((row, Layer("operator", row, row.source or "bardo.toml")) for row in rows)
        self._settings = settings
        self._introspector = introspector
        self._listings = listings
        self._clock = clock
        self.searches = DailySearches(clock)
        self.warnings = ModelWarnings()
        self._plans: PlanCache[Any] = PlanCache()
        self._learned_count = 0
        self._known: dict[tuple[tuple[int, ...], str], _PlanKnowledge] = {}
        self._resolved: dict[PlaceName, _Resolved] = {}
        self._learned: dict[ControlTarget, RouteFact] = {}
        self._starts: dict[tuple[PlaceName, bool], SeenStart] = {}
        self._refused_forms: dict[PlaceName, frozenset[Form]] = {}
        self._missing: dict[tuple[str, str], datetime.date] = {}
        self._refused_fields: dict[PlaceName, tuple[RefusedField, ...]] = {}
        self._overridden: set[ControlTarget] = set()

    def knowledge(self, targets: Sequence[Target], tenant: str = "") -> Knowledge:
        """Return what the plans of one call of a tenant to `targets` are made from: the same value as long as nothing new is known."""
        lists = 0 if self._listings is None else self._listings.revision
        version = self._learned_count, lists, int(self._clock() // 86_400)
        # What is kept holds the targets, so that no other ones have their ids.
        place = tuple(map(id, targets)), "" if self._settings.caching is None else tenant
        kept = self._known.get(place)
        if kept is None or kept.version != version or not self._still_says(kept.live):
            asked = [at for target in targets for at in endpoints_of(target) if self._is_asked(at)]
            live = [(at, self._live(at, asks=True)) for at in asked]
            kept = _PlanKnowledge(tuple(targets), version, live, self._made_knowledge(targets, tenant))
            _store_newest(self._known, place, kept, _MOST_KNOWN)
        return kept.knowledge

    def _still_says(self, live: Sequence[tuple[Target, LiveFacts | None]]) -> bool:
        """Whether the servers of targets say what they said; those whose facts are due are asked again."""
        for target, said in live:  # noqa: SIM110 - asked for every call, where a loop costs half of what `all` does.
            if self._live(target, asks=True) is not said:
                return False
        return True

    def _is_asked(self, target: Target) -> bool:
        return self._introspector is not None and self._introspector.asks(target.provider)

    def _made_knowledge(self, targets: Sequence[Target], tenant: str) -> Knowledge:
        own = self._settings
        caching = own.caching
        return msgspec.structs.replace(
            own,
            caching=None if caching is None else msgspec.structs.replace(caching, tenant=tenant),
            today=self.today(),
            facts=dict([self._placed(at) for target in targets for at in endpoints_of(target)]),
            plans=self._plans,
            searches_today=self.searches.today,
        )

    def of(self, target: Target, *, asks: bool = True) -> TargetFacts:
        """Return what is known of a target: the same value as long as nothing new is known.

        Where nothing is known yet, `asks` begins to ask its server about this model.
        """
        return self._placed(target, asks=asks)[1]

    def learned(self, target: Target) -> FactsAnswer | None:
        """Return what the server of a target last said of the model; None where it was not asked."""
        return None if self._introspector is None else self._introspector.kept(target.provider, target.model)

    def listing(self, provider: Provider) -> Listing | None:
        """Return the list of models of a provider that was kept; None where there is none."""
        return None if self._listings is None else self._listings.of(provider)

    def _placed(self, target: Target, *, asks: bool = True) -> tuple[PlaceName, TargetFacts]:
        row, place, live = target.provider.row, place_name(target), self._live(target, asks=asks)
        listed = None if self._listings is None else self._listings.model(target.provider, target.model)
        learned = self._learned_fact(target) if self._learned else None
        found = self._resolved.get(place)
        missing = bool(self._missing) and self._is_missing(place)
        if (
            found is not None
            and found.row is row
            and found.live is live
            and found.listed is listed
            and found.learned is learned
            and found.missing is missing
        ):
            return place, found.facts
        facts = self._resolve(target, live, listed, learned, missing=missing)
        _store_newest(self._resolved, place, _Resolved(row, live, listed, learned, missing, facts))
        return place, facts

    def learn(self, lesson: Lesson) -> None:
        """Keep what a refusal taught."""
        self._learned_count += 1
        if isinstance(lesson, RouteFact):
            _store_newest(self._learned, lesson.target, lesson)
            return
        place = place_name(lesson.target)
        if isinstance(lesson, MissingEndpoint):
            _store_newest(self._missing, place[:2], self.today())
            return
        self._resolved.pop(place, None)
        if isinstance(lesson, RejectedField):
            _store_newest(
                self._refused_fields, place, (*self._refused_fields.get(place, ()), lesson.field)[-_MOST_FIELDS:]
            )
            return
        _store_newest(self._refused_forms, place, self._refused_forms.get(place, frozenset()) | {lesson.form})

    def learn_start(self, target: Target, off: bool, seen: SeenStart | None) -> None:
        """Keep how a reply began, to a request that asked for no thinking (`off`) or to another; None: what was seen holds no more."""
        place = place_name(target)
        if self._starts.get((place, off)) == seen:
            return
        self._learned_count += 1
        self._resolved.pop(place, None)
        if seen is None:
            del self._starts[place, off]
        else:
            _store_newest(self._starts, (place, off), seen)

    def today(self) -> datetime.date:
        """Return the date, in UTC."""
        return datetime.date.fromordinal(_EPOCH + int(self._clock() // 86_400))

    def _resolve(
        self,
        target: Target,
        live: LiveFacts | None,
        listed: ListedModel | None,
        learned: RouteFact | None,
        *,
        missing: bool,
    ) -> TargetFacts:
        own = tuple(layer for row, layer in self._rows if _is_about(row, target))
        of_server = layers_of(live)
        if own and of_server:
            self._note_override(target, of_server[0].facts, own[0].facts)
        layers = (*own, *((learned.layer,) if learned is not None else ()), *of_server, *layers_of_list(listed))
        place = place_name(target)
        return TargetFacts(
            known=know(control_target(target), layers),
            layers=layers,
            prompt=None if live is None else _prompt(live),
            seen_start=self._starts.get((place, False)) or _declared_start(live),
            seen_start_off=self._starts.get((place, True)) or _declared_start(live),
            refused_forms=self._refused_forms.get(place, frozenset()),
            missing=missing,
            refused_fields=self._refused_fields.get(place, ()),
            features=features_of(live, listed),
            context=context_of([row for row, _ in self._rows if _is_about(row, target)], live, listed),
        )

    def revision(self, provider: Provider) -> int:
        """Return a number that changes when a provider's server, or a list of models, has said something new."""
        asked = 0 if self._introspector is None else self._introspector.revision(provider)
        return asked if self._listings is None else asked + self._listings.revision

    def _live(self, target: Target, *, asks: bool) -> LiveFacts | None:
        if self._introspector is None:
            return None
        found = self._introspector.facts if asks else self._introspector.known
        return found(target.provider, target.model)

    def _learned_fact(self, target: Target) -> RouteFact | None:
        place = control_target(target)
        fact = self._learned.get(place)
        if fact is not None and (self.today() - fact.date).days > DAYS_TO_REMEMBER:
            del self._learned[place]
            return None
        return fact

    def _is_missing(self, place: PlaceName) -> bool:
        noticed = self._missing.get(place[:2])
        return noticed is not None and (self.today() - noticed).days <= DAYS_TO_REMEMBER

    def _note_override(self, target: Target, live: Facts, override: Facts) -> None:
        """Note once where an operator goes against a server."""
        place = control_target(target)
        if place not in self._overridden and len(self._overridden) < _MOST_KEPT:
            self._overridden.add(place)
            log_override(target, live, override)


def _store_newest(memory: dict[K, V], key: K, value: V, most: int = _MOST_KEPT) -> None:
    """Keep a value as the newest, and forget the oldest where there are more than `most`."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > most:
        del memory[next(iter(memory))]


def _is_about(row: ModelRow, target: Target) -> bool:
    if row.provider not in ("*", target.provider.id, target.provider.row.id):
        return False
    return matches_any(target.model.lower(), map(str.lower, row.match))


def _prompt(live: LiveFacts) -> RenderedPrompt:
    return RenderedPrompt(
        switch=live.switch or "",
        opens=live.starts_inside,
        opens_on=live.starts_inside_on,
        opens_off=live.starts_inside_off,
    )


def _declared_start(live: LiveFacts | None) -> SeenStart | None:
    """Return how replies begin where a server says that it separates thinking; None where it does not say so."""
    # llama-server says "none" whatever its flag: it is the default of a request, not what the server does.
    return "separated" if live is not None and live.text_format not in (None, "none") else None
