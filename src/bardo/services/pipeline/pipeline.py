"""Choose the layers of a call, and run them one after the other, before and after the targets of the call are known.

They are those of its profile with single ones turned on and off. Other packages name their layers in the entry points `bardo.layers`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from functools import partial
from threading import Lock
from time import perf_counter_ns
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from bardo.accounting.cost import Price
from bardo.adapters.config.accounts import KeyEntry
from bardo.adapters.config.pipeline import ANY, OFF, own_layer_points, profile_names
from bardo.adapters.config.settings import profiles_named
from bardo.adapters.work_budget import CURRENT, LEFT_OUT, TooMuchWork, WorkBudget
from bardo.catalog.layer_rows import LayerPlace, layer_rows, layers_of_profile, profile_rows
from bardo.context.layer import (
    Answered,
    Effect,
    EffectFailed,
    KeptReply,
    Layer,
    LayerFacts,
    LayerSteps,
    MaskingPart,
    Outcome,
    Passed,
    Receipt,
    ReplyPart,
    TargetFacts,
    changed,
)
from bardo.context.sessions import session_of
from bardo.planning.knowledge import TargetFacts as PlanningFacts
from bardo.planning.route import Target
from bardo.services.pipeline.call_layers import (
    CallLayers,
    LayerPlan,
    LayerSelection,
    PendingLayers,
    PromptCounter,
    left_out,
    skipped,
)
from bardo.services.pipeline.effects import Effects, LayerHost
from bardo.services.pipeline.layers import BUILDERS
from bardo.services.pipeline.parts import Builder, LayerParts
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, ConfigError, Forbidden, InvalidRequest, TooLarge, Unavailable
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request

if TYPE_CHECKING:
    from pathlib import Path

    from bardo.adapters.config.settings import Settings
    from bardo.planning.route import Target
    from bardo.services.pipeline.affinity import Affinity


_log = logging.getLogger("bardo.pipeline")
_PLACES: tuple[LayerPlace, ...] = ("before_route", "after_route")


def make_own_layer(name: str, settings: Mapping[str, Any], effects: Effects) -> Layer:
    """Return the layer of an entry point. Raises ConfigError where it cannot be made.

    It leads to a function that takes the settings of `[inference.pipeline.own.NAME]`, a dict, and returns the layer. A layer says in
    `place` whether it works `before_route` or `after_route`, by default after, behind bardo's own. `performers` are its functions for
    effects of its own, by their classes; they are not called where nothing is sent.
    """
    point = own_layer_points()[name]
    try:
        layer = point.load()(dict(settings))
        for kind, perform in getattr(layer, "performers", {}).items():
            effects.register(kind, perform, writes=True)
    except Exception as problem:
        message = f"the layer {name!r} of {point.value} cannot be made: {type(problem).__name__}: {problem}"
        raise ConfigError(message[:500], hint=f"look at [inference.pipeline.own.{name}]") from problem
    if getattr(layer, "name", None) != name or not callable(getattr(layer, "steps", None)):
        message = f"the layer {name!r} of {point.value} is no layer of that name"
        raise ConfigError(message, hint="return an object with name and steps, as bardo.context.layer says")
    return cast("Layer", layer)


def place_of(layer: Layer) -> LayerPlace:
    """Return whether a layer works before it is known who is asked, or after. Raises ConfigError for any other place."""
    place = getattr(layer, "place", "after_route")
    if place not in _PLACES:
        raise ConfigError(f"the layer {layer.name!r} has no place {place!r}", hint=f"use {' or '.join(_PLACES)}")
    return cast("LayerPlace", place)


_MOST_PLANS = 256
"""Calls choose layers one by one, so that there are many combinations."""
_LOCKED = "the operator does not let calls turn it off"
Switches = tuple[tuple[str, bool], ...]


class LayerChoice:
    """Chooses the layers of calls, and makes each of them once, in a thread: their modules and tables take up to seconds to load."""

    def __init__(self, parts: LayerParts, builders: Mapping[str, Builder], *, for_clients: bool = False) -> None:
        self._settings = parts.pipeline
        self._parts = parts
        self._builders = builders
        self._for_clients = for_clients
        self.is_named = bool(self._settings.profile) or any(profiles_named(parts.settings))
        self._made: dict[str, Layer] = {}
        self._plans: dict[tuple[str, Switches, tuple[str, ...]], tuple[LayerPlan, tuple[Degradation, ...]]] = {}
        self._making = Lock()

    async def load(self) -> None:
        """Make the layers of all profiles that the configuration gives to calls, in a thread, so that none of them waits for it."""
        if self.is_named:
            await asyncio.to_thread(self._load)

    def _load(self) -> None:
        named = (self._settings.profile, *(profile for _, _, profile in profiles_named(self._parts.settings)))
        for profile in dict.fromkeys(named):
            try:
                self._plan(profile or OFF, (), ())
            except BardoError as problem:
                # The calls that have this profile are told.
                _log.warning("the layers of the profile %r cannot be made: %s", profile, problem.message)

    async def choose(self, request: Request | EmbedRequest, client_key: str) -> LayerSelection | None:
        """Return the layers of one call, or None if it has none.

        The call itself names its profile, or else the key that it came with, an alias, its workload (that of its subsystem, of its tick
        or of its model), or the configuration. Layers that the operator locked, and would have on the call, stay whatever profile or
        subsystem the call names.
        Raises InvalidRequest for an unknown profile or layer, and Forbidden for one that the caller may not choose.
        """
        options = request.options
        if options.pipeline is None and not options.layers and not self.is_named:
            return None
        configured, workload = self._configured(request, client_key)
        asked = options.pipeline
        if self._for_clients:
            own = asked if asked is not None and options.pipeline_by_operator else configured
            self._check_allowed(asked, options.layers, own, client_key)
        locked = () if asked is None or asked == configured else self._locked_in(configured)
        profile = configured if asked is None else asked
        if options.intent is not None and self._settings.locked:
            # Without its subsystem, which the call names, it would have another profile.
            plain = msgspec.structs.replace(request, options=msgspec.structs.replace(options, intent=None))
            own, _ = self._configured(plain, client_key)
            locked = tuple(dict.fromkeys((*locked, *(() if own == profile else self._locked_in(own)))))
        if (not profile or profile == OFF) and not options.layers and not locked:
            return None
        key = profile or OFF, options.layers, locked
        made = self._plans.get(key)
        plan, lost = await asyncio.to_thread(self._plan, *key) if made is None else made
        return LayerSelection(plan, workload, lost) if plan.before or plan.after else None

    def _configured(self, request: Request | EmbedRequest, client_key: str) -> tuple[str, str]:
        """Return the profile that the operator gives a call, and its workload."""
        host, options = self._parts.host, request.options
        directory = host.directory
        meaning = directory.meaning_of(request.model)
        if options.agent_step is not None:
            workload = directory.workloads.get(options.agent_step.workload)
        elif options.intent is not None:
            workload = directory.workloads.of_call(options.intent, meaning.model)
        else:
            workload = directory.workloads.find(meaning.model)
        name = "" if workload is None else workload.name
        for rule in (*host.client_keys.rules(client_key), *meaning.steps):
            if rule.pipeline:
                return rule.pipeline, name
        return (workload.pipeline if workload is not None and workload.pipeline else self._settings.profile), name

    def _check_allowed(self, asked: str | None, switched: Switches, configured: str, client_key: str) -> None:
        """Raise Forbidden where a call chooses layers beyond those of its own profile and of those that it may name.

        Turning layers off is another matter: `locked` says which of them stay.
        """
        allowed = set(self._parts.settings.gateway.client_pipelines)
        for rule in self._parts.host.client_keys.rules(client_key):
            if isinstance(rule, KeyEntry):
                allowed.update((ANY,) if rule.operator else rule.pipelines)
        if ANY in allowed:
            return
        if asked is not None and asked not in (OFF, configured, *allowed):
            # An unknown name is reported as such to every caller.
            self._layers_of(asked)
            raise _not_allowed(f"the pipeline {asked!r}", sorted(allowed - {OFF}), "bardo.pipeline")
        profiles = [name for name in (configured, *allowed) if name]
        layers = {layer for name in profiles for layer in self._layers_of(name)}
        for name, on in switched:
            if on and name not in layers and (name in layer_rows() or name in own_layer_points()):
                raise _not_allowed(f"the layer {name!r}", sorted(allowed - {OFF}), f"bardo.layers.{name}")

    def _locked_in(self, profile: str) -> tuple[str, ...]:
        """Return the layers of an operator's profile that stay, whatever profile a call names."""
        if not profile or not self._settings.locked:
            return ()
        return tuple([name for name in self._layers_of(profile) if name in self._settings.locked])

    def _plan(
        self, profile: str, switched: Switches, locked: tuple[str, ...]
    ) -> tuple[LayerPlan, tuple[Degradation, ...]]:
        key = profile, switched, locked
        with self._making:
            made = self._plans.get(key)
            if made is None:
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                made = self._plans[key] = self._make_plan(profile, switched, locked)
        return made

    def _make_plan(
        self, profile: str, switched: Switches, locked: tuple[str, ...]
    ) -> tuple[LayerPlan, tuple[Degradation, ...]]:
        names = set(self._layers_of(profile))
        lost = [Degradation(f"pipeline.{name}", asked="off", why=_LOCKED) for name in locked if name not in names]
        names |= set(locked)
        lost += self._switch(names, switched)
        return self._ordered_plan(profile, names), tuple(lost)

    def _switch(self, names: set[str], switched: Switches) -> list[Degradation]:
        """Turn single layers of a call on and off, and return what stays on although the call would turn it off."""
        rows, lost = layer_rows(), []
        for name, on in switched:
            if name not in rows and name not in own_layer_points():
                raise _unknown("layer", name, (*rows, *own_layer_points()), f"bardo.layers.{name[:100]}")
            if on:
                names.add(name)
            elif name in self._settings.locked and name in names:
                lost.append(Degradation(f"pipeline.{name}", asked="off", why=_LOCKED))
            else:
                names.discard(name)
        return lost

    def _ordered_plan(self, profile: str, names: set[str]) -> LayerPlan:
        """Return a plan with these layers, in their order."""
        chosen = [row for row in layer_rows().values() if row.name in names and row.name in self._builders]
        own = [self._own_layer(name) for name in self._order_of_own(profile, names)]
        by_place: dict[LayerPlace, list[Layer]] = {"before_route": [], "after_route": []}
        for row in chosen:
            by_place[row.place].append(self._layer(row.name))
        for layer in own:
            by_place[place_of(layer)].append(layer)
        before, after = tuple(by_place["before_route"]), tuple(by_place["after_route"])
        reads_session = bool(own) or any(row.reads_session for row in chosen)
        masking = frozenset(layer.name for layer in (*before, *after) if getattr(layer, "masks", False))
        all_names = tuple(layer.name for layer in (*before, *after))
        return LayerPlan(profile, before, after, reads_session, masking, all_names)

    def _order_of_own(self, profile: str, names: set[str]) -> list[str]:
        """Return the layers of other packages in the order of the profile, then those that the call turned on."""
        foreign = names.difference(layer_rows())
        if not foreign:
            return []
        listed = [name for name in self._layers_of(profile) if name in foreign]
        return [*listed, *sorted(foreign.difference(listed))]

    def _own_layer(self, name: str) -> Layer:
        made = self._made.get(name)
        if made is None:
            settings = self._settings.own.get(name, {})
            made = self._made[name] = make_own_layer(name, settings, self._parts.effects)
        return made

    def _layers_of(self, profile: str) -> Sequence[str]:
        own = self._settings.profiles.get(profile)
        if own is not None:
            return own.layers
        if profile == OFF:
            return ()
        if profile not in profile_rows():
            raise _unknown("pipeline", profile, profile_names(self._settings), "bardo.pipeline")
        return layers_of_profile(profile)

    def layer(self, name: str) -> Layer:
        """Return one layer by its name."""
        return self._layer(name) if name in self._builders else self._own_layer(name)

    def _layer(self, name: str) -> Layer:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._builders[name](self._parts)
        return made


