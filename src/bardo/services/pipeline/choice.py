"""Choose the layers of a call, those of its profile with single ones turned on and off, and load layers from other packages.

Other packages name their layers in the entry points `bardo.layers`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from threading import Lock
from typing import Any, cast

import msgspec

from bardo.adapters.config.accounts import KeyEntry
from bardo.adapters.config.pipeline import ANY, OFF, own_layer_points, profile_names
from bardo.adapters.config.settings import profiles_named
from bardo.catalog.layer_rows import LayerPlace, layer_rows, layers_of_profile, profile_rows
from bardo.context.layer import Layer
from bardo.services.pipeline.call_layers import LayerPlan, LayerSelection
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.parts import Builder, LayerParts
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, ConfigError, Forbidden, InvalidRequest
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request

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
        self._is_named = bool(self._settings.profile) or any(profiles_named(parts.settings))
        self._made: dict[str, Layer] = {}
        self._plans: dict[tuple[str, Switches, tuple[str, ...]], tuple[LayerPlan, tuple[Degradation, ...]]] = {}
        self._making = Lock()

    async def load(self) -> None:
        """Make the layers of all profiles that the configuration gives to calls, in a thread, so that none of them waits for it."""
        if self._is_named:
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
        """Return the layers of one call; None where it has none.

        The call itself names its profile, or else the key that it came with, an alias, its workload (that of its subsystem, of its tick
        or of its model), or the configuration. Layers that the operator locked, and would have on the call, stay whatever profile or
        subsystem the call names.
        Raises InvalidRequest for a profile or a layer that nobody knows, and Forbidden for one that the caller may not choose.
        """
        options = request.options
        if options.pipeline is None and not options.layers and not self._is_named:
            return None
        configured, workload = self._configured(request, client_key)
        asked = options.pipeline
        if self._for_clients:
            own = asked if asked is not None and options.pipeline_by_operator else configured
            self._check_allowed(asked, options.layers, own, client_key)
        kept = () if asked is None or asked == configured else self._locked_in(configured)
        profile = configured if asked is None else asked
        if options.intent is not None and self._settings.locked:
            # Without its subsystem, which the call names, it would have another profile.
            plain = msgspec.structs.replace(request, options=msgspec.structs.replace(options, intent=None))
            own, _ = self._configured(plain, client_key)
            kept = tuple(dict.fromkeys((*kept, *(() if own == profile else self._locked_in(own)))))
        if (not profile or profile == OFF) and not options.layers and not kept:
            return None
        key = profile or OFF, options.layers, kept
        made = self._plans.get(key)
        plan, lost = await asyncio.to_thread(self._plan, *key) if made is None else made
        return LayerSelection(plan, workload, lost) if plan.before or plan.after else None

    def _configured(self, request: Request | EmbedRequest, client_key: str) -> tuple[str, str]:
        """Return the profile that the operator gives a call, and its workload."""
        host, options = self._parts.host, request.options
        directory = host.directory
        found = directory.found(request.model)
        if options.agent_step is not None:
            workload = directory.workloads.get(options.agent_step.workload)
        elif options.intent is not None:
            workload = directory.workloads.of_call(options.intent, found.model)
        else:
            workload = directory.workloads.find(found.model)
        name = "" if workload is None else workload.name
        for rule in (*host.client_keys.rules(client_key), *found.steps):
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
            # A name that nobody knows is told as such, whoever asks.
            self._layers_of(asked)
            raise _not_allowed(f"the pipeline {asked!r}", sorted(allowed - {OFF}), "bardo.pipeline")
        profiles = [name for name in (configured, *allowed) if name]
        known = {layer for name in profiles for layer in self._layers_of(name)}
        for name, on in switched:
            if on and name not in known and (name in layer_rows() or name in own_layer_points()):
                raise _not_allowed(f"the layer {name!r}", sorted(allowed - {OFF}), f"bardo.layers.{name}")

    def _locked_in(self, profile: str) -> tuple[str, ...]:
        """Return the layers of an operator's profile that stay, whatever profile a call names."""
        if not profile or not self._settings.locked:
            return ()
        return tuple([name for name in self._layers_of(profile) if name in self._settings.locked])

    def _plan(
        self, profile: str, switched: Switches, kept: tuple[str, ...]
    ) -> tuple[LayerPlan, tuple[Degradation, ...]]:
        key = profile, switched, kept
        with self._making:
            made = self._plans.get(key)
            if made is None:
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                made = self._plans[key] = self._make_plan(profile, switched, kept)
        return made

    def _make_plan(
        self, profile: str, switched: Switches, kept: tuple[str, ...]
    ) -> tuple[LayerPlan, tuple[Degradation, ...]]:
        names = set(self._layers_of(profile))
        lost = [Degradation(f"pipeline.{name}", asked="off", why=_LOCKED) for name in kept if name not in names]
        names |= set(kept)
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
        placed: dict[LayerPlace, list[Layer]] = {"before_route": [], "after_route": []}
        for row in chosen:
            placed[row.place].append(self._layer(row.name))
        for layer in own:
            placed[place_of(layer)].append(layer)
        before, after = tuple(placed["before_route"]), tuple(placed["after_route"])
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


def _unknown(what: str, name: str, known: Sequence[str], param: str) -> InvalidRequest:
    near = get_close_matches(name[:100], known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
    return InvalidRequest(f"bardo knows no {what} {name[:100]!r}", hint=hint, param=param)
