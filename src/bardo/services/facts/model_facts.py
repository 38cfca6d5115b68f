"""The facts of models while the program runs: an operator's rows, the answers of servers, and the lessons of replies and refusals.

They are read from memory, once for each call: planning does not wait. Searches of the day and warnings to the operator are kept beside
them, by process.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from bardo.catalog.matching import matches_any
from bardo.catalog.models import Facts, ModelRow
from bardo.catalog.rows import ProviderRow
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import (
    BUILTIN,
    Knowledge,
    Lesson,
    MissingEndpoint,
    PlaceName,
    RefusedForm,
    RefusedThinking,
    RejectedField,
    RenderedPrompt,
    TargetFacts,
    control_target,
    place_name,
    request_shape,
)
from bardo.planning.route import Provider, Target, endpoints_of
from bardo.planning.search_budget import search_nanos, searches
from bardo.planning.text_formats import SeenStart
from bardo.reasoning.control import ControlTarget, Layer, know
from bardo.reuse import Memory
from bardo.routing.profiles import LOCKED
from bardo.services.facts.introspect import Introspector, LiveFacts, log_override
from bardo.services.facts.introspect.layers import layers_of
from bardo.services.facts.introspect.live import FactsAnswer
from bardo.services.facts.lessons import Lessons, what_of
from bardo.services.facts.listings import ListedModel, Listing, Listings
from bardo.services.facts.listings.listings import context_of, features_of, layers_of_list
from bardo.values.request import ReasoningPolicy, Request

_DAY = 86_400
_MOST_KEYS = 20_000
"""Clients name sessions, so the memory may not grow with them."""


class DailySearches:
    """The searching calls of today by provider, of those that have a budget. `clock` gives Unix time.

    The day is one of UTC. A limit knows what the searches of its calls cost.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._day = 0
        self._counts: dict[str, int] = {}
        self._costs: dict[str, int] = {}

    def today(self, provider: str) -> int:
        """Return how many calls of today asked a provider to search."""
        return self._counts.get(provider, 0) if int(self._clock() // _DAY) == self._day else 0

    def cost(self, key: str) -> int:
        """Return how many nano-dollars the searches of a limit's key have cost."""
        return self._costs.get(key, 0)

    def note(self, attempt: Attempt) -> None:
        """Count an attempt that is sent now, where there is a budget for it and it asks for a search."""
        provider = attempt.target.provider
        limits = () if attempt.request is None else attempt.request.options.search_limits
        if provider.row.searches_per_day is None and not limits:
            return
        if not searches(attempt.wire, attempt.target):
            return
        for limit in limits:
            self._costs[limit.key] = self._costs.pop(limit.key, 0) + search_nanos()
            if len(self._costs) > _MOST_KEYS:
                del self._costs[next(iter(self._costs))]
        if provider.row.searches_per_day is None:
            return
        day = int(self._clock() // _DAY)
        if day != self._day:
            self._day, self._counts = day, {}
        self._counts[provider.id] = self._counts.get(provider.id, 0) + 1


_MOST_WARNED = 1000
"""Clients choose the names of models, so the log may not grow with them."""

_log = logging.getLogger("bardo.control")


class ModelWarnings:
    """Warns of the models that are asked.

    Once for each model in use: nothing is known of its thinking, or it shuts down.
    """

    def __init__(self) -> None:
        self._unclassified: set[PlaceName] = set()
        self._used: set[PlaceName] = set()

    def note(self, attempt: Attempt, knowledge: Knowledge) -> None:
        """Take an attempt that is about to be sent."""
        provider = attempt.target.provider
        place = provider.place, provider.row.dialect, attempt.target.model
        if place not in self._used and len(self._used) < _MOST_WARNED:
            self._used.add(place)
            _warn_of_shutdown(attempt, knowledge)
        plan = attempt.control
        if plan is not None and plan.unclassified:
            self._warn_of_unclassified(place, plan.form, plan.like)
        for lost in attempt.degraded:
            if lost.why == LOCKED:
                about = {"field": lost.what, "provider": attempt.target.provider.id, "model": attempt.target.model}
                _log.warning("%s was asked for otherwise: %s", lost.what, LOCKED, extra=about)

    def _warn_of_unclassified(self, place: PlaceName, form: str, like: str) -> None:
        """Warn of a model whose thinking is asked for in a form that is only assumed."""
        if place in self._unclassified or len(self._unclassified) >= _MOST_WARNED:
            return
        self._unclassified.add(place)
        provider, _, model = place
        _log.warning(
            "nothing is known of %r at %s: %sits thinking is asked for in the form %s; `bardo probe` finds out more",
            model,
            provider,
            f"it is taken to be like {like}, and " if like else "",
            form,
            extra={"provider": provider, "model": model, "form": form, "like": like},
        )


def _warn_of_shutdown(attempt: Attempt, knowledge: Knowledge) -> None:
    """Warn of a model whose provider has named the day on which it shuts down."""
    day = knowledge.of(attempt.target).known.facts.shutdown
    if day is None:
        return
    provider, model = attempt.target.provider.place, attempt.target.model
    when = "was to shut down" if day <= knowledge.today else "shuts down"
    about = {"provider": provider, "model": model, "shutdown": day.isoformat()}
    _log.warning("%r at %s %s on %s: move to another model", model, provider, when, day, extra=about)


K = TypeVar("K")
V = TypeVar("V")

_MOST_KEPT = 4096
_MOST_KNOWN = 256
"""Clients choose the names of models, so the memory may not grow with them."""
_ON_AND_OFF = (ReasoningPolicy(mode="effort", effort="high"), ReasoningPolicy(mode="off"))
_EPOCH = datetime.date(1970, 1, 1).toordinal()


class _Resolved(NamedTuple):
    """The facts of one target, and what they were made from: they hold as long as that is the same."""

    row: ProviderRow
    live: LiveFacts | None
    listed: ListedModel | None
    facts: TargetFacts


class _CallersView(NamedTuple):
    """The lessons of one caller's earlier calls about the targets of a call: from refusals, and from how replies began."""

    lessons: tuple[Lesson, ...] = ()
    starts: tuple[tuple[PlaceName, bool, SeenStart], ...] = ()

    @property
    def name(self) -> Hashable:
        """The same for callers who were taught the same: a plan for one of them holds for the others."""
        told = [(place_name(note.target), what_of(note), msgspec.json.encode(_said_by(note))) for note in self.lessons]
        return (*told, self.starts)


_NOTHING = _CallersView()


class _PlanKnowledge(NamedTuple):
    """The facts that plans of calls to `targets` are made from: it holds as long as the version and what servers say now are the same."""

    targets: tuple[Target, ...]
    version: tuple[int, int]
    live: Sequence[tuple[Target, LiveFacts | None]]
    knowledge: Knowledge


class ModelFacts:
    """The facts of models that lie over the catalog. `rows` are the operator's, `settings` what planning draws on beside the facts.

    What calls taught holds for the caller whose calls they were: callers are apart. `introspector` asks servers, or None if none is asked;
    `listings` are the providers' lists that were kept. `clock` gives Unix time.
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
        self._plans: Memory[tuple[object, object, Any]] = Memory()
        self._known: dict[tuple[tuple[int, ...], str, Hashable], _PlanKnowledge] = {}
        self._resolved: dict[PlaceName, _Resolved] = {}
        self._starts: dict[tuple[str, PlaceName, bool], SeenStart] = {}
        self.lessons = Lessons(clock)
        self._overridden: set[ControlTarget] = set()

    def knowledge(self, targets: Sequence[Target], tenant: str = "", request: Request | None = None) -> Knowledge:
        """Return what the plans of one call of a tenant to `targets` are made from: the same value as long as nothing new is known.

        `request` is given if lessons of earlier calls of the tenant are to be heeded.
        """
        lists = 0 if self._listings is None else self._listings.revision
        version = lists, int(self._clock() // 86_400)
        view = self._view(targets, tenant, request) if self._starts or self.lessons.kept else _NOTHING
        # The entry holds the targets, so that no other ones have their ids.
        taught = None if view is _NOTHING else view.name
        place = tuple(map(id, targets)), "" if self._settings.caching is None else tenant, taught
        entry = self._known.get(place)
        holds = entry is not None and entry.version == version
        for at, stated in entry.live if entry is not None and holds else ():
            # Whether the servers say what they said; those whose facts are due are asked again.
            if self._live(at, asks=True) is not stated:
                holds = False
                break
        if entry is None or not holds:
            # Endpoints at one address are of one server.
            endpoints = [at for target in targets for at in endpoints_of(target) if self._is_asked(at)]
            asked = {(at.provider.row.id, at.provider.base_url, at.model): at for at in endpoints}
            live = [(at, self._live(at, asks=True)) for at in asked.values()]
            entry = _PlanKnowledge(tuple(targets), version, live, self._made_knowledge(targets, tenant, view))
            _store_newest(self._known, place, entry, _MOST_KNOWN)
        return entry.knowledge

    def _view(self, targets: Sequence[Target], tenant: str, request: Request | None) -> _CallersView:
        places = [place_name(at) for target in targets for at in endpoints_of(target)]
        lessons: tuple[Lesson, ...] = ()
        if self.lessons.kept and request is not None:
            lessons = self.lessons.in_force(places, tenant, lambda: request_shape(request))
        asked = [(place, off) for place in places for off in (False, True)] if self._starts else ()
        starts = [(place, off, seen) for place, off in asked if (seen := self._starts.get((tenant, place, off)))]
        return _CallersView(lessons, tuple(starts)) if lessons or starts else _NOTHING

    def _is_asked(self, target: Target) -> bool:
        return self._introspector is not None and self._introspector.asks(target.provider)

    def _made_knowledge(self, targets: Sequence[Target], tenant: str, view: _CallersView) -> Knowledge:
        own = self._settings
        caching = own.caching
        facts: dict[PlaceName, TargetFacts] = {}
        for at in [at for target in targets for at in endpoints_of(target)]:
            facts[place_name(at)] = resolved = self._of_caller(at, view)
            if resolved.known.facts.model_ids is not None:
                # The call may go to the other id of the pair.
                for model in {resolved.known.id_for(policy) for policy in _ON_AND_OFF} - {None, at.model}:
                    other = msgspec.structs.replace(at, model=model)
                    facts[place_name(other)] = self._of_caller(other, view)
        return msgspec.structs.replace(
            own,
            caching=None if caching is None else msgspec.structs.replace(caching, tenant=tenant),
            tenant=tenant,
            today=self.today(),
            facts=facts,
            plans=self._plans,
            searches_today=self.searches.today,
            searches_cost=self.searches.cost,
        )

    def _of_caller(self, target: Target, view: _CallersView) -> TargetFacts:
        """Return the facts about a target, with what earlier calls of one caller taught of it."""
        place = place_name(target)
        lessons = [lesson for lesson in view.lessons if _is_at(lesson, place)]
        starts = {off: seen for at, off, seen in view.starts if at == place}
        common = self.of(target)
        if not lessons and not starts:
            return common
        thinking = [lesson.fact.layer for lesson in reversed(lessons) if isinstance(lesson, RefusedThinking)]
        own = sum(layer.name == "operator" for layer in common.layers)
        layers = (*common.layers[:own], *thinking[:1], *common.layers[own:])
        return msgspec.structs.replace(
            common,
            known=know(control_target(target), layers) if thinking else common.known,
            layers=layers,
            seen_start=starts.get(False) or common.seen_start,
            seen_start_off=starts.get(True) or common.seen_start_off,
            refused_forms=frozenset(lesson.form for lesson in lessons if isinstance(lesson, RefusedForm)),
            missing=any(isinstance(lesson, MissingEndpoint) for lesson in lessons),
            refused_fields=tuple([lesson.field for lesson in lessons if isinstance(lesson, RejectedField)]),
        )

    def of(self, target: Target, *, asks: bool = True) -> TargetFacts:
        """Return what everyone knows of a target: the same value as long as nothing new is known.

        Where nothing is known yet, `asks` begins to ask its server about this model.
        """
        row, place, live = target.provider.row, place_name(target), self._live(target, asks=asks)
        listed = None if self._listings is None else self._listings.model(target.provider, target.model)
        entry = self._resolved.get(place)
        if entry is not None and entry.row is row and entry.live is live and entry.listed is listed:
            return entry.facts
        facts = self._resolve(target, live, listed)
        _store_newest(self._resolved, place, _Resolved(row, live, listed, facts))
        return facts

    def learned(self, target: Target) -> FactsAnswer | None:
        """Return what the server of a target last said of the model, or None if it was not asked."""
        return None if self._introspector is None else self._introspector.kept(target.provider, target.model)

    def listing(self, provider: Provider) -> Listing | None:
        """Return the list of models of a provider that was kept, or None if there is none."""
        return None if self._listings is None else self._listings.of(provider)

    def note_answered(self, attempt: Attempt, tenant: str, request: Request) -> None:
        """Take that an attempt of a tenant's request was answered, for lessons that it proves or disproves."""
        self.lessons.note_answered(attempt, tenant, lambda: request_shape(request))

    def learn_start(self, target: Target, off: bool, seen: SeenStart | None, tenant: str = "") -> None:
        """Keep how a tenant's reply began, to a request that asked for no thinking (`off`) or to another; None: that holds no more."""
        place = tenant, place_name(target), off
        if seen is None:
            self._starts.pop(place, None)
        elif self._starts.get(place) != seen:
            _store_newest(self._starts, place, seen)

    def today(self) -> datetime.date:
        """Return the date, in UTC."""
        return datetime.date.fromordinal(_EPOCH + int(self._clock() // 86_400))

    def _resolve(self, target: Target, live: LiveFacts | None, listed: ListedModel | None) -> TargetFacts:
        own = tuple(layer for row, layer in self._rows if _is_about(row, target))
        of_server = layers_of(live)
        if own and of_server:
            self._note_override(target, of_server[0].facts, own[0].facts)
        layers = (*own, *of_server, *layers_of_list(listed))
        return TargetFacts(
            known=know(control_target(target), layers),
            layers=layers,
            prompt=None if live is None else _prompt(live),
            seen_start=_declared_start(live),
            seen_start_off=_declared_start(live),
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
        facts_of = self._introspector.facts if asks else self._introspector.known
        return facts_of(target.provider, target.model)

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


def _is_at(lesson: Lesson, place: PlaceName) -> bool:
    """Whether a lesson is about a place; that an endpoint is missing is about all models there."""
    at = place_name(lesson.target)
    return at[:2] == place[:2] if isinstance(lesson, MissingEndpoint) else at == place


def _said_by(lesson: Lesson) -> Any:
    """Return what a plan depends on in a lesson, as plain values."""
    match lesson:
        case RejectedField():
            return lesson.field
        case RefusedThinking():
            return lesson.fact.facts, lesson.fact.date
        case RefusedForm():
            return lesson.form
        case MissingEndpoint():
            return None


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
    """Return how replies begin where a server says that it separates thinking, or None if it does not say so."""
    # llama-server says "none" whatever its flag: it is the default of a request, not what the server does.
    return "separated" if live is not None and live.text_format not in (None, "none") else None