def _not_allowed(what: str, allowed: Sequence[str], param: str) -> Forbidden:
    may = f"it may choose the pipelines {', '.join(allowed)}" if allowed else "it may choose none but its own"
    hint = "leave it out, or ask the operator for client_pipelines under [gateway], or for pipelines of the key"
    return Forbidden(f"{param}: this call may not choose {what}: {may}", hint=hint)


def _unknown(what: str, name: str, names: Sequence[str], param: str) -> InvalidRequest:
    near = get_close_matches(name[:100], names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}"
    return InvalidRequest(f"bardo knows no {what} {name[:100]!r}", hint=hint, param=param)


_MOST_KEPT = 1024


class _CachedFacts(msgspec.Struct, frozen=True):
    """The facts of a target, and their sources: they hold as long as these are the same."""

    known: PlanningFacts
    price: Price | None
    down: bool
    facts: TargetFacts


class TargetReader:
    """Tells the facts about targets. It keeps what it told, because most calls ask the same targets."""

    def __init__(self, host: LayerHost) -> None:
        self._host = host
        self._cached: dict[tuple[str, str, str], _CachedFacts] = {}

    def facts(self, targets: Sequence[Target], now: float) -> tuple[TargetFacts, ...]:
        """Return the facts about targets at a Unix time, in their order."""
        host, troubled = self._host, self._host.health.store.troubled
        watched = host.watch() if troubled else 0.0
        target_facts = []
        for target in targets:
            provider = target.provider
            facts, price = host.facts.of(target), host.prices.price(provider, target.model, now)
            down = troubled and host.health.is_out(provider.place, target.model, watched)
            place = provider.place, target.model, provider.row.dialect
            told = self._cached.get(place)
            if told is None or told.known is not facts or told.price is not price or told.down is not down:
                if len(self._cached) >= _MOST_KEPT:
                    self._cached.clear()
                told = self._cached[place] = _CachedFacts(facts, price, down, _facts(target, facts, price, down=down))
            target_facts.append(told.facts)
        return tuple(target_facts)


