"""Where a policy is going: everything known of the model there, layer over layer, and the table between levels and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal

import msgspec

from bardo.catalog.forms import Endpoint, WireForm, WireForms, builtin_forms
from bardo.catalog.fragments import SWITCH
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.models import BudgetRange, Control, Facts, FoundModel, ModelRow, Models, builtin_models
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy

HEADROOM = 1024
"""Tokens of the output limit that are left to the answer where a budget would take all."""
DEFAULT_OUTPUT = 8192
"""The room for an answer where a limit must be sent and the caller named none; thinking comes on top."""


class PortableBudgets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tokens of each level: the budget asked for, not the tokens a model will use."""

    minimal: int = 1024
    low: int = 2048
    medium: int = 8192
    high: int = 32_768
    xhigh: int = 49_152
    max: int = 65_536

    def tokens(self, effort: Effort) -> int:
        """Return the tokens of a level."""
        tokens: int = getattr(self, effort)
        return tokens

    def level(self, tokens: int) -> Effort:
        """Return the nearest level; of two that are as near, the higher."""
        return min(reversed(EFFORTS), key=lambda effort: abs(self.tokens(effort) - tokens))


PORTABLE = PortableBudgets()


def ladder(efforts: Sequence[str]) -> tuple[Effort, ...]:
    """Return those of a model's words that are levels, in rising order."""
    return tuple(effort for effort in EFFORTS if effort in efforts)


def nearest_level(requested: Effort, offered: Sequence[Effort]) -> Effort:
    """Choose the closest level not above `requested`, or the lowest there is."""
    rank = EFFORTS.index(requested)
    ranked = sorted(offered, key=EFFORTS.index)
    return max((level for level in ranked if EFFORTS.index(level) <= rank), key=EFFORTS.index, default=ranked[0])


