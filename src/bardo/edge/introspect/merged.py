"""Everything known of a model at a provider, field by field: what holds, who says so and as of when, and who says otherwise."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.models import Models, builtin_models
from bardo.edge.introspect.layers import FIELDS
from bardo.edge.introspect.live import Learned
from bardo.engine.knowledge import control_target
from bardo.engine.route import Provider, Target
from bardo.reasoning.control import Layer, know
from bardo.reasoning.control.target import Known, LayerName


class Saying(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer says of a field. `date` is None where nobody noted it."""

    layer: LayerName
    value: Any
    date: datetime.date | None = None
    source: str = ""


class MergedFact(msgspec.Struct, frozen=True, kw_only=True):
    """One field: the word that holds, and the lower layers' words where they have any."""

    field: str
    holds: Saying
    others: tuple[Saying, ...] = ()

    @property
    def against(self) -> tuple[Saying, ...]:
        """The layers that say something else."""
        return tuple(one for one in self.others if one.value != self.holds.value)


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """A model at a provider. `id` is how the catalog spells it, `how` how its row was found, `form` the wire form that is used."""

    provider: str
    dialect: str
    model: str
    id: str
    maker: str
    how: str
    form: str
    facts: tuple[MergedFact, ...]
    live: Learned | None = None

    @property
    def disagreements(self) -> tuple[MergedFact, ...]:
        """The fields of which layers say different things."""
        return tuple(fact for fact in self.facts if fact.against)

    def __getitem__(self, field: str) -> Any:
        """Return the value that holds, None where nobody says anything."""
        return next((fact.holds.value for fact in self.facts if fact.field == field), None)


def merge(
    provider: Provider,
    model: str,
    learned: Learned | None = None,
    *,
    own: Sequence[Layer] = (),
    models: Models | None = None,
) -> Merged:
    """Return all that is known of `model` at `provider`: the operator's `own` layers, what its server said, the catalog."""
    target = control_target(Target(provider=provider, model=model))
    layers = list(own)
    if learned is not None and learned.facts is not None:
        layers.append(Layer("L1", learned.facts))
    known = know(target, layers, models=models or builtin_models())
    speakers = [*layers, *_catalog(known)]
    facts = (_fact(name, speakers, learned, known) for name in FIELDS)
    return Merged(
        provider=provider.id,
        dialect=provider.row.dialect,
        model=model,
        id=known.found.id,
        maker=known.found.maker,
        how=known.found.how,
        form=known.form.name,
        facts=tuple(fact for fact in facts if fact is not None),
        live=learned,
    )


def _catalog(known: Known) -> list[Layer]:
    """Return the lower layers as `know` lays them: the row, or what is assumed where there is none."""
    row = known.found.row
    if row is None:
        return [Layer("L3", known.endpoint.assumed)]
    return [Layer("L3" if row.assumed else "L2", row)]


def _fact(field: str, layers: list[Layer], learned: Learned | None, known: Known) -> MergedFact | None:
    said = [
        _saying(layer, value, learned, known) for layer in layers if (value := getattr(layer.facts, field)) is not None
    ]
    return MergedFact(field=field, holds=said[0], others=tuple(said[1:])) if said else None


def _saying(layer: Layer, value: Any, learned: Learned | None, known: Known) -> Saying:
    if layer.name == "L1" and learned is not None:
        day = datetime.datetime.fromtimestamp(learned.at, datetime.UTC).date()
        return Saying(layer="L1", value=value, date=day, source=f"the server's own word ({learned.adapter})")
    row = known.found.row
    if layer.name == "operator" or row is None:
        return Saying(
            layer=layer.name, value=value, source="operator" if row is not None else "the provider's static form"
        )
    # A row that an operator laid over the built-in ones has no date of its own.
    dated = row.date if row.date and row.date != datetime.date.min else None
    return Saying(layer=layer.name, value=value, date=dated, source=row.source)