def _facts(target: Target, facts: PlanningFacts, price: Price | None, *, down: bool) -> TargetFacts:
    rates = None if price is None else price.schedule.rates
    return TargetFacts(
        provider=target.provider.id,
        model=target.model,
        dialect=target.provider.row.dialect,
        row=target.provider.row.id,
        address=target.provider.address,
        window=facts.context,
        max_output_tokens=facts.known.facts.output_limit,
        input_nanos=None if rates is None else rates.input,
        cache_read_nanos=None if rates is None else rates.cache_read,
        down=down,
    )


_LONG_CHARS = 50_000
"""Characters of a request, of whose layers each needs less than a few milliseconds for less."""
_MESSAGE_CHARS = 100
# One thread: several long requests wait for each other, and share the processor with those that are short.
_LONG_WORK = ThreadPoolExecutor(1, thread_name_prefix="bardo-layers")

AnswerWith = Callable[[KeptReply, Request], Awaitable[None]]


class RestorableLayer(Protocol):
    """A layer whose part in a reply can be made again when the reply comes much later."""

    def part_of(self, kept: bytes) -> ReplyPart:
        """Return the part that kept this."""
        ...


class Pipeline:
    """Runs the layers of calls. `parts` are what `builders` make layers from, and `clock` gives Unix time."""

    def __init__(
        self,
        parts: LayerParts,
        builders: Mapping[str, Builder] = BUILDERS,
        *,
        clock: Callable[[], float],
        for_clients: bool = False,
    ) -> None:
        self._parts = parts
        self._choice = LayerChoice(parts, builders, for_clients=for_clients)
        self.is_named = self._choice.is_named
        """Whether the configuration gives layers to calls that name none."""
        self._clock = clock
        self.effects: Effects = parts.effects
        self._targets = TargetReader(parts.host)
        self._work_seconds = parts.pipeline.max_work_seconds
        self._ways_off: dict[str, str] = {}

    @property
    def affinity(self) -> Affinity | None:
        """The tokens that targets have probably cached, or None if no layer asks for them."""
        return self._parts.affinity[0] if self._parts.affinity else None

    def discounts(self, session: str, request: Request) -> dict[tuple[str, str], float]:
        """Return by how much less a call of a session costs where its prompt is cached, as `Affinity.discounts` does."""
        host, affinity = self._parts.host, self.affinity
        return {} if affinity is None else affinity.discounts(session, request, host.directory, host.prices)

    @classmethod
    def of(
        cls,
        settings: Settings,
        host: LayerHost,
        folder: Path,
        environment: Mapping[str, str],
        *,
        builders: Mapping[str, Builder] = BUILDERS,
        for_clients: bool = False,
    ) -> Pipeline:
        """Return what runs the layers of calls. `folder` is where bardo keeps its data.

        `for_clients`: calls name only profiles that the operator allows them.
        """
        own = settings.inference.pipeline
        parts = LayerParts(settings, own, host, Effects(), folder, environment, [], [])
        return cls(parts, builders, clock=host.clock, for_clients=for_clients)

    async def load(self) -> None:
        """Make the layers that the configuration gives to calls, with all that they load, in a thread."""
        await self._choice.load()

    async def of_call(
        self, request: Request, *, tenant: str = "", client_key: str = "", dry: bool = False
    ) -> CallLayers | None:
        """Return the layers of one call, or None if it has none. Raises InvalidRequest for an unknown profile or layer."""
        chosen = await self._choice.choose(request, client_key)
        if chosen is None:
            return None
        session = session_of(request, tenant) if chosen.plan.reads_session else ""
        return CallLayers(
            chosen,
            self.effects,
            PromptCounter(self._parts.host.estimates, tenant),
            tenant=tenant,
            session=session,
            dry=dry,
            work_seconds=self._work_seconds,
        )

    async def of_operation(
        self, request: Request | EmbedRequest, *, tenant: str = "", client_key: str = ""
    ) -> CallLayers | None:
        """Return the layers that work on whatever is sent, or None if there are none of these.

        Raises InvalidRequest for an unknown profile or layer.
        """
        chosen = await self._choice.choose(request, client_key)
        if chosen is None:
            return None
        plan = chosen.plan.of_every_operation()
        if not plan.names:
            return None
        counter = PromptCounter(self._parts.host.estimates, tenant)
        return CallLayers(
            chosen._replace(plan=plan), self.effects, counter, tenant=tenant, work_seconds=self._work_seconds
        )

    def of_kept(self, kept: PendingLayers, request: Request, tenant: str) -> CallLayers:
        """Return the layers of a call whose reply came later, by what was kept of them; `request` is the call as its client sent it."""
        names = tuple([name for name, _ in kept.parts])
        plan = LayerPlan(kept.profile, masking=frozenset(names), names=names)
        call = CallLayers(
            LayerSelection(plan), self.effects, PromptCounter(self._parts.host.estimates, tenant), tenant=tenant
        )
        for name, part_kept in kept.parts:
            part = cast("RestorableLayer", self._choice.layer(name)).part_of(part_kept)
            call.take(name, Passed(request=request, receipt=Receipt(layer=name), reply=part))
            request = part.masked_request(request) if isinstance(part, MaskingPart) else request
        call.receipts = list(kept.receipts)
        call.sent = msgspec.structs.replace(request, degraded=(*request.degraded, *kept.degraded))
        return call

    async def before_route(self, call: CallLayers, request: Request, answer: AnswerWith) -> Request:
        """Run the layers that work before it is known who is asked, and return the request. Raises BardoError where a layer refuses it.

        `answer` gives a kept reply; where it raises EffectFailed, the layer is passed over.
        """
        if call.lost:
            request = msgspec.structs.replace(request, degraded=(*request.degraded, *call.lost))
        affinity = self._parts.affinity
        if affinity and affinity[0].shares and call.plan.has("affinity"):
            await affinity[0].recall(call.session)
        if call.plan.before:
            request = await self._run_before(call, request, answer)
        call.sent = request
        return request

    async def _run_before(self, call: CallLayers, request: Request, answer: AnswerWith) -> Request:
        facts = call.facts = self._facts(call, request)
        call.facts_model = request.model
        for layer in call.plan.before:
            request, _ = await self._run(call, layer, request, facts, answer)
            if call.answer is not None:
                break
            if facts.found is not call.found:
                facts = msgspec.structs.replace(facts, found=call.found)
        return request

    async def after_route(
        self, call: CallLayers, request: Request, targets: tuple[Target, ...]
    ) -> tuple[Request, tuple[Target, ...]]:
        """Run the layers that work when it is known who is asked, and return the request and who is asked, in order.

        Raises BardoError where a layer refuses the call.
        """
        if not call.plan.after:
            return request, targets
        now = self._clock()
        told = self._targets.facts(targets, now)
        affinity = self._parts.affinity
        if affinity and call.plan.reads_session:
            told = affinity[0].with_warm_tokens(call.session, request, told)
        facts_before = call.facts if call.facts_model == request.model else None
        if facts_before is None:
            facts_before = self._facts(call, request)
        facts = msgspec.structs.replace(facts_before, now=now, targets=told, routed=request, found=call.found)
        for layer in call.plan.after:
            request, order = await self._run(call, layer, request, facts, None)
            if order is not None:
                targets = tuple([targets[place] for place in order])
                told = tuple([told[place] for place in order])
                facts = msgspec.structs.replace(facts, targets=told, found=call.found)
            elif facts.found is not call.found:
                facts = msgspec.structs.replace(facts, found=call.found)
        call.sent = request
        return request, targets

    async def _run(
        self, call: CallLayers, layer: Layer, request: Request, facts: LayerFacts, answer: AnswerWith | None
    ) -> tuple[Request, tuple[int, ...] | None]:
        """Run one layer, and return the request and, where the layer says it, who is asked, in order."""
        began = perf_counter_ns()
        try:
            steps = layer.steps(request, facts)
            if is_long(request):
                outcome: Passed | Answered = await self._outcome_of_long(steps, call.budget, dry=facts.dry)
            else:
                try:
                    outcome = await self._outcome(steps, next(steps), dry=facts.dry)
                except StopIteration as done:
                    outcome = done.value
            if isinstance(outcome, Answered):
                order, after = None, _with_losses(request, outcome)
                await self._answer(call, layer, outcome, after, answer)
            else:
                order, after = outcome.order, outcome.request
                if order is not None:
                    _check_order(order, len(facts.targets))
                if after is not request and after.body is not None:
                    after = changed(after)  # Sent on as they came, its bytes would hold what the layer took out.
                call.take(layer.name, outcome)
                if outcome.degraded:
                    after = _with_losses(after, outcome)
        except BardoError as refusal:
            did = f"refused the call: {type(refusal).__name__}"
            call.receipts.append(Receipt(layer=layer.name, did=did, microseconds=_since(began)))
            raise
        except TooMuchWork as problem:
            seconds = call.budget.seconds
            receipt = Receipt(layer=layer.name, did="was left out", saw={LEFT_OUT: True}, microseconds=_since(began))
            call.receipts.append(receipt)
            if layer.name in call.plan.masking:
                # What it would have masked must not be sent.
                message = f"the request takes more than {seconds:g} s of work, and nothing is sent before {layer.name} is done with it"
                hint = "send it in parts; whoever runs bardo can raise max_work_seconds under [inference.pipeline]"
                raise TooLarge(message, hint=hint) from problem
            return msgspec.structs.replace(request, degraded=(*request.degraded, left_out(layer.name, seconds))), None
        except Exception as problem:
            cause = (problem.__cause__ or problem) if isinstance(problem, EffectFailed) else problem
            lost, did = skipped(layer.name, cause), "failed and was passed over"
            call.receipts.append(Receipt(layer=layer.name, did=did, microseconds=_since(began)))
            if layer.name in call.plan.masking:
                # What it would have masked must not be sent.
                message = f"the layer {layer.name} failed, and nothing is sent without it"
                raise Unavailable(message, hint="look at the log of bardo") from problem
            return msgspec.structs.replace(request, degraded=(*request.degraded, lost)), None
        receipt = outcome.receipt
        # How a layer is turned off is said here where the layer itself does not say it.
        off = receipt.off or self._ways_off.get(receipt.layer) or self._way_off(receipt.layer)
        call.receipts.append(msgspec.structs.replace(receipt, microseconds=_since(began), off=off))
        return after, order

    def _way_off(self, name: str) -> str:
        switch = f'"bardo": {{"layers": {{"{name}": false}}}}, or a profile without {name}'
        is_locked = name in self._parts.pipeline.locked
        way = self._ways_off[name] = f"a profile of [inference.pipeline] without {name}" if is_locked else switch
        return way

    async def _answer(
        self, call: CallLayers, layer: Layer, outcome: Answered, request: Request, answer: AnswerWith | None
    ) -> None:
        """Return the reply that a layer had. Raises EffectFailed where it cannot be given, and TypeError behind the route."""
        if answer is None:
            raise TypeError("a layer that works after the route cannot answer")
        await answer(outcome.reply, request)
        call.answer = outcome.reply
        if outcome.found is not None:
            call.found = {**call.found, layer.name: outcome.found}

    async def _outcome(self, steps: LayerSteps, effect: Effect, *, dry: bool) -> Passed | Answered:
        """Return what a layer decides, once its effects are performed, of which `effect` is the first."""
        begin = self.effects.begin
        try:
            while True:
                try:
                    result = begin(effect, dry=dry)
                    if type(result) is CoroutineType:
                        result = await result
                except EffectFailed as failed:
                    effect = steps.throw(failed)
                else:
                    effect = steps.send(result)
        except StopIteration as done:
            outcome: Passed | Answered = done.value
            return outcome

    async def _outcome_of_long(self, steps: LayerSteps, budget: WorkBudget, *, dry: bool) -> Passed | Answered:
        """Return what a layer decides about a long request: its steps, which know nothing but their arguments, run in a thread.

        Raises TooMuchWork between two steps where the budget is used up.
        """
        loop, current = asyncio.get_running_loop(), CURRENT.set(budget)
        try:
            budget.check()
            next_step = partial(_next_step, steps, None, None)
            while True:
                done, step = await loop.run_in_executor(_LONG_WORK, budget.run, next_step)
                if done:
                    outcome: Passed | Answered = step
                    return outcome
                budget.check()
                result, failed = None, None
                try:
                    result = await self.effects.perform(step, dry=dry)
                except EffectFailed as problem:
                    if isinstance(problem.__cause__, TooMuchWork):
                        raise problem.__cause__ from None
                    failed = problem
                next_step = partial(_next_step, steps, result, failed)
        finally:
            CURRENT.reset(current)

    def _facts(self, call: CallLayers, request: Request) -> LayerFacts:
        """Return what layers may know of a call before it is known who is asked."""
        stands_for = self._parts.host.directory.meaning_of(request.model)
        return LayerFacts(
            tenant=call.tenant,
            session=call.session,
            now=self._clock(),
            profile=call.plan.profile,
            count_tokens=call.counter.count,
            models=(stands_for.model, *stands_for.fallbacks),
            workload=call.workload,
            found=call.found,
            layers=call.plan.names,
            dry=call.dry,
        )

    async def close(self) -> None:
        """Close what layers have opened, the last first."""
        while self._parts.closing:
            await self._parts.closing.pop()()


