"""Everything known of a model at a provider: live facts and an operator's override as layers of control, and their merge field by field."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.models import Facts, Models, builtin_models
from bardo.catalog.rows import ProviderTraits
from bardo.planning.knowledge import control_target
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import Layer, know
from bardo.reasoning.control.target import LayerName, ResolvedFacts
from bardo.services.facts.introspect.live import FactsAnswer, LiveFacts

_log = logging.getLogger("bardo.introspection")
FIELDS = Facts.__struct_fields__


def layers_of(live: LiveFacts | None, override: Facts | None = None) -> tuple[Layer, ...]:
    """Return the layers over the catalog, the operator's first."""
    layers = [] if override is None else [Layer("operator", override)]
    if live is not None and not live.silent:
        layers.append(Layer("L1", live))
    return tuple(layers)


def overridden(live: Facts, override: Facts) -> tuple[str, ...]:
    """Return the fields in which an override says something else than the server."""
    both = ((name, getattr(override, name), getattr(live, name)) for name in FIELDS)
    return tuple(name for name, own, other in both if own is not None and other is not None and own != other)


def log_override(target: Target, live: Facts, override: Facts) -> None:
    """Note that an operator's word goes before the server's: useful against a false claim, and worth knowing when it has become old."""
    fields = overridden(live, override)
    if not fields:
        return
    about = {
        "provider": target.provider.id,
        "model": target.model,
        "fields": list(fields),
        "operator": {name: getattr(override, name) for name in fields},
        "live": {name: getattr(live, name) for name in fields},
    }
    _log.warning("the override of %s goes before what %s says", target.model, target.provider.id, extra=about)


class LayerValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a field in one layer. `date` is None if it was not noted."""

    layer: LayerName
    value: Any
    date: datetime.date | None = None
    source: str = ""


class MergedFact(msgspec.Struct, frozen=True, kw_only=True):
    """One field: the word that holds, and the lower layers' words where they have any."""

    field: str
    holds: LayerValue
    others: tuple[LayerValue, ...] = ()

    @property
    def against(self) -> tuple[LayerValue, ...]:
        """The layers that say something else."""
        return tuple(other for other in self.others if other.value != self.holds.value)


class MergedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model at a provider.

    `id` is how the catalog spells it, `how` how its row was found, `like` the model it is assumed to be like (empty where it is not),
    `form` the wire form that is used.
    """

    provider: str
    dialect: str
    model: str
    id: str
    maker: str
    how: str
    form: str
    facts: tuple[MergedFact, ...]
    traits: ProviderTraits = ProviderTraits()
    like: str = ""
    live: FactsAnswer | None = None

    @property
    def disagreements(self) -> tuple[MergedFact, ...]:
        """The fields of which layers say different things."""
        return tuple(fact for fact in self.facts if fact.against)

    def __getitem__(self, field: str) -> Any:
        """Return the value that holds, or None if no layer has one."""
        return next((fact.holds.value for fact in self.facts if fact.field == field), None)


def merge(
    provider: Provider,
    model: str,
    learned: FactsAnswer | None = None,
    *,
    own: Sequence[Layer] = (),
    listed_on: datetime.date | None = None,
    models: Models | None = None,
) -> MergedModel:
    """Return all that is known of `model` at `provider`: the operator's `own` layers, what its server said, the catalog.

    `listed_on` is the day of the list of models that is one of the layers.
    """
    target = control_target(Target(provider=provider, model=model))
    live = () if learned is None or learned.facts is None else (Layer("L1", learned.facts),)
    listings = [layer for layer in own if layer.name == "listing"]
    layers = [*(layer for layer in own if layer.name != "listing"), *live, *listings]
    resolved = know(target, layers, models=models or builtin_models())
    speakers = [*layers, *_catalog(resolved)]
    facts = (_fact(name, speakers, learned, resolved, listed_on) for name in FIELDS)
    return MergedModel(
        provider=provider.id,
        dialect=provider.row.dialect,
        model=model,
        id=resolved.found.id,
        maker=resolved.found.maker,
        how=resolved.found.how,
        form=resolved.form.name,
        traits=provider.row.traits,
        like=row.like if (row := resolved.row) is not None and row.assumed else "",
        facts=tuple(fact for fact in facts if fact is not None),
        live=learned,
    )


def _catalog(known: ResolvedFacts) -> list[Layer]:
    """Return the lower layers as `know` lays them: the row, or the assumptions if there is none."""
    row = known.found.row
    if row is None:
        return [Layer("L3", known.endpoint.assumed)]
    return [Layer("L3" if row.assumed else "L2", row)]


def _fact(
    field: str, layers: list[Layer], learned: FactsAnswer | None, known: ResolvedFacts, listed_on: datetime.date | None
) -> MergedFact | None:
    statements = [
        _saying(layer, value, learned, known, listed_on)
        for layer in layers
        if (value := getattr(layer.facts, field)) is not None
    ]
    return MergedFact(field=field, holds=statements[0], others=tuple(statements[1:])) if statements else None


def _saying(
    layer: Layer, value: Any, learned: FactsAnswer | None, known: ResolvedFacts, listed_on: datetime.date | None
) -> LayerValue:
    if layer.name == "listing":
        return LayerValue(layer="listing", value=value, date=listed_on, source="the provider's list of models")
    if layer.name == "L1" and learned is not None:
        day = datetime.datetime.fromtimestamp(learned.at, datetime.UTC).date()
        return LayerValue(layer="L1", value=value, date=day, source=f"the server's own word ({learned.adapter})")
    row = known.found.row
    if layer.name == "operator" or row is None:
        return LayerValue(
            layer=layer.name, value=value, source="operator" if row is not None else "the provider's static form"
        )
    # A row that an operator laid over the built-in ones has no date of its own.
    dated = row.date if row.date and row.date != datetime.date.min else None
    return LayerValue(layer=layer.name, value=value, date=dated, source=row.source)