def answer_room(limit: int, headroom: int = HEADROOM) -> int:
    """Return how much of an output limit a budget leaves to the answer: `headroom`, or half of a limit that is smaller than twice that."""
    return max(1, min(headroom, limit // 2))


def nearest_tokens(requested: int, *, least: int, most: int | None, room: int | None, headroom: int) -> int | None:
    """Return the nearest budget from `least` to `most` that leaves the answer its room within the output limit `room`.

    A model's least goes before the answer's room as long as a quarter of the limit is left, or None if it is not.
    """
    highest = requested if most is None else min(requested, most)
    if room is None:
        return max(least, highest)
    sent = max(least, min(highest, room - answer_room(room, headroom)))
    return sent if sent <= room - answer_room(room, headroom) or 4 * (room - sent) >= room else None


ANY_WORD: tuple[Effort, ...] = ("low", "medium", "high")
"""The levels of a model that takes one and for which no source lists any: its chat template prints the word as it is."""
LayerName = Literal["operator", "L1", "listing", "L2", "L3"]
_ORDER: tuple[LayerName, ...] = ("operator", "L1", "listing", "L2", "L3")
_FIELDS = Facts.__struct_fields__


class ControlTarget(msgspec.Struct, frozen=True):
    """A model at a provider: the id of the provider's row, the dialect it is spoken to in, and the model as it is called there."""

    provider: str
    dialect: str
    model: str


class Layer(msgspec.Struct, frozen=True):
    """The facts of one source: an operator's override, live introspection (L1), the provider's list
    of models as it was kept (listing), the catalog (L2), the provider's static form (L3)."""

    name: LayerName
    facts: Facts
    reason: str = ""


class ResolvedFacts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All that is known of a target: the facts that hold, which layer each is from, and the wire form they are written in.

    It is kept for the life of the process, so what follows from the facts is worked out once.
    """

    target: ControlTarget
    found: FoundModel
    endpoint: Endpoint
    form: WireForm
    facts: Facts
    layers: dict[str, LayerName]
    reasons: dict[str, str]

    @cached_property
    def row(self) -> ModelRow | None:
        """The catalog's row."""
        return self.found.row

    @cached_property
    def classified(self) -> bool:
        """Whether anything but the provider's static form speaks of the model."""
        return any(layer != "L3" for layer in self.layers.values())

    @cached_property
    def unknown_server(self) -> bool:
        """Whether nothing is known of the server: no row, no operator and no word of its own."""
        return self.endpoint.unknown_server and not {"operator", "L1", "listing"} & set(self.layers.values())

    @cached_property
    def control(self) -> tuple[Control, ...]:
        """The ways the model is told how to think."""
        return self.facts.control or ()

    @cached_property
    def controllable(self) -> bool:
        """Whether there is any way at all."""
        return bool(self.levels) or bool(set(self.control) - {"none", "fixed", "model_id"})

    @cached_property
    def levels(self) -> tuple[Effort, ...]:
        """The model's own levels that can be written here, where it is told how to think by them, in rising order."""
        takes = {"effort", "level", "fixed"} & set(self.control)
        if self.facts.efforts is None and "effort" in takes:
            return ANY_WORD
        offered = ladder(self.facts.efforts or ()) if takes else ()
        return tuple(level for level in offered if level not in self.form.refused)

    @cached_property
    def takes_budget(self) -> bool:
        """Whether a budget in tokens is writable here, and known to the model or all that the provider has for it."""
        only = self.controllable and self.form.effort is None and self.form.on is None
        return self.form.budget is not None and ("budget" in self.control or only)

    @cached_property
    def takes_level(self) -> bool:
        """Whether a level is both known to the model and writable here."""
        return bool(self.levels) and self.form.effort is not None

    @cached_property
    def switches(self) -> bool:
        """Whether thinking can be turned on without an amount."""
        return bool({"toggle", "adaptive"} & set(self.control)) and self.form.on is not None

    @cached_property
    def budget(self) -> BudgetRange:
        """The range of budgets, within what the form takes."""
        own = self.facts.budget or BudgetRange()
        most = min((bound for bound in (own.max, self.form.most_budget) if bound is not None), default=None)
        return msgspec.structs.replace(own, min=max(own.min, self.form.least_budget), max=most)

    @cached_property
    def switch(self) -> str:
        """The name of the chat template's switch."""
        return self.facts.switch or SWITCH

    def id_for(self, policy: ReasoningPolicy | None) -> str | None:
        """Return the id by which a policy is said, where the ids of a pair say whether the model thinks, or None if none of them does.

        What the catalog says of a pair is about the maker's own API: another host may serve only one of the two.
        """
        ids = self.facts.model_ids
        if ids is None or "model_id" not in self.control or policy is None or policy.mode == "auto":
            return None
        if self.layers["model_ids"] in ("L2", "L3") and self.found.maker != (
            self.endpoint.owner or self.target.provider
        ):
            return None
        return ids.of(self.target.model, thinks=policy.mode != "off" and policy.budget != 0)

    def layer(self, *fields: str) -> LayerName:
        """Return the highest layer that said one of these facts."""
        return min([self.layers[field] for field in fields if field in self.layers], key=_ORDER.index, default="L3")


def know(
    target: ControlTarget, layers: Sequence[Layer] = (), *, models: Models | None = None, forms: WireForms | None = None
) -> ResolvedFacts:
    """Return what holds for a target: each fact from the highest layer that has it. The catalog and the static form are added here."""
    if not layers and models is None and forms is None:
        return _built_in_facts(target)
    return _resolve(target, tuple(layers), models or builtin_models(), forms or builtin_forms())


@lru_cache(maxsize=2048)
def _built_in_facts(target: ControlTarget) -> ResolvedFacts:
    return _resolve(target, (), builtin_models(), builtin_forms())


def _resolve(target: ControlTarget, layers: tuple[Layer, ...], models: Models, forms: WireForms) -> ResolvedFacts:
    endpoint = forms.endpoint(target.provider, target.dialect)
    identity = models.find(endpoint.owner or target.provider, target.model)
    differs = [Layer("L2", row) for row in endpoint.different if matches_any(plain_id(identity.id), row.match)]
    if identity.row is None:
        catalog = Layer("L3", endpoint.assumed, "unclassified")
    else:
        catalog = Layer("L3", identity.row, "assumed") if identity.row.assumed else Layer("L2", identity.row)
    facts, names, reasons = _lay([*layers, *differs, catalog])
    control = facts.control or ()
    form = forms.choose(endpoint, maker=identity.maker, control=control, named=facts.form)
    return ResolvedFacts(
        target=target, found=identity, endpoint=endpoint, form=form, facts=facts, layers=names, reasons=reasons
    )


_LIVE: frozenset[LayerName] = frozenset(("L1", "listing"))
_BELONGS_TO: Mapping[str, frozenset[str]] = {
    "control": frozenset(
        ("efforts", "aliases", "default_effort", "budget", "form", "switch", "model_ids", "off_up_to", "nearest_off")
    ),
    "efforts": frozenset(("aliases", "default_effort", "off_up_to")),
}
"""What of a model's facts goes with another fact: as a whole they are one source's word, or they contradict each other."""


def _lay(layers: Sequence[Layer]) -> tuple[Facts, dict[str, LayerName], dict[str, str]]:
    ranked = sorted(layers, key=lambda layer: _ORDER.index(layer.name))
    # Where an operator says how a model is told to think, what a server says of that does not hold beside it.
    operators = [layer.facts for layer in ranked if layer.name == "operator"]
    declared = {field for facts in operators for field in _BELONGS_TO if getattr(facts, field) is not None}
    overruled = frozenset[str]().union(*(_BELONGS_TO[field] for field in declared))
    values, names, reasons = {}, {}, {}
    for field in _FIELDS:
        for layer in ranked:
            if field in overruled and layer.name in _LIVE:
                continue
            if field == "aliases" and "efforts" in declared and layer.name != "operator":
                continue
            value = getattr(layer.facts, field)
            if value is not None:
                values[field], names[field], reasons[field] = value, layer.name, layer.reason
                break
    return Facts(**values), names, reasons