def is_long(request: Request) -> bool:
    """Return whether a layer may need milliseconds for a request: no more of it is counted than is needed to know."""
    if len(request.body_bytes) > _LONG_CHARS:
        return True
    left = _LONG_CHARS - _MESSAGE_CHARS * len(request.messages)
    for message in request.messages:
        if left < 0:
            break
        for block in message.blocks:
            left -= _MESSAGE_CHARS + len(getattr(block, "text", "")) + len(getattr(block, "arguments", ""))
            left -= sum(_MESSAGE_CHARS + len(getattr(part, "text", "")) for part in getattr(block, "content", ()))
    return left < 0


def _next_step(steps: LayerSteps, result: Any, failed: EffectFailed | None) -> tuple[bool, Any]:
    """Return the next effect of a layer, or its outcome with True: a generator's end does not pass through a future."""
    try:
        return False, steps.send(result) if failed is None else steps.throw(failed)
    except StopIteration as done:
        return True, done.value


def _check_order(order: tuple[int, ...], count: int) -> None:
    """Raise ValueError for places of targets that do not exist, and for none."""
    if not order or len(set(order)) < len(order) or not all(0 <= place < count for place in order):
        raise ValueError("a layer gave places of targets that do not exist")


def _with_losses(request: Request, outcome: Outcome) -> Request:
    """Return a request with what a layer could not keep of it."""
    if not outcome.degraded:
        return request
    return msgspec.structs.replace(request, degraded=(*request.degraded, *outcome.degraded))


def _since(began: int) -> int:
    return (perf_counter_ns() - began) // 1000
